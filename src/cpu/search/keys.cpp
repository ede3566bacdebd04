#include "cpu/search/keys.hpp"

#include "core/base/pieces.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/pack.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Below these values rounding may exceed the allowed share of a row's sum, or
// its squares may underflow.
constexpr double kLeastSum = 0x1p-960;
constexpr double kLeastNorm = 0x1p-400;
// Entries of boxes are cut off at this many units, so that sums of squares fit
// in floats.
constexpr double kLargestSide = 0x1p40;
// Sums of more gaps may have rounding errors that are not small.
constexpr std::int64_t kMostSummed = std::int64_t{1} << 20;

/// Sums of a row, computed in four parallel parts.
struct RowTotals {
  double sum = 0.0, size = 0.0, squares = 0.0;
};

RowTotals totals_of(const double* x, std::int64_t padded) {
  double sum[4] = {0, 0, 0, 0}, size[4] = {0, 0, 0, 0};
  double squares[4] = {0, 0, 0, 0};
  for (std::int64_t f = 0; f < padded; f += 4)
    for (int l = 0; l < 4; ++l) {
      sum[l] += x[f + l];
      size[l] += std::fabs(x[f + l]);
      squares[l] += x[f + l] * x[f + l];
    }
  RowTotals t;
  for (int l = 0; l < 4; ++l) {
    t.sum += sum[l];
    t.size += size[l];
    t.squares += squares[l];
  }
  return t;
}

/// rounding: the relative rounding error of the row's preparation and of its
/// pairs.
KeyRange key_of(KeyKind kind, const RowTotals& t, double rounding) {
  const bool by_norm = kind == KeyKind::norm;
  const double size = by_norm ? std::sqrt(t.squares) : t.size;
  const double key = by_norm ? size : t.sum;
  if (t.size == 0.0) return {0.0, 0.0};
  if (!(size >= (by_norm ? kLeastNorm : kLeastSum))) return {};
  return {key - rounding * size, key + rounding * size};
}

/// Widens a box [width] of doubles, which were rounded a few times, to floats.
/// The next float is farther than these roundings.
void store_box(const std::vector<double>& low, const std::vector<double>& high,
               float* to, std::size_t step) {
  for (std::size_t f = 0; f < low.size(); ++f) {
    to[2 * f * step] = std::nextafter(float_down(low[f]), -kFloatInfinity);
    to[(2 * f + 1) * step] = std::nextafter(float_up(high[f]), kFloatInfinity);
  }
}

}  // namespace

KeyKind key_kind(const MetricEntry& metric) {
  if (metric.filter == FilterKind::none) return KeyKind::none;
  if (metric.filter == FilterKind::difference) return KeyKind::sum;
  if (metric.filter == FilterKind::overlap) return KeyKind::share;
  return metric.accumulation == Accumulation::squared_difference
             ? KeyKind::norm
             : KeyKind::none;
}

bool has_boxes(const MetricEntry& metric) {
  return metric.filter != FilterKind::none &&
         (metric.is_unit_dot() ||
          metric.accumulation == Accumulation::squared_difference ||
          metric.accumulation == Accumulation::absolute_difference ||
          metric.accumulation == Accumulation::largest_difference);
}

PointKeys keys_of(KeyKind kind, const PreparedPoints& points, int num_threads,
                  Progress* progress) {
  constexpr std::int64_t block_rows = 256;
  const std::int64_t n = points.size();
  const double rounding = rounding_of_sums(points.padded);
  PointKeys keys(static_cast<std::size_t>(n));
  run_pieces((n + block_rows - 1) / block_rows, num_threads,
             {progress, 0.0, 0.0}, [&] {
               return [&, row = RowReader(points)](std::int64_t block) mutable {
                 const std::int64_t end = std::min(n, (block + 1) * block_rows);
                 for (std::int64_t i = block * block_rows; i < end; ++i)
                   keys[static_cast<std::size_t>(i)] = key_of(
                       kind, totals_of(row(Place{i}), points.padded), rounding);
               };
             });
  return keys;
}

KeyTiles::KeyTiles(KeyKind kind, const PointKeys& keys,
                   const std::vector<std::int32_t>& place_at)
    : kind_(kind) {
  const auto gather = [&](std::vector<KeyRange>& tiles, std::size_t size) {
    for (std::size_t p = 0; p < place_at.size(); ++p) {
      const KeyRange& key = keys[static_cast<std::size_t>(place_at[p])];
      if (p % size == 0)
        tiles.push_back(key);
      else
        tiles.back().include(key);
    }
  };
  gather(rows_, Tile::rows);
  gather(columns_, Tile::columns);
}

KeyTiles::KeyTiles(const MetricEntry& metric, const FilterScale& scale,
                   const PreparedPoints& points,
                   const std::vector<std::int32_t>* place_at, int num_threads)
    : kind_(KeyKind::box),
      rule_(metric),
      rounding_(metric.is_unit_dot() ? 2.0 * rounding_of_sums(points.padded)
                                     : 0.0),
      width_(points.num_features),
      unit_(scale.unit) {
  constexpr std::int64_t tiles_together = kStratum / Tile::rows;
  static_assert(tiles_together % Tile::panel == 0, "whole panels in a stratum");
  const std::int64_t n = place_at != nullptr
                             ? static_cast<std::int64_t>(place_at->size())
                             : points.size();
  const std::int64_t strata = (n + kStratum - 1) / kStratum;
  row_boxes_ = Buffer<float>(strata * tiles_together * 2 * width_);
  column_boxes_ =
      Buffer<float>((n + Tile::columns - 1) / Tile::columns * 2 * width_);
  std::fill_n(row_boxes_.data(), row_boxes_.size(), 0.0f);
  const std::size_t width = static_cast<std::size_t>(width_);
  const double inverse = 1.0 / unit_;
  // Mirror images are those in the point 0.
  const bool centred = scale.centre.size() > 0 && !rule_.has_mirrored();
  run_pieces(strata, num_threads, {}, [&] {
    return [&, row = FilterReader(points), low = std::vector<double>(width),
            high = std::vector<double>(width)](std::int64_t stratum) mutable {
      const std::int64_t end = std::min(n, (stratum + 1) * kStratum);
      for (std::int64_t first = stratum * kStratum; first < end;
           first += Tile::rows) {
        std::fill(low.begin(), low.end(), kLargestSide);
        std::fill(high.begin(), high.end(), -kLargestSide);
        for (std::int64_t p = first; p < std::min(end, first + Tile::rows);
             ++p) {
          const double* const x = row(Place{
              place_at != nullptr ? (*place_at)[static_cast<std::size_t>(p)]
                                  : p});
          for (std::size_t f = 0; f < width; ++f) {
            const std::int64_t at = static_cast<std::int64_t>(f);
            const double less = centred ? scale.centre[at] : 0.0;
            const double y = (x[f] - less) * inverse;
            // A number that is not one may be anywhere.
            low[f] = std::min(low[f], y >= -kLargestSide ? y : -kLargestSide);
            high[f] = std::max(high[f], y <= kLargestSide ? y : kLargestSide);
          }
        }
        const std::int64_t tile = first / Tile::rows;
        float* const own = row_boxes_.data() +
                           tile / Tile::panel * 2 * width_ * Tile::panel +
                           tile % Tile::panel;
        store_box(low, high, own, Tile::panel);
        float* const all =
            column_boxes_.data() + first / Tile::columns * 2 * width_;
        for (std::int64_t f = 0; f < 2 * width_; ++f) {
          const float side = own[f * Tile::panel];
          if (first % Tile::columns == 0)
            all[f] = side;
          else
            all[f] =
                f % 2 == 0 ? std::min(all[f], side) : std::max(all[f], side);
        }
      }
    };
  });
}

Span KeyTiles::of(std::int64_t at, std::int64_t count) const {
  Span all;
  if (kind_ != KeyKind::box) {
    all.key = columns(at);
    for (std::int64_t c = Tile::columns; c < count; c += Tile::columns)
      all.key.include(columns(at + c));
    return all;
  }
  all.box.assign(column_box(at), column_box(at) + 2 * width_);
  for (std::int64_t c = Tile::columns; c < count; c += Tile::columns) {
    const float* const box = column_box(at + c);
    for (std::size_t f = 0; f < all.box.size(); f += 2) {
      all.box[f] = std::min(all.box[f], box[f]);
      all.box[f + 1] = std::max(all.box[f + 1], box[f + 1]);
    }
  }
  return all;
}

float KeyTiles::limit_of(double reach) const {
  if (kind_ != KeyKind::box) return float_up(reach);
  if (reach < 0.0) return -1.0f;
  if (width_ > kMostSummed) return kFloatInfinity;
  const double units = reach / unit_;
  const double most = rule_.gaps == Accumulation::squared_difference
                          ? units * units + rounding_
                          : units;
  // Of the gaps' roundings each is 2^-24 of the sum.
  const double rounding = static_cast<double>(width_ + 8) * 0x1p-22;
  const double limit = most * (1.0 + rounding) + 1e-30;
  return limit < HUGE_VAL ? float_up(limit) : kFloatInfinity;
}

bool KeyTiles::farther(const Span& a, const Span& b, float limit) const {
  return kind_ == KeyKind::box
             ? rule_.between(a.box.data(), b.box.data(), a.box.size()) > limit
             : cpu::farther(kind_, a.key, b.key, static_cast<double>(limit));
}

float KeyTiles::between(const Span& a, const Span& b) const {
  if (kind_ != KeyKind::box) {
    const float middles = static_cast<float>(
        std::fabs(a.key.low + a.key.high - b.key.low - b.key.high));
    // A NaN has no place in an order. Unbounded keys are near all others.
    return middles < HUGE_VALF ? middles : 0.0f;
  }
  float plain = 0.0f, mirrored = 0.0f;
  for (std::size_t f = 0; f < a.box.size(); f += 2) {
    const float own = a.box[f] + a.box[f + 1], other = b.box[f] + b.box[f + 1];
    plain += (own - other) * (own - other);
    mirrored += (own + other) * (own + other);
  }
  if (!rule_.has_mirrored()) return plain;
  return rule_.has_plain() ? std::min(plain, mirrored) : mirrored;
}

TileLabels::TileLabels(const std::vector<std::int32_t>& label_at) {
  const auto gather = [&](std::vector<std::int32_t>& tiles, std::size_t size) {
    for (std::size_t p = 0; p < label_at.size(); ++p)
      if (p % size == 0)
        tiles.push_back(label_at[p]);
      else if (label_at[p] != tiles.back())
        tiles.back() = -1;
  };
  gather(rows_, Tile::rows);
  gather(columns_, Tile::columns);
  rows_.resize((rows_.size() / Tile::panel + 2) * Tile::panel, -1);
}

ChunkSpans::ChunkSpans(const KeyTiles& tiles, std::int64_t num_points,
                       std::int64_t chunk_size)
    : tiles_(tiles),
      num_points_(num_points),
      chunk_size_(chunk_size),
      limit_(static_cast<std::size_t>((num_points + chunk_size - 1) /
                                      chunk_size)) {
  for (std::atomic<float>& limit : limit_) limit = kFloatInfinity;
  renew();
}

void ChunkSpans::renew() {
  spans_.clear();
  for (std::int64_t first = 0; first < num_points_; first += chunk_size_)
    spans_.push_back(
        tiles_.of(first, std::min(chunk_size_, num_points_ - first)));
}

float limit_of(const KeyTiles& tiles, const FilterScale& scale,
               const std::int32_t* threshold, std::int64_t count) {
  return tiles.limit_of(
      scale.form->reach(scale, loosest(*scale.form, threshold, count)));
}

std::vector<ChunkPair> near_chunks(const ChunkSpans& rows,
                                   const ChunkSpans& columns, bool symmetric,
                                   int num_threads) {
  constexpr std::size_t kFirst = 8;
  std::vector<std::vector<ChunkPair>> of(static_cast<std::size_t>(rows.size()));
  run_pieces(rows.size(), num_threads, {}, [&] {
    return [&](std::int64_t row) {
      std::vector<ChunkPair>& near = of[static_cast<std::size_t>(row)];
      for (std::int64_t c = symmetric ? row : 0; c < columns.size(); ++c) {
        const float limit = std::max(rows.limit(row), columns.limit(c));
        if (rows.tiles().farther(rows[row], columns[c], limit)) continue;
        near.push_back({static_cast<std::int32_t>(row),
                        static_cast<std::int32_t>(c),
                        symmetric && c == row
                            ? -1.0f
                            : rows.tiles().between(rows[row], columns[c])});
      }
    };
  });
  /// The distances of a chunk's nearest partners, the farthest first.
  struct Nearest {
    bool wanted = false;  ///< its points take neighbours
    std::vector<float> heap;

    void add(float between) {
      if (!wanted) return;
      if (heap.size() == kFirst) {
        if (!(between < heap.front())) return;
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
      }
      heap.push_back(between);
      std::push_heap(heap.begin(), heap.end());
    }
    bool has(float between) const {
      return wanted && !(between > heap.front());
    }
  };
  const auto nearest_of = [](const ChunkSpans& spans) {
    std::vector<Nearest> all(static_cast<std::size_t>(spans.size()));
    for (std::int64_t c = 0; c < spans.size(); ++c)
      all[static_cast<std::size_t>(c)].wanted = spans.limit(c) >= 0.0f;
    return all;
  };
  std::vector<Nearest> of_rows = nearest_of(rows), others;
  if (!symmetric) others = nearest_of(columns);
  std::vector<Nearest>& of_columns = symmetric ? of_rows : others;
  std::vector<ChunkPair> pairs;
  for (std::vector<ChunkPair>& near : of) {
    for (const ChunkPair& pair : near) {
      of_rows[static_cast<std::size_t>(pair.row)].add(pair.between);
      of_columns[static_cast<std::size_t>(pair.column)].add(pair.between);
    }
    pairs.insert(pairs.end(), near.begin(), near.end());
    near = {};
  }
  const auto end =
      std::partition(pairs.begin(), pairs.end(), [&](const ChunkPair& pair) {
        return of_rows[static_cast<std::size_t>(pair.row)].has(pair.between) ||
               of_columns[static_cast<std::size_t>(pair.column)].has(
                   pair.between);
      });
  const auto by_place = [](const ChunkPair& a, const ChunkPair& b) {
    return a.row < b.row || (a.row == b.row && a.column < b.column);
  };
  std::sort(pairs.begin(), end, [&](const ChunkPair& a, const ChunkPair& b) {
    return a.between < b.between || (a.between == b.between && by_place(a, b));
  });
  std::sort(end, pairs.end(), [&](const ChunkPair& a, const ChunkPair& b) {
    return a.row != b.row ? a.row < b.row
                          : a.between < b.between ||
                                (a.between == b.between && a.column < b.column);
  });
  return pairs;
}

SortedPoints::SortedPoints(KeyKind kind, PointKeys keys,
                           const PreparedPoints& points, const FilterRows& rows,
                           int num_threads)
    : kind_(kind),
      keys_(std::move(keys)),
      rows_(rows),
      num_threads_(num_threads),
      place_at_(static_cast<std::size_t>(points.size())) {
  for (std::size_t p = 0; p < place_at_.size(); ++p)
    place_at_[p] = static_cast<std::int32_t>(p);
  const auto low = [&](std::int32_t place) {
    return keys_[static_cast<std::size_t>(place)].low;
  };
  std::sort(place_at_.begin(), place_at_.end(),
            [&](std::int32_t a, std::int32_t b) {
              return low(a) < low(b) || (low(a) == low(b) && a < b);
            });
  arrange();
}

void SortedPoints::arrange() {
  filter_ = FilterRows();
  filter_ = reordered(rows_, place_at_, num_threads_);
  tiles_ = KeyTiles(kind_, keys_, place_at_);
}

void SortedPoints::sort_by_limits(const std::vector<double>& limit) {
  const std::int64_t n = static_cast<std::int64_t>(place_at_.size());
  const std::int64_t size =
      std::min(kStratum, (n / kStrata / Tile::columns + 1) * Tile::columns);
  const auto of = [&](std::int32_t place) {
    return limit[static_cast<std::size_t>(place)];
  };
  for (std::int64_t first = 0; first < n; first += size)
    std::stable_sort(
        place_at_.begin() + first,
        place_at_.begin() + std::min(n, first + size),
        [&](std::int32_t a, std::int32_t b) { return of(a) < of(b); });
  arrange();
}

}  // namespace cpu
}  // namespace fsknn
