#pragma once

// Bounds that prune tiles of pairs without comparing their points. A point's
// key is its sum or its length: two points are at least as far apart as their
// keys. Points are also at least as far apart as the boxes around their tiles.
// The order of the keys, or of a tree (tree.hpp), brings near points together.
// The proofs are in the vignette "proofs", sections "Tiles pruned by sums and
// lengths" and "Tiles pruned by boxes".

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
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
  norm,   ///< | |x_i| - |x_j| | is at most the Euclidean distance
  box     ///< no key; the distance of boxes is at most that of their points
};

/// The kind of key that this metric has, if any.
KeyKind key_kind(const MetricEntry& metric);
/// Whether boxes bound the distances of this metric.
bool has_boxes(const MetricEntry& metric);

/// The distance of two boxes that bounds the distances of a metric. Rows of
/// length 1 have boxes of Euclidean distances: the contract's distance is 1 -
/// r, and |x - y|^2 = 2 - 2 r. `absolute` and `negative` similarities are large
/// for rows near a row's mirror image, -x.
struct BoxRule {
  Accumulation gaps = Accumulation::squared_difference;
  Sign sign = Sign::signed_value;

  BoxRule() = default;
  explicit BoxRule(const MetricEntry& metric)
      : gaps(metric.is_unit_dot() ? Accumulation::squared_difference
                                  : metric.accumulation),
        sign(metric.is_unit_dot() ? metric.sign : Sign::signed_value) {}
  bool has_plain() const { return sign != Sign::negative; }
  bool has_mirrored() const { return sign != Sign::signed_value; }

  /// The sum of the gaps (or of their squares, or the largest) between boxes of
  /// `size` numbers, by the arithmetic of Kernels::near_boxes(). A box has the
  /// least and the largest entry of each feature.
  template <class Number>
  Number between(const Number* a, const Number* b, std::size_t size) const {
    Number least = static_cast<Number>(HUGE_VAL);
    if (has_plain())
      least = sum_of(size, [&](std::size_t f) {
        return std::max(a[f] - b[f + 1], b[f] - a[f + 1]);
      });
    if (has_mirrored())
      least = std::min(least, sum_of(size, [&](std::size_t f) {
                         return std::max(a[f] + b[f], -(a[f + 1] + b[f + 1]));
                       }));
    return least;
  }

 private:
  template <class Gap>
  auto sum_of(std::size_t size, Gap gap_of) const {
    decltype(gap_of(0)) sum = 0;
    for (std::size_t f = 0; f < size; f += 2) {
      const auto gap = std::max(gap_of(f), decltype(sum){0});
      if (gaps == Accumulation::squared_difference)
        sum += gap * gap;
      else if (gaps == Accumulation::absolute_difference)
        sum += gap;
      else
        sum = std::max(sum, gap);
    }
    return sum;
  }
};

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
inline bool farther(KeyKind kind, const KeyRange& a, const KeyRange& b,
                    double reach) {
  const double low = std::max(a.low, b.low), high = std::min(a.high, b.high);
  return low - high > (kind == KeyKind::share ? reach * (low + high) : reach);
}

/// [places]
using PointKeys = std::vector<KeyRange>;

PointKeys keys_of(KeyKind kind, const PreparedPoints& points, int num_threads,
                  Progress* progress);

/// The keys, or the box, of several points.
struct Span {
  KeyRange key;
  std::vector<float> box;  ///< [width][2]: the least and largest entries
};

/// The keys or boxes, for each tile of the filter, of points in their order.
class KeyTiles {
 public:
  KeyTiles() = default;
  KeyTiles(KeyKind kind, const PointKeys& keys,
           const std::vector<std::int32_t>& place_at);
  /// Boxes around the tiles of points in the order of a tree. place_at: their
  /// places in that order; null: all points, which are in it already. Entries
  /// are less the centre of the scale, in its unit.
  KeyTiles(const MetricEntry& metric, const FilterScale& scale,
           const PreparedPoints& points,
           const std::vector<std::int32_t>* place_at, int num_threads);

  KeyKind kind() const { return kind_; }
  /// The interval of the rows, or columns, of the tile that starts at `at`.
  const KeyRange& rows(std::int64_t at) const {
    return rows_[static_cast<std::size_t>(at / Tile::rows)];
  }
  const KeyRange& columns(std::int64_t at) const {
    return columns_[static_cast<std::size_t>(at / Tile::columns)];
  }
  /// The boxes of 16 tiles of rows, as Kernels::near_boxes() needs them.
  const float* row_boxes(std::int64_t panel) const {
    return row_boxes_.data() + panel * 2 * width_ * Tile::panel;
  }
  /// [width][2], of the tile of columns that starts at `at`.
  const float* column_box(std::int64_t at) const {
    return column_boxes_.data() + at / Tile::columns * 2 * width_;
  }
  /// The box of the mirror images of that tile's points; to: [width][2].
  void mirror_column_box(std::int64_t at, float* to) const {
    const float* const box = column_box(at);
    for (std::int64_t f = 0; f < 2 * width_; ++f) to[f] = -box[f ^ 1];
  }
  const BoxRule& rule() const { return rule_; }
  std::int64_t width() const { return width_; }

  /// The memory of the boxes.
  double bytes() const {
    return 4.0 * static_cast<double>(row_boxes_.size() + column_boxes_.size());
  }

  /// The span of `count` points from `at`, where whole tiles begin and end.
  Span of(std::int64_t at, std::int64_t count) const;
  /// The largest bound of spans that may have a pair within `reach` (see
  /// FilterForm).
  float limit_of(double reach) const;
  /// Whether no point of one span is within that limit of one of the other.
  bool farther(const Span& a, const Span& b, float limit) const;
  /// How far the middles of two spans are from each other, for their order.
  float between(const Span& a, const Span& b) const;

 private:
  KeyKind kind_ = KeyKind::none;
  std::vector<KeyRange> rows_, columns_;
  BoxRule rule_;
  double rounding_ = 0.0;   ///< of squared distances, for rows of length 1
  std::int64_t width_ = 0;  ///< the number of features
  double unit_ = 1.0;
  Buffer<float> row_boxes_;     ///< [panels][width][2][16]
  Buffer<float> column_boxes_;  ///< [tiles][width][2]
};

/// The labels of tiles whose points all have the same label; -1 for the others.
/// Pairs of points with one label are not wanted.
class TileLabels {
 public:
  /// label_at: of the points in their order, none below 0.
  explicit TileLabels(const std::vector<std::int32_t>& label_at);
  /// The labels of 16 tiles of rows.
  const std::int32_t* rows(std::int64_t panel) const {
    return rows_.data() + panel * Tile::panel;
  }
  /// The label of the tile of columns that starts at `at`.
  std::int32_t column(std::int64_t at) const {
    return columns_[static_cast<std::size_t>(at / Tile::columns)];
  }

 private:
  std::vector<std::int32_t> rows_, columns_;
};

/// The spans of the chunks of some points, and their limits, which all threads
/// share.
class ChunkSpans {
 public:
  ChunkSpans(const KeyTiles& tiles, std::int64_t num_points,
             std::int64_t chunk_size);

  /// The same spans, without any limits.
  std::unique_ptr<ChunkSpans> without_limits() const {
    return std::unique_ptr<ChunkSpans>(
        new ChunkSpans(tiles_, num_points_, chunk_size_));
  }
  /// After the tiles have changed.
  void renew();
  const KeyTiles& tiles() const { return tiles_; }
  std::int64_t size() const { return static_cast<std::int64_t>(spans_.size()); }
  const Span& operator[](std::int64_t chunk) const {
    return spans_[static_cast<std::size_t>(chunk)];
  }
  std::int64_t num_points(std::int64_t chunk) const {
    return std::min(chunk_size_, num_points_ - chunk * chunk_size_);
  }
  std::int64_t chunk_at(std::int64_t point) const {
    return point / chunk_size_;
  }
  /// No point of the chunk takes a pair beyond this; infinity at first. Limits
  /// only fall, so that an old one is still valid.
  float limit(std::int64_t chunk) const {
    return limit_[static_cast<std::size_t>(chunk)].load(
        std::memory_order_relaxed);
  }
  void set_limit(std::int64_t chunk, float limit) {
    limit_[static_cast<std::size_t>(chunk)].store(limit,
                                                  std::memory_order_relaxed);
  }

 private:
  const KeyTiles& tiles_;
  const std::int64_t num_points_, chunk_size_;
  std::vector<Span> spans_;
  std::vector<std::atomic<float>> limit_;
};

/// The largest limit of points with these thresholds of the filter.
float limit_of(const KeyTiles& tiles, const FilterScale& scale,
               const std::int32_t* threshold, std::int64_t count);

/// Pairs of chunks are listed where whole chunks may be pruned: 12 bytes a
/// pair. So there are at most this many chunks on either side.
constexpr std::int64_t kMostListed = 8192;

/// Two chunks that may have near pairs.
struct ChunkPair {
  std::int32_t row, column;
  float between;  ///< the distance of their middles; -1 if they are the same
};
/// The pairs of chunks that may have near pairs at their present limits. All
/// chunks whose points take neighbours meet their nearest ones first, so that
/// later limits are low. Then the pairs of a chunk follow each other, the
/// nearest first. symmetric: rows and columns are the same, and each two chunks
/// meet once.
std::vector<ChunkPair> near_chunks(const ChunkSpans& rows,
                                   const ChunkSpans& columns, bool symmetric,
                                   int num_threads);

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

  /// limit: [places]
  void sort_by_limits(const std::vector<double>& limit);

 private:
  void arrange();

  const KeyKind kind_;
  const PointKeys keys_;
  const FilterRows& rows_;
  const int num_threads_;
  std::vector<std::int32_t> place_at_;
  FilterRows filter_;
  KeyTiles tiles_;
};

}  // namespace cpu
}  // namespace fsknn
