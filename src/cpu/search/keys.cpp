#include "cpu/search/keys.hpp"

#include "core/base/pieces.hpp"
#include "cpu/filter/pack.hpp"

namespace fsknn {
namespace cpu {
namespace {

// Below these values rounding may exceed the allowed share of a row's sum, or
// its squares may underflow.
constexpr double kLeastSum = 0x1p-960;
constexpr double kLeastNorm = 0x1p-400;

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

}  // namespace

KeyKind key_kind(const MetricEntry& metric) {
  if (metric.filter == FilterKind::none) return KeyKind::none;
  if (metric.filter == FilterKind::difference) return KeyKind::sum;
  if (metric.filter == FilterKind::overlap) return KeyKind::share;
  return metric.accumulation == Accumulation::squared_difference
             ? KeyKind::norm
             : KeyKind::none;
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

KeyRange KeyTiles::of(std::int64_t at, std::int64_t count) const {
  KeyRange all = columns(at);
  for (std::int64_t c = Tile::columns; c < count; c += Tile::columns)
    all.include(columns(at + c));
  return all;
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
  for (const std::int32_t place : place_at_) sorted_.push_back(low(place));
  arrange();
}

void SortedPoints::arrange() {
  filter_ = FilterRows();
  filter_ = reordered(rows_, place_at_, num_threads_);
  tiles_ = KeyTiles(kind_, keys_, place_at_);
}

std::int64_t SortedPoints::before(const KeyRange& key) const {
  return std::lower_bound(sorted_.begin(), sorted_.end(), key.low) -
         sorted_.begin();
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
