#pragma once

// Bounds that prune pairs without any arithmetic. A point's key is its sum or
// its length: two points are at least as far apart as their keys. When points
// are in the order of their keys, whole tiles of pairs can be pruned. The proof
// is in the vignette "proofs", section "Tiles pruned by sums and lengths".

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rows/prepared.hpp"
#include "cpu/filter/form.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

enum class KeyKind {
  none,
  sum,    ///< |s_i - s_j| is at most the sum of differences
  share,  ///< |s_i - s_j| / (s_i + s_j) is at most 1 - the overlap
  norm    ///< | |x_i| - |x_j| | is at most the Euclidean distance
};

KeyKind key_kind(const MetricEntry& metric);

/// An interval that is sure to contain a key, or the keys of several points.
struct KeyRange {
  double low = -HUGE_VAL, high = HUGE_VAL;

  void include(const KeyRange& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
};

/// Whether no point of one interval is within `reach` (see FilterForm) of a
/// point of the other. NaN gives false.
inline bool apart(KeyKind kind, const KeyRange& a, const KeyRange& b,
                  double reach) {
  const double low = std::max(a.low, b.low), high = std::min(a.high, b.high);
  return low - high > (kind == KeyKind::share ? reach * (low + high) : reach);
}

/// [places]
using PointKeys = std::vector<KeyRange>;

PointKeys keys_of(KeyKind kind, const PreparedPoints& points, int num_threads,
                  Progress* progress);

/// The intervals of keys, for each tile of the filter, of points in their
/// order.
class KeyTiles {
 public:
  KeyTiles() = default;
  KeyTiles(KeyKind kind, const PointKeys& keys,
           const std::vector<std::int32_t>& place_at);

  KeyKind kind() const { return kind_; }
  /// The interval of the rows, or columns, of the tile that starts at `at`.
  const KeyRange& rows(std::int64_t at) const {
    return rows_[static_cast<std::size_t>(at / Tile::rows)];
  }
  const KeyRange& columns(std::int64_t at) const {
    return columns_[static_cast<std::size_t>(at / Tile::columns)];
  }
  /// The interval of `count` points from `at`, where whole tiles begin and end.
  KeyRange of(std::int64_t at, std::int64_t count) const;

 private:
  KeyKind kind_ = KeyKind::none;
  std::vector<KeyRange> rows_, columns_;
};

// The number of rows in a stratum. It is whole tiles in both directions, large
// enough that some rows are alike, and small beside the number of points.
constexpr std::int64_t kStratum = 8 * Tile::columns;
constexpr std::int64_t kStrata = 32;

/// Points in the order of their keys. Within a stratum of near keys they are in
/// the order of their limits, because the loosest row decides for its tile.
class SortedPoints {
 public:
  /// Everything but the keys must outlive this object. rows: in the form of the
  /// filter.
  SortedPoints(KeyKind kind, PointKeys keys, const PreparedPoints& points,
               const FilterRows& rows, int num_threads);
  SortedPoints(const SortedPoints&) = delete;
  SortedPoints& operator=(const SortedPoints&) = delete;

  const std::vector<std::int32_t>& place_at() const { return place_at_; }
  const FilterRows& filter() const { return filter_; }
  const KeyTiles& tiles() const { return tiles_; }
  /// The number of points that precede that key; approximate within a stratum.
  std::int64_t before(const KeyRange& key) const;

  /// limit: [places]
  void sort_by_limits(const std::vector<double>& limit);

 private:
  void arrange();

  const KeyKind kind_;
  const PointKeys keys_;
  const FilterRows& rows_;
  const int num_threads_;
  std::vector<double> sorted_;  ///< the keys, ascending
  std::vector<std::int32_t> place_at_;
  FilterRows filter_;
  KeyTiles tiles_;
};

/// The i-th of `count` numbers from 0, ordered by their distance from `start`.
inline std::int64_t outward(std::int64_t start, std::int64_t count,
                            std::int64_t i) {
  const std::int64_t above = count - 1 - start;
  const std::int64_t both = std::min(start, above);
  if (i <= 2 * both) return i % 2 == 1 ? start + (i + 1) / 2 : start - i / 2;
  return start < above ? i : count - 1 - i;
}

}  // namespace cpu
}  // namespace fsknn
