#include "core/impute.hpp"

#include <algorithm>
#include <cmath>

#include "core/buffer.hpp"
#include "core/masked.hpp"
#include "core/pieces.hpp"

namespace fsknn {
namespace {

/// A value that a donor has for an entry, and what it weighs.
struct Gift {
  double value, weight;
};

int scale_of(double most) {
  return most > 0.0 ? std::clamp(std::ilogb(most), -1000, 1000) : 0;
}

/// One thread's rows. Sums are of few numbers, in the order of the neighbours:
/// the same for any number of threads.
class RowImputer {
 public:
  RowImputer(const ImputeTask& task, const std::vector<std::int64_t>& start,
             ImputedEntries& out)
      : task_(task), start_(start), out_(out) {
    own_.resize(static_cast<std::size_t>(task.num_features));
  }

  void operator()(std::int64_t r) {
    const std::int64_t i = task_.rows[r];
    find_donors(r, i);
    std::size_t at =
        static_cast<std::size_t>(start_[static_cast<std::size_t>(r)]);
    for (std::int64_t f = 0; f < task_.num_features; ++f) {
      if (has_value(value(i, f))) continue;
      take_gifts(f);
      out_.row[at] = static_cast<std::int32_t>(i + 1);
      out_.column[at] = static_cast<std::int32_t>(f + 1);
      put(at++);
    }
  }

 private:
  struct Donor {
    std::int64_t point;
    double distance;
    double from, by, to;  ///< (value - from) * by + to
  };

  double value(std::int64_t i, std::int64_t f) const {
    return task_.x[f * task_.num_points + i];
  }

  void find_donors(std::int64_t r, std::int64_t i) {
    donors_.clear();
    const std::int64_t count = task_.available ? task_.most : task_.k;
    if (task_.rescaled)
      for (std::int64_t f = 0; f < task_.num_features; ++f)
        own_[static_cast<std::size_t>(f)] = value(i, f);
    for (std::int64_t rank = 0; rank < count; ++rank) {
      const std::int64_t at = rank * task_.num_rows + r;
      if (task_.index[at] < 1) break;
      Donor donor = {task_.index[at] - 1, task_.distance[at], 0.0, 1.0, 0.0};
      if (task_.rescaled && !rescale(donor)) continue;
      donors_.push_back(donor);
    }
  }

  /// To the row's mean and spread over the features that both have; false
  /// where one of them has no spread there.
  bool rescale(Donor& donor) const {
    double n = 0.0, a = 0.0, b = 0.0, aa = 0.0, bb = 0.0;
    double most_a = 0.0, most_b = 0.0;
    for (std::int64_t f = 0; f < task_.num_features; ++f) {
      const double p = own_[static_cast<std::size_t>(f)];
      const double q = value(donor.point, f);
      if (!has_value(p) || !has_value(q)) continue;
      n += 1.0;
      a += p;
      b += q;
      most_a = std::max(most_a, std::abs(p));
      most_b = std::max(most_b, std::abs(q));
    }
    if (!(n > 0.0)) return false;
    // Powers of two take no bit from a sum, and keep squares in range.
    const int scale_a = scale_of(most_a), scale_b = scale_of(most_b);
    const double to_a = std::ldexp(1.0, -scale_a);
    const double to_b = std::ldexp(1.0, -scale_b);
    a /= n;
    b /= n;
    for (std::int64_t f = 0; f < task_.num_features; ++f) {
      const double p = own_[static_cast<std::size_t>(f)];
      const double q = value(donor.point, f);
      if (!has_value(p) || !has_value(q)) continue;
      const double off_a = (p - a) * to_a, off_b = (q - b) * to_b;
      aa += off_a * off_a;
      bb += off_b * off_b;
    }
    if (!(aa > 0.0) || !(bb > 0.0)) return false;
    donor.from = b;
    donor.by = std::ldexp(std::sqrt(aa / bb), scale_a - scale_b);
    donor.to = a;
    return true;
  }

  void take_gifts(std::int64_t f) {
    gifts_.clear();
    // Whoever is at distance 0 is alone heard.
    double nearest = 0.0;
    for (const Donor& donor : donors_) {
      if (static_cast<std::int64_t>(gifts_.size()) == task_.k) break;
      const double x = value(donor.point, f);
      if (!has_value(x)) continue;
      double weight = 1.0;
      if (task_.by_distance) {
        if (gifts_.empty()) nearest = donor.distance;
        if (!(nearest > 0.0) && donor.distance > 0.0) break;
        if (nearest > 0.0) weight = nearest / donor.distance;
      }
      gifts_.push_back({(x - donor.from) * donor.by + donor.to, weight});
    }
  }

  void put(std::size_t at) {
    double weights = 0.0, sum = 0.0;
    for (const Gift& g : gifts_) {
      weights += g.weight;
      sum += g.weight * g.value;
    }
    const double none = no_correlation(), mean = sum / weights;
    const double n = static_cast<double>(gifts_.size());
    double spread = 0.0;
    for (const Gift& g : gifts_)
      spread += g.weight * (g.value - mean) * (g.value - mean);
    out_.donors[at] = static_cast<std::int32_t>(gifts_.size());
    out_.value[at] = gifts_.empty() ? none : mean;
    out_.spread[at] =
        n < 2.0 ? none : std::sqrt(spread / weights * n / (n - 1.0));
  }

  const ImputeTask& task_;
  const std::vector<std::int64_t>& start_;
  ImputedEntries& out_;
  std::vector<double> own_;
  std::vector<Donor> donors_;
  std::vector<Gift> gifts_;
};

}  // namespace

ImputedEntries impute(const ImputeTask& task, Progress* progress) {
  const std::size_t num_rows = static_cast<std::size_t>(task.num_rows);
  // By columns, as the matrix lies in memory.
  std::vector<std::int64_t> start(num_rows + 1, 0);
  for (std::int64_t f = 0; f < task.num_features; ++f)
    for (std::size_t r = 0; r < num_rows; ++r)
      start[r + 1] += !has_value(task.x[f * task.num_points + task.rows[r]]);
  for (std::size_t r = 0; r < num_rows; ++r) start[r + 1] += start[r];
  const std::size_t count = static_cast<std::size_t>(start[num_rows]);
  ImputedEntries out;
  out.row.resize(count);
  out.column.resize(count);
  out.value.resize(count);
  out.spread.resize(count);
  out.donors.resize(count);
  const std::int64_t most = task.available ? task.most : task.k;
  const double operations =
      static_cast<double>(count) * static_cast<double>(most) * 16.0 +
      (task.rescaled ? static_cast<double>(task.num_rows) *
                           static_cast<double>(task.num_features * most) * 8.0
                     : 0.0);
  constexpr std::int64_t block = 64;
  run_pieces(
      (task.num_rows + block - 1) / block,
      useful_threads(task.num_threads, operations), {progress, 0.0, 0.0}, [&] {
        return [&, row = RowImputer(task, start, out)](std::int64_t b) mutable {
          const std::int64_t end = std::min(task.num_rows, (b + 1) * block);
          for (std::int64_t r = b * block; r < end; ++r) row(r);
        };
      });
  return out;
}

}  // namespace fsknn
