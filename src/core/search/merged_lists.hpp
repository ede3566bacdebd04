#pragma once

// The k nearest of all points, merged from lists of block pairs
// (core/search/between.hpp), in any order.

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/numbers.hpp"
#include "core/contract/request.hpp"
#include "core/rows/block_rows.hpp"

namespace fsknn {

/// The lists of some points, as answers of core/search/between.hpp: one after
/// another, each sorted by (distance, index), with indices from 1.
struct PartialLists {
  std::int64_t num_rows = 0, num_entries = 0;
  const std::int32_t* count = nullptr;  ///< [num_rows]
  const std::int32_t* index = nullptr;
  const double* distance = nullptr;
  const double* correlation = nullptr;  ///< null: not stored
};

class MergedLists {
 public:
  /// Throws std::invalid_argument for invalid sizes.
  MergedLists(std::int64_t num_points, std::int64_t k, bool correlation);

  std::int64_t num_points() const { return num_points_; }
  std::int64_t k() const { return k_; }
  bool has_correlations() const { return correlation_.size() > 0; }

  /// Merges lists of the points of `a`, then of `b` (which may be empty), and
  /// keeps the k nearest of each point. A duplicate counts once. Throws
  /// std::invalid_argument, and changes nothing, if a list is not sorted, has
  /// an index that is not another point, or a distance beyond double's range.
  void merge(Block a, Block b, const PartialLists& part, int num_threads);

  /// The distance of the k-th neighbour so far; infinity if there are fewer.
  double limit(PointId point) const {
    const std::int64_t i = point.value;
    return size_[i] < k_ ? HUGE_VAL : distance_[i * k_ + k_ - 1];
  }

  /// Writes the whole answer, except the points in `skip` (ascending). Throws
  /// RangeFailure if a point has fewer than k neighbours: all parts were
  /// merged, so the missing pairs have distances beyond double's range.
  void emit(const Neighbours& out, const std::vector<std::int64_t>& skip,
            int num_threads) const;

 private:
  class Merger;

  std::int64_t num_points_, k_;
  Buffer<std::int32_t> size_;   ///< [points]
  Buffer<std::int32_t> index_;  ///< [points x k], row by row
  Buffer<double> distance_;
  Buffer<double> correlation_;  ///< may be empty
};

}  // namespace fsknn
