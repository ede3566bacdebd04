#include "core/search/contrast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/pieces.hpp"

namespace fsknn {
namespace {

// Points per piece of work.
constexpr std::int64_t kBlock = 256;

double strength_of(double r, Strength strength) {
  switch (strength) {
    case Strength::signed_r: return r;
    case Strength::absolute: return std::fabs(r);
    case Strength::negative: return -r;
  }
  return r;
}

/// Rank-biased overlap from the numbers of neighbours that are shared up to
/// each depth.
class RankBiased {
 public:
  RankBiased(std::int64_t k, double persistence) {
    double power = 1.0;
    for (std::int64_t d = 1; d <= k; ++d) {
      power *= persistence;
      weight_.push_back((1.0 - persistence) / persistence * power /
                        static_cast<double>(d));
    }
    rest_ = k > 0 ? power / static_cast<double>(k) : 0.0;
  }
  /// entered[d - 1]: how many are shared at depth d but not before.
  double operator()(const std::vector<std::int32_t>& entered) const {
    double sum = 0.0, shared = 0.0;
    for (std::size_t d = 0; d < weight_.size(); ++d) {
      shared += entered[d];
      sum += weight_[d] * shared;
    }
    // Rounding must not make the overlap exceed 1.
    return std::min(1.0, sum + rest_ * shared);
  }

 private:
  std::vector<double> weight_;
  double rest_;
};

/// Compares lists of points on one thread.
class Comparer {
 public:
  Comparer(const GroupLists& first, const GroupLists& second, Strength strength,
           const RankBiased& rank_biased, const PointContrasts& out)
      : first_(first),
        second_(second),
        strength_(strength),
        rank_biased_(rank_biased),
        out_(out),
        rank_(static_cast<std::size_t>(first.lists.rows), 0),
        entered_(static_cast<std::size_t>(first.lists.k)) {}

  void operator()(std::int64_t block) {
    const std::int64_t end = std::min(first_.lists.rows, (block + 1) * kBlock);
    for (std::int64_t row = block * kBlock; row < end; ++row) {
      compare(row);
      poll_after(50.0 * static_cast<double>(first_.lists.k + 1));
    }
  }

 private:
  struct Sums {
    double first = 0.0, second = 0.0, largest = 0.0;
    std::int64_t count = 0;
  };

  void compare(std::int64_t row) {
    const ListMatrix &a = first_.lists, &b = second_.lists;
    if (a.empty(row) || b.empty(row)) {
      out_.shared[row] = out_.missing;
      for (double* const column :
           {out_.overlap, out_.mean_1, out_.mean_2, out_.largest})
        column[row] = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    std::fill(entered_.begin(), entered_.end(), 0);
    Sums sums;
    for (std::int64_t r = 0; r < a.k; ++r) {
      rank_[static_cast<std::size_t>(a.point(row, r))] =
          static_cast<std::int32_t>(r + 1);
      add(sums, first_.r_own[a.at(row, r)], first_.r_other[a.at(row, r)]);
    }
    int shared = 0;
    for (std::int64_t r = 0; r < b.k; ++r) {
      const std::int32_t in_first =
          rank_[static_cast<std::size_t>(b.point(row, r))];
      if (in_first == 0) {
        add(sums, second_.r_other[b.at(row, r)], second_.r_own[b.at(row, r)]);
        continue;
      }
      ++shared;
      ++entered_[static_cast<std::size_t>(
          std::max<std::int64_t>(in_first - 1, r))];
    }
    for (std::int64_t r = 0; r < a.k; ++r)
      rank_[static_cast<std::size_t>(a.point(row, r))] = 0;
    out_.shared[row] = shared;
    out_.overlap[row] = rank_biased_(entered_);
    out_.mean_1[row] = sums.first / static_cast<double>(sums.count);
    out_.mean_2[row] = sums.second / static_cast<double>(sums.count);
    out_.largest[row] = sums.largest;
  }

  void add(Sums& sums, double r_1, double r_2) const {
    sums.first += strength_of(r_1, strength_);
    sums.second += strength_of(r_2, strength_);
    sums.largest =
        std::max(sums.largest, std::fabs(fisher_z(r_2) - fisher_z(r_1)));
    ++sums.count;
  }

  const GroupLists &first_, &second_;
  const Strength strength_;
  const RankBiased& rank_biased_;
  const PointContrasts& out_;
  std::vector<std::int32_t> rank_;     ///< in the first list, from 1; 0: absent
  std::vector<std::int32_t> entered_;  ///< [k]
};

}  // namespace

double fisher_z(double r) {
  constexpr double most = 1.0 - 1e-12;
  return std::atanh(std::max(-most, std::min(most, r)));
}

void contrast_points(const GroupLists& first, const GroupLists& second,
                     Strength strength, double persistence, int num_threads,
                     const PointContrasts& out) {
  const ListMatrix& lists = first.lists;
  const RankBiased rank_biased(lists.k, persistence);
  const int threads = useful_threads(
      num_threads, 100.0 * static_cast<double>(lists.rows * lists.k));
  run_pieces((lists.rows + kBlock - 1) / kBlock, threads, {}, [&] {
    return Comparer(first, second, strength, rank_biased, out);
  });
}

}  // namespace fsknn
