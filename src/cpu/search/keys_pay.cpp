#include "cpu/search/keys_pay.hpp"

#include <algorithm>
#include <string>

#include "cpu/filter/sampled_pairs.hpp"

namespace fsknn {
namespace cpu {
namespace {

// The least number of pairs times features: fewer are filtered in a few
// milliseconds.
constexpr double kLeastWork = 0x1p27;
constexpr std::int64_t kLeastPoints = 1000;
// The largest share of pairs left for which keys pay. Computing keys and
// reordering rows cost some hundredths of the filter.
constexpr double kMostLeft = 0.8;
constexpr std::size_t kRowsWithin = 100;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

AskedOrder asked_order(const Request& request) {
  if (ends_with(request.instruction_set, "/sorted")) return AskedOrder::sorted;
  return ends_with(request.instruction_set, "/scattered")
             ? AskedOrder::scattered
             : AskedOrder::as_it_pays;
}

std::vector<KeyedRow> sampled_rows(const MetricEntry& metric,
                                   const DistanceRule& rule,
                                   const Kernels& kernels,
                                   const PreparedPoints& points,
                                   const PreparedPoints* queries,
                                   const PointKeys& keys, std::int64_t k) {
  const SampledPairs sample(metric, rule, kernels, points, queries, k);
  std::vector<std::vector<double>> seen(
      static_cast<std::size_t>(sample.num_rows()));
  sample.each([](Place, const double*) {},
              [&](std::int64_t i, double distance) {
                seen[static_cast<std::size_t>(i)].push_back(distance);
              });
  std::vector<KeyedRow> rows;
  const std::size_t nearest = static_cast<std::size_t>(sample.nearest());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    double limit = HUGE_VAL;
    if (seen[i].size() >= nearest) {
      const auto farthest =
          seen[i].begin() + static_cast<std::ptrdiff_t>(nearest - 1);
      std::nth_element(seen[i].begin(), farthest, seen[i].end());
      limit = compared(metric, rule, *farthest);
    }
    const Place at = sample.place_of_row(static_cast<std::int64_t>(i));
    rows.push_back({keys[static_cast<std::size_t>(at.value)], limit});
  }
  return rows;
}

std::vector<KeyedRow> rows_within(const MetricEntry& metric,
                                  const DistanceRule& rule,
                                  const std::vector<double>& limit,
                                  const PointKeys& keys) {
  const std::size_t count = std::min(kRowsWithin, limit.size());
  std::vector<KeyedRow> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * limit.size() / count;
    rows.push_back({keys[at], compared(metric, rule, limit[at])});
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

double share_by_keys(KeyKind kind, const std::vector<KeyedRow>& rows,
                     const std::vector<double>& low) {
  if (low.empty() || rows.empty()) return 1.0;
  // first to end are the keys that this row's key does not prune. If all of one
  // side remain, the range extends to that end of the points.
  double left = 0.0;
  for (const KeyedRow& row : rows) {
    for (const KeyedRow& other : rows) {
      const double reach = std::max(row.reach, other.reach);
      const auto is_pruned = [&](double key) {
        return apart(kind, row.key, {key, key}, reach);
      };
      const auto own = std::lower_bound(low.begin(), low.end(), row.key.low);
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

bool keys_may_pay(const PreparedPoints& rows, const PreparedPoints& points) {
  return points.size() >= kLeastPoints &&
         static_cast<double>(rows.size()) * static_cast<double>(points.size()) *
                 static_cast<double>(points.padded) >=
             kLeastWork;
}

bool keys_pay(double share) { return share < kMostLeft; }

}  // namespace cpu
}  // namespace fsknn
