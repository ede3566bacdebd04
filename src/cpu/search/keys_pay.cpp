#include "cpu/search/keys_pay.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "cpu/filter/sampled_pairs.hpp"
#include "cpu/search/tree.hpp"

namespace fsknn {
namespace cpu {
namespace {

// The least number of pairs times features: fewer are filtered in a few
// milliseconds.
constexpr double kLeastWork = 0x1p27;
constexpr std::int64_t kLeastPoints = 1000;
// The least number of rows times points, for rows of length 1. Of the
// correlations of genes boxes prune none, and with fewer pairs the sample would
// take 1% of the search.
constexpr double kLeastUnitPairs = 0x1p27;
// If the boxes of this many rows prune no pair (or, for queries, one), those of
// more rows are not made.
constexpr std::size_t kFirstRows = 6;
// The largest share of pairs left for which keys pay. Computing keys and
// reordering rows cost some hundredths of the filter.
constexpr double kMostLeft = 0.8;
constexpr std::size_t kRowsWithin = 100;

// Limits are this much larger, on average, when a tile is looked at than in the
// end.
constexpr double kLooser = 1.1;

/// Stores the box [padded][2] around some points.
void box_around(const PreparedPoints& points,
                const std::vector<std::int32_t>& places, double* box) {
  for (std::int64_t f = 0; f < 2 * points.padded; f += 2) {
    box[f] = HUGE_VAL;
    box[f + 1] = -HUGE_VAL;
  }
  FilterReader row(points);
  for (const std::int32_t place : places) {
    const double* const x = row(Place{place});
    for (std::int64_t f = 0; f < points.padded; ++f) {
      box[2 * f] = std::min(box[2 * f], x[f]);
      box[2 * f + 1] = std::max(box[2 * f + 1], x[f]);
    }
  }
}

/// A returned distance in the units of FilterForm::reach().
double reach_of(const MetricEntry& metric, const DistanceRule& rule,
                double distance) {
  const double reach = compared(metric, rule, distance);
  return metric.is_unit_dot() ? std::sqrt(2.0 * std::max(0.0, reach)) : reach;
}

}  // namespace

std::vector<SampledRow> sampled_rows(const MetricEntry& metric,
                                     const DistanceRule& rule,
                                     const Kernels& kernels,
                                     const PreparedPoints& points,
                                     const PreparedPoints* queries,
                                     std::int64_t k) {
  const SampledPairs sample(metric, rule, kernels, points, queries, k);
  std::vector<std::vector<double>> seen(
      static_cast<std::size_t>(sample.num_rows()));
  sample.each([](Place, const double*) {},
              [&](std::int64_t i, double distance) {
                seen[static_cast<std::size_t>(i)].push_back(distance);
              });
  std::vector<SampledRow> rows;
  const std::size_t nearest = static_cast<std::size_t>(sample.nearest());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    double limit = HUGE_VAL;
    if (seen[i].size() >= nearest) {
      const auto farthest =
          seen[i].begin() + static_cast<std::ptrdiff_t>(nearest - 1);
      std::nth_element(seen[i].begin(), farthest, seen[i].end());
      limit = reach_of(metric, rule, *farthest);
    }
    rows.push_back({sample.place_of_row(static_cast<std::int64_t>(i)), limit});
  }
  return rows;
}

std::vector<SampledRow> rows_within(const MetricEntry& metric,
                                    const DistanceRule& rule,
                                    const std::vector<double>& limit) {
  const std::size_t count = std::min(kRowsWithin, limit.size());
  std::vector<SampledRow> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * limit.size() / count;
    rows.push_back({Place{static_cast<std::int64_t>(at)},
                    reach_of(metric, rule, limit[at])});
  }
  return rows;
}

std::vector<double> low_ends(const PointKeys& keys) {
  std::vector<double> low;
  low.reserve(keys.size());
  for (const KeyRange& key : keys) low.push_back(key.low);
  std::sort(low.begin(), low.end());
  return low;
}

double share_by_keys(KeyKind kind, const std::vector<SampledRow>& rows,
                     const PointKeys& row_keys,
                     const std::vector<double>& low) {
  if (low.empty() || rows.empty()) return 1.0;
  // first to end are the keys that this row's key does not prune. If all of one
  // side remain, the range extends to that end of the points.
  double left = 0.0;
  for (const SampledRow& row : rows) {
    const KeyRange& of_row =
        row_keys[static_cast<std::size_t>(row.place.value)];
    for (const SampledRow& other : rows) {
      const double reach = std::max(row.reach, other.reach);
      const auto is_pruned = [&](double key) {
        return apart(kind, of_row, {key, key}, reach);
      };
      const auto own = std::lower_bound(low.begin(), low.end(), of_row.low);
      const auto first = std::partition_point(low.begin(), own, is_pruned);
      const auto end = std::partition_point(
          own, low.end(), [&](double key) { return !is_pruned(key); });
      left += static_cast<double>(end - first);
    }
  }
  const double pairs = static_cast<double>(rows.size()) *
                       static_cast<double>(rows.size()) *
                       static_cast<double>(low.size());
  // Tiles hold rows whose keys differ by up to a stratum, which adds pairs.
  const double wide =
      2.0 * static_cast<double>(kStratum) / static_cast<double>(low.size());
  return std::min(1.0, left / pairs + std::min(wide, 2.0 / kStrata));
}

double share_by_boxes(const MetricEntry& metric,
                      const std::vector<SampledRow>& rows,
                      const PreparedPoints& points,
                      const PreparedPoints* queries, int num_threads) {
  if (rows.empty()) return 1.0;
  if (rows.size() >= 2 * kFirstRows) {
    std::vector<SampledRow> first;
    for (std::size_t i = 0; i < kFirstRows; ++i)
      first.push_back(rows[i * rows.size() / kFirstRows]);
    if (share_by_boxes(metric, first, points, queries, num_threads) == 1.0)
      return 1.0;
  }
  std::vector<Place> of_rows, of_columns;
  for (const SampledRow& row : rows) of_rows.push_back(row.place);
  for (std::size_t i = 0; i < rows.size() && queries != nullptr; ++i)
    of_columns.push_back(sampled(points, static_cast<std::int64_t>(i),
                                 static_cast<std::int64_t>(rows.size())));
  const std::int64_t width = 2 * points.padded;
  const std::int64_t size = static_cast<std::int64_t>(rows.size()) * width;
  Buffer<double> tiles(size), columns(size);
  const auto take = [&](const PreparedPoints& from,
                        const std::vector<Place>& of, double* row_box,
                        double* column_box) {
    for (const TreeTiles& near : tree_tiles(from, of, num_threads)) {
      if (row_box != nullptr) box_around(from, near.rows, row_box);
      if (column_box != nullptr) box_around(from, near.columns, column_box);
      row_box += row_box != nullptr ? width : 0;
      column_box += column_box != nullptr ? width : 0;
    }
  };
  if (queries == nullptr) {
    take(points, of_rows, tiles.data(), columns.data());
  } else {
    take(*queries, of_rows, tiles.data(), nullptr);
    take(points, of_columns, nullptr, columns.data());
  }
  const BoxRule box_rule(metric);
  const bool squared = box_rule.gaps == Accumulation::squared_difference;
  double left = 0.0, pairs = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (queries == nullptr && i == j) continue;
      const double reach = queries == nullptr
                               ? std::max(rows[i].reach, rows[j].reach)
                               : rows[i].reach;
      const double gap = box_rule.between(
          tiles.data() + static_cast<std::int64_t>(i) * width,
          columns.data() + static_cast<std::int64_t>(j) * width,
          static_cast<std::size_t>(width));
      left += !(gap > (squared ? kLooser * kLooser * reach * reach
                               : kLooser * reach));
      ++pairs;
    }
  // The tiles near a row's own are rarely among the sampled ones.
  return std::min(1.0, pairs > 0.0 ? left / pairs + 1.0 / kStrata : 1.0);
}

bool keys_may_pay(const MetricEntry& metric, const PreparedPoints& rows,
                  const PreparedPoints& points) {
  const double pairs =
      static_cast<double>(rows.size()) * static_cast<double>(points.size());
  return points.size() >= kLeastPoints &&
         pairs * static_cast<double>(points.padded) >= kLeastWork &&
         (!metric.is_unit_dot() || pairs >= kLeastUnitPairs);
}

bool keys_pay(double share) { return share < kMostLeft; }

}  // namespace cpu
}  // namespace fsknn
