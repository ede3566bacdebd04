#include "core/search/impute.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/pieces.hpp"
#include "core/base/poll.hpp"
#include "core/contract/masked.hpp"

namespace fsknn {
namespace {

/// A donor's value for an entry, and its weight.
struct Gift {
  double value, weight;
};

/// Of values that a donor's scale brings out of double's range.
constexpr double small_unit = 0x1p-64;

int scale_of(double most) {
  return most > 0.0 ? std::clamp(std::ilogb(most), -1000, 1000) : 0;
}

/// Transforms a donor's value: (value - from) * by + to; by 0: do not use it.
struct Scale {
  double from = 0.0, by = 1.0, to = 0.0;
};

/// Computes the donors' scales of rows on one thread, from the mean and the
/// spread over the features that both have.
class RowScaler {
 public:
  RowScaler(const ImputeTask& task, std::int64_t count, Scale* out)
      : task_(task), count_(count), out_(out) {
    own_.resize(static_cast<std::size_t>(task.num_features));
  }

  void operator()(std::int64_t r) {
    const std::int64_t i = task_.rows[r];
    for (std::int64_t f = 0; f < task_.num_features; ++f)
      own_[static_cast<std::size_t>(f)] = value(i, f);
    for (std::int64_t rank = 0; rank < count_; ++rank) {
      const std::int32_t point = task_.index[rank * task_.num_rows + r];
      if (point < 1) break;
      Scale& scale = out_[r * count_ + rank];
      if (!rescale(point - 1, scale)) scale.by = 0.0;
    }
  }

 private:
  double value(std::int64_t i, std::int64_t f) const {
    return task_.x[f * task_.num_points + i];
  }

  /// Returns false if one of the two has no spread there.
  bool rescale(std::int64_t point, Scale& scale) const {
    double n = 0.0, a = 0.0, b = 0.0, aa = 0.0, bb = 0.0;
    double most_a = 0.0, most_b = 0.0;
    for (std::int64_t f = 0; f < task_.num_features; ++f) {
      const double p = own_[static_cast<std::size_t>(f)];
      const double q = value(point, f);
      if (!has_value(p) || !has_value(q)) continue;
      n += 1.0;
      a += p;
      b += q;
      most_a = std::max(most_a, std::abs(p));
      most_b = std::max(most_b, std::abs(q));
    }
    if (!(n > 0.0)) return false;
    // Scaling by powers of two is exact, and keeps squares in range.
    const int scale_a = scale_of(most_a), scale_b = scale_of(most_b);
    const double to_a = std::ldexp(1.0, -scale_a);
    const double to_b = std::ldexp(1.0, -scale_b);
    a = std::isfinite(a / n) ? a / n : mean_of(point, true, n);
    b = std::isfinite(b / n) ? b / n : mean_of(point, false, n);
    for (std::int64_t f = 0; f < task_.num_features; ++f) {
      const double p = own_[static_cast<std::size_t>(f)];
      const double q = value(point, f);
      if (!has_value(p) || !has_value(q)) continue;
      const double off_a = p * to_a - a * to_a, off_b = q * to_b - b * to_b;
      aa += off_a * off_a;
      bb += off_b * off_b;
    }
    if (!(aa > 0.0) || !(bb > 0.0)) return false;
    scale.from = b;
    scale.by = std::ldexp(std::sqrt(aa / bb), scale_a - scale_b);
    scale.to = a;
    return true;
  }

  /// The mean of the row's own values, or of the donor's, where their sum
  /// leaves double's range.
  double mean_of(std::int64_t point, bool own, double n) const {
    double mean = 0.0;
    for (std::int64_t f = 0; f < task_.num_features; ++f) {
      const double p = own_[static_cast<std::size_t>(f)];
      const double q = value(point, f);
      if (has_value(p) && has_value(q)) mean += (own ? p : q) / n;
    }
    return mean;
  }

  const ImputeTask& task_;
  const std::int64_t count_;
  Scale* out_;
  std::vector<double> own_;
};

/// Imputes columns on one thread. Sums have few terms, in the order of the
/// neighbours, so that the number of threads does not change the result.
class ColumnImputer {
 public:
  /// donors: [num_rows x count], row by row, from 0, -1: none. scales: as
  /// donors, or null.
  ColumnImputer(const ImputeTask& task, std::int64_t count,
                const std::int32_t* donors, const Scale* scales,
                const MissingEntries& entries, const ImputedEntries& out)
      : task_(task),
        count_(count),
        donors_(donors),
        scales_(scales),
        entries_(entries),
        out_(out) {}

  void operator()(std::int64_t f) {
    const double* values = task_.x + f * task_.num_points;
    const std::int64_t end = entries_.start[static_cast<std::size_t>(f) + 1];
    for (std::int64_t at = entries_.start[static_cast<std::size_t>(f)];
         at < end; ++at) {
      if (at + 16 < end) fetch(donors_ + row_of(at + 16) * count_);
      if (at + 8 < end) fetch_values(values, row_of(at + 8));
      const std::int64_t r = row_of(at);
      double unit = 1.0;
      if (!take_gifts(values, r, unit)) {
        unit = small_unit;
        take_gifts(values, r, unit);
      }
      out_.row[at] = task_.rows[r] + 1;
      out_.column[at] = static_cast<std::int32_t>(f + 1);
      put(at, unit);
    }
    poll_after(static_cast<double>(task_.num_rows));
  }

 private:
  std::int64_t row_of(std::int64_t entry) const {
    return entries_.rows[static_cast<std::size_t>(entry)];
  }
  // Few of a column's rows lack a value, and their donors are anywhere in
  // memory. So the reads of later entries are prefetched.
  static void fetch(const void* from) { __builtin_prefetch(from); }
  void fetch_values(const double* values, std::int64_t r) const {
    const std::int64_t ahead = std::min<std::int64_t>(count_, task_.k);
    for (std::int64_t rank = 0; rank < ahead; ++rank) {
      const std::int32_t donor = donors_[r * count_ + rank];
      if (donor >= 0) fetch(values + donor);
    }
  }
  /// Gifts of values times a unit, a power of two. False where one of them
  /// leaves double's range.
  bool take_gifts(const double* values, std::int64_t r, double unit) {
    gifts_.clear();
    bool in_range = true;
    // Donors at distance 0 exclude all others.
    double nearest = 0.0;
    for (std::int64_t rank = 0; rank < count_; ++rank) {
      const std::int32_t donor = donors_[r * count_ + rank];
      if (donor < 0 || static_cast<std::int64_t>(gifts_.size()) == task_.k)
        break;
      const double x = values[donor];
      if (!has_value(x)) continue;
      const Scale scale =
          scales_ != nullptr ? scales_[r * count_ + rank] : Scale();
      if (!(scale.by > 0.0)) continue;
      double weight = 1.0;
      if (task_.by_distance) {
        const double distance = task_.distance[rank * task_.num_rows + r];
        if (gifts_.empty()) nearest = distance;
        if (!(nearest > 0.0) && distance > 0.0) break;
        if (nearest > 0.0) weight = nearest / distance;
      }
      const double value =
          (x * unit - scale.from * unit) * scale.by + scale.to * unit;
      in_range = in_range && std::isfinite(value);
      gifts_.push_back({value, weight});
    }
    return in_range;
  }

  /// unit: of the gifts.
  void put(std::int64_t at, double unit) {
    double weights = 0.0, sum = 0.0;
    for (const Gift& g : gifts_) {
      weights += g.weight;
      sum += g.weight * g.value;
    }
    const double none = no_correlation();
    double mean = sum / weights;
    if (std::isinf(mean)) {  // only the sum of the values leaves double's range
      mean = 0.0;
      for (const Gift& g : gifts_) mean += g.weight / weights * g.value;
    }
    const double n = static_cast<double>(gifts_.size());
    // A power of two keeps the squares in range, and halving the values keeps
    // the differences in range.
    double most = 0.0;
    for (const Gift& g : gifts_)
      most = std::max(most, std::abs(0.5 * g.value - 0.5 * mean));
    const int scale = scale_of(most);
    const double half = std::ldexp(0.5, -scale);
    double spread = 0.0;
    for (const Gift& g : gifts_) {
      const double off = g.value * half - mean * half;
      spread += g.weight * off * off;
    }
    out_.donors[at] = static_cast<std::int32_t>(gifts_.size());
    out_.value[at] = gifts_.empty() ? none : mean / unit;
    const double sd =
        std::ldexp(std::sqrt(spread / weights * n / (n - 1.0)), scale + 1) /
        unit;
    out_.spread[at] = n < 2.0 || !has_value(sd) ? out_.no_spread : sd;
  }

  const ImputeTask& task_;
  const std::int64_t count_;
  const std::int32_t* donors_;
  const Scale* scales_;
  const MissingEntries& entries_;
  const ImputedEntries& out_;
  std::vector<Gift> gifts_;
};

constexpr std::int64_t rows_at_once = 64;

}  // namespace

MissingEntries find_missing(const ImputeTask& task, Progress* progress) {
  const double cells = static_cast<double>(task.num_rows) *
                       static_cast<double>(task.num_features);
  std::vector<std::vector<std::int32_t>> of_column(
      static_cast<std::size_t>(task.num_features));
  run_pieces(task.num_features, useful_threads(task.num_threads, cells),
             {progress, 0.0, 0.0}, [&] {
               return [&, found = std::vector<std::int32_t>(
                              static_cast<std::size_t>(task.num_rows))](
                          std::int64_t f) mutable {
                 const double* values = task.x + f * task.num_points;
                 std::size_t count = 0;
                 for (std::int64_t r = 0; r < task.num_rows; ++r) {
                   found[count] = static_cast<std::int32_t>(r);
                   count += !has_value(values[task.rows[r]]);
                 }
                 of_column[static_cast<std::size_t>(f)].assign(
                     found.begin(),
                     found.begin() + static_cast<std::ptrdiff_t>(count));
                 poll_after(static_cast<double>(task.num_rows));
               };
             });
  MissingEntries entries;
  entries.start.push_back(0);
  for (const std::vector<std::int32_t>& rows : of_column)
    entries.start.push_back(entries.start.back() +
                            static_cast<std::int64_t>(rows.size()));
  entries.rows.reserve(static_cast<std::size_t>(entries.size()));
  for (const std::vector<std::int32_t>& rows : of_column)
    entries.rows.insert(entries.rows.end(), rows.begin(), rows.end());
  return entries;
}

void impute(const ImputeTask& task, const MissingEntries& entries,
            const ImputedEntries& out, Progress* progress) {
  const std::int64_t count = task.available ? task.most : task.k;
  const std::size_t size =
      static_cast<std::size_t>(task.num_rows) * static_cast<std::size_t>(count);
  std::vector<std::int32_t> donors(size, -1);
  std::vector<Scale> scales(task.rescaled ? size : 0);
  const double pairs = static_cast<double>(size);
  const double operations =
      pairs *
      (task.rescaled ? static_cast<double>(task.num_features) * 8.0 : 2.0);
  run_pieces(
      (task.num_rows + rows_at_once - 1) / rows_at_once,
      useful_threads(task.num_threads, operations), {progress, 0.0, 0.0}, [&] {
        return [&, scaler = RowScaler(task, count, scales.data())](
                   std::int64_t piece) mutable {
          const std::int64_t end =
              std::min(task.num_rows, (piece + 1) * rows_at_once);
          for (std::int64_t r = piece * rows_at_once; r < end; ++r) {
            for (std::int64_t rank = 0; rank < count; ++rank) {
              const std::int32_t point = task.index[rank * task.num_rows + r];
              if (point < 1) break;
              donors[static_cast<std::size_t>(r * count + rank)] = point - 1;
            }
            if (task.rescaled) scaler(r);
          }
        };
      });

  // Work goes by columns, because the matrix is stored so, and a column's
  // donors are close in memory. A column of 100,000 values stays in a core's
  // cache.
  run_pieces(
      task.num_features,
      useful_threads(task.num_threads, static_cast<double>(entries.size()) *
                                           static_cast<double>(count) * 16.0),
      {progress, 0.0, 0.0}, [&] {
        return ColumnImputer(task, count, donors.data(),
                             task.rescaled ? scales.data() : nullptr, entries,
                             out);
      });
}

MissingCounts count_missing(const double* x, std::int64_t num_points,
                            std::int64_t num_features, int num_threads) {
  MissingCounts out;
  out.rows.resize(static_cast<std::size_t>(num_points));
  out.columns.resize(static_cast<std::size_t>(num_features));
  struct Rows {
    std::vector<std::int32_t> missing;
  };
  run_pieces(
      num_features,
      useful_threads(num_threads, static_cast<double>(num_points) *
                                      static_cast<double>(num_features)),
      ProgressRange{},
      [&] {
        Rows mine;
        mine.missing.resize(static_cast<std::size_t>(num_points));
        return mine;
      },
      [&](Rows& mine, std::int64_t f) {
        const double* values = x + f * num_points;
        std::int32_t missing = 0;
        for (std::int64_t i = 0; i < num_points; ++i) {
          const std::int32_t is_missing = !has_value(values[i]);
          mine.missing[static_cast<std::size_t>(i)] += is_missing;
          missing += is_missing;
        }
        out.columns[static_cast<std::size_t>(f)] = missing;
        poll_after(static_cast<double>(num_points));
      },
      [&](const Rows& mine) {
        for (std::size_t i = 0; i < out.rows.size(); ++i)
          out.rows[i] += mine.missing[i];
      });
  return out;
}

void copy_with(const double* x, std::int64_t num_points,
               std::int64_t num_features, const PutEntries& entries,
               double* out, int num_threads) {
  // The entries are ordered by column, so those of a column are contiguous.
  const auto first_of = [&](std::int64_t f) {
    return std::lower_bound(entries.column, entries.column + entries.count,
                            static_cast<std::int32_t>(f + 1)) -
           entries.column;
  };
  run_pieces(num_features,
             useful_threads(num_threads, static_cast<double>(num_points) *
                                             static_cast<double>(num_features)),
             ProgressRange{}, [&] {
               return [&](std::int64_t f) {
                 const double* from = x + f * num_points;
                 double* to = out + f * num_points;
                 std::copy(from, from + num_points, to);
                 const std::ptrdiff_t end = first_of(f + 1);
                 for (std::ptrdiff_t at = first_of(f); at < end; ++at)
                   to[entries.row[at] - 1] = entries.value[at];
                 poll_after(static_cast<double>(num_points));
               };
             });
}

}  // namespace fsknn
