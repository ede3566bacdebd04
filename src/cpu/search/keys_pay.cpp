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

std::vector<SampledRow> sampled_rows(
    const MetricEntry& metric, const DistanceRule& rule, const Kernels& kernels,
    const PreparedPoints& points, const PreparedPoints* queries,
    const PointGroups* groups, std::int64_t k) {
  const SampledPairs sample(metric, rule, kernels, points, queries, k);
  const auto group_at = [&](Place place) {
    return groups == nullptr ? 0
                             : groups->of()[static_cast<std::size_t>(
                                   points.order.id_at(place).value)];
  };
  const std::size_t num_lists =
      static_cast<std::size_t>(groups == nullptr ? 1 : groups->num_lists());
  std::vector<SampledRow> rows;
  for (std::int64_t i = 0; i < sample.num_rows(); ++i) {
    const Place place = sample.place_of_row(i);
    rows.push_back({place, HUGE_VAL, groups == nullptr ? 0 : group_at(place)});
  }
  // [rows][lists]
  std::vector<std::vector<double>> seen(rows.size() * num_lists);
  std::int32_t of_column = 0;
  const auto list_of = [&](const SampledRow& row, std::int32_t group) {
    return groups == nullptr ? 0 : groups->list_of(row.group, group);
  };
  sample.each(
      [&](Place at, const double*) { of_column = group_at(at); },
      [&](std::int64_t i, double distance) {
        const std::size_t row = static_cast<std::size_t>(i);
        const std::int64_t list = list_of(rows[row], of_column);
        if (list >= 0)
          seen[row * num_lists + static_cast<std::size_t>(list)].push_back(
              distance);
      });
  const std::size_t nearest = static_cast<std::size_t>(sample.nearest());
  const auto reach_in = [&](std::vector<double>& distance) {
    if (distance.size() < nearest) return HUGE_VAL;
    const auto farthest =
        distance.begin() + static_cast<std::ptrdiff_t>(nearest - 1);
    std::nth_element(distance.begin(), farthest, distance.end());
    return reach_of(metric, rule, *farthest);
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (groups == nullptr) rows[i].reach = reach_in(seen[i]);
    for (std::int32_t g = 0; groups != nullptr && g < groups->count(); ++g) {
      const std::int64_t list = list_of(rows[i], g);
      rows[i].reach_in.push_back(
          list < 0
              ? -HUGE_VAL
              : reach_in(seen[i * num_lists + static_cast<std::size_t>(list)]));
    }
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
        return farther(kind, of_row, {key, key}, reach);
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

namespace {

/// Pairs of tiles, and those that boxes do not prune.
struct TilePairs {
  double left = 0.0, all = 0.0;

  double share() const {
    // The tiles near a row's own are rarely among the sampled ones.
    return std::min(1.0, all > 0.0 ? left / all + 1.0 / kStrata : 1.0);
  }
};

TilePairs tiles_left(const MetricEntry& metric,
                     const std::vector<SampledRow>& rows, const BoxedPoints& of,
                     int num_threads) {
  const PreparedPoints& points = of.points;
  const bool graph = of.queries == nullptr;
  const std::int64_t width = 2 * points.padded;
  const std::int64_t size = static_cast<std::int64_t>(rows.size()) * width;
  Buffer<double> tiles(size), columns(size);
  // Stores the boxes of the tiles, in one tree, of the samples with these
  // numbers.
  const auto take =
      [&](const PreparedPoints& from, std::vector<std::int32_t> places,
          const std::vector<std::size_t>& numbers, const std::vector<Place>& at,
          bool as_rows, bool as_columns) {
        const std::vector<TreeTiles> near =
            tree_tiles(from, std::move(places), at, num_threads);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const std::int64_t to = static_cast<std::int64_t>(numbers[i]) * width;
          if (as_rows) box_around(from, near[i].rows, tiles.data() + to);
          if (as_columns)
            box_around(from, near[i].columns, columns.data() + to);
        }
      };
  const std::size_t num_trees = std::max<std::size_t>(1, of.trees.size());
  for (std::size_t tree = 0; tree < num_trees; ++tree) {
    std::vector<std::size_t> numbers;
    std::vector<Place> of_rows, of_columns;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (num_trees > 1 && static_cast<std::size_t>(rows[i].group) != tree)
        continue;
      numbers.push_back(i);
      of_rows.push_back(rows[i].place);
      if (!graph)
        of_columns.push_back(sampled(points, static_cast<std::int64_t>(i),
                                     static_cast<std::int64_t>(rows.size())));
    }
    if (numbers.empty()) continue;
    if (graph) {
      take(points, of.trees.empty() ? all_places(points) : of.trees[tree],
           numbers, of_rows, true, true);
    } else {
      take(*of.queries, all_places(*of.queries), numbers, of_rows, true, false);
      take(points, all_places(points), numbers, of_columns, false, true);
    }
  }
  const BoxRule box_rule(metric);
  const bool squared = box_rule.gaps == Accumulation::squared_difference;
  TilePairs pairs;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (graph && i == j) continue;
      const double own = rows[i].reach_to(rows[j]);
      const double reach =
          of.both ? std::max(own, rows[j].reach_to(rows[i])) : own;
      if (reach == -HUGE_VAL) continue;  // points of one group do not meet
      const double gap = box_rule.between(
          tiles.data() + static_cast<std::int64_t>(i) * width,
          columns.data() + static_cast<std::int64_t>(j) * width,
          static_cast<std::size_t>(width));
      pairs.left += !(gap > (squared ? kLooser * kLooser * reach * reach
                                     : kLooser * reach));
      ++pairs.all;
    }
  return pairs;
}

}  // namespace

double share_by_boxes(const MetricEntry& metric,
                      const std::vector<SampledRow>& rows,
                      const BoxedPoints& of, int num_threads) {
  if (rows.empty()) return 1.0;
  if (rows.size() >= 2 * kFirstRows) {
    std::vector<SampledRow> first;
    for (std::size_t i = 0; i < kFirstRows; ++i)
      first.push_back(rows[i * rows.size() / kFirstRows]);
    // All of these may be of one group, whose points do not meet.
    const TilePairs few = tiles_left(metric, first, of, num_threads);
    if (few.all > 0.0 && few.share() == 1.0) return 1.0;
  }
  return tiles_left(metric, rows, of, num_threads).share();
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
