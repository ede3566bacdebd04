#include "cpu/search/engine.hpp"

#include <algorithm>
#include <bitset>
#include <limits>

#include "core/base/pieces.hpp"
#include "core/contract/masked.hpp"
#include "core/contract/metrics.hpp"
#include "core/contract/scaling.hpp"
#include "core/rows/masked_points.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/subset.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr std::int64_t kPairsAtOnce = 1024;

/// The points of the pairs, ascending, each once.
std::vector<std::int32_t> points_of(const ListedPairs& pairs) {
  std::vector<std::int32_t> points = pairs.from;
  points.insert(points.end(), pairs.to.begin(), pairs.to.end());
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

/// Calls fill(first, count, places) for ranges of pairs. A pair's places are -1
/// for a point that the order omits.
template <class Fill>
void for_pairs(const ListedPairs& pairs,
               const std::vector<std::int32_t>& points, const PointOrder& order,
               std::int64_t padded, int num_threads, Progress* progress,
               Fill fill) {
  const std::int64_t count = static_cast<std::int64_t>(pairs.from.size());
  const auto place = [&](std::int32_t point) {
    const auto at = std::lower_bound(points.begin(), points.end(), point);
    return order.place[static_cast<std::size_t>(at - points.begin())];
  };
  const double operations =
      static_cast<double>(count) * static_cast<double>(padded);
  run_pieces(
      (count + kPairsAtOnce - 1) / kPairsAtOnce,
      useful_threads(num_threads, operations), {progress, 0.0, 1.0}, [&] {
        return [&, there = std::vector<Pair>(),
                at = std::vector<std::size_t>()](std::int64_t piece) mutable {
          there.clear();
          at.clear();
          const std::int64_t first = piece * kPairsAtOnce;
          const std::int64_t end = std::min(count, first + kPairsAtOnce);
          for (std::int64_t p = first; p < end; ++p) {
            const std::size_t i = static_cast<std::size_t>(p);
            const Pair pair = {place(pairs.from[i]), place(pairs.to[i])};
            if (pair.row < 0 || pair.column < 0) continue;
            there.push_back(pair);
            at.push_back(i);
          }
          if (!there.empty()) fill(there, at);
        };
      });
}

void measure_masked(const Request& request, const MaskedRule& rule,
                    const RowSource& some,
                    const std::vector<std::int32_t>& points,
                    const std::vector<std::int64_t>& skip, ListedPairs& pairs,
                    Progress* progress) {
  const Kernels& kernels = choose_kernels(request.instruction_set);
  const MaskedPoints rows =
      prepare_masked(some, rule, skip, false, request.num_threads, progress);
  pairs.common.assign(pairs.from.size(), 0);
  for_pairs(
      pairs, points, rows.order, rows.padded, request.num_threads, progress,
      [&](const std::vector<Pair>& there, const std::vector<std::size_t>& at) {
        std::vector<double> found(there.size());
        kernels.masked(rule.terms(), rows.rows.data(), rows.rows.data(),
                       rows.padded, there.data(),
                       static_cast<std::int64_t>(there.size()), found.data());
        for (std::size_t p = 0; p < there.size(); ++p) {
          const std::uint64_t* a = rows.mask(Place{there[p].row});
          const std::uint64_t* b = rows.mask(Place{there[p].column});
          std::size_t common = 0;
          for (std::int64_t w = 0; w < rows.words; ++w)
            common += std::bitset<64>(a[w] & b[w]).count();
          pairs.common[at[p]] = static_cast<std::int32_t>(common);
          if (!has_value(found[p])) continue;
          const double value = rule.value(found[p]);
          if (rule.correlates()) pairs.correlation[at[p]] = value;
          pairs.distance[at[p]] = rule.distance(value);
          if (!rule.has_tables()) continue;
          pairs.similarity[at[p]] = found[p];
          masked_table(masked_sums<ScalarLanes>(
                           rows.row(Place{there[p].row}),
                           rows.row(Place{there[p].column}), rows.padded),
                       rule.terms(), pairs.entry[at[p]]);
        }
      });
}

}  // namespace

void measure_pairs(const Request& asked, const RowSource& points,
                   ListedPairs& pairs, Progress* progress) {
  const Request request = suited(asked, points, nullptr, progress);
  const double none = std::numeric_limits<double>::quiet_NaN();
  pairs.distance.assign(pairs.from.size(), none);
  pairs.correlation.assign(pairs.from.size(), none);
  pairs.similarity.assign(pairs.from.size(), none);
  pairs.entry.assign(request.metric->is_table() ? pairs.from.size() : 0, -1);
  const std::vector<std::int32_t> numbers = points_of(pairs);
  const std::vector<std::int64_t> skip = positions_in(numbers, request.skip);
  const RowSubset some(points, numbers);
  if (request.na_pairwise)
    return measure_masked(request,
                          MaskedRule(request, points, nullptr, progress), some,
                          numbers, skip, pairs, progress);
  const MetricEntry& metric = *request.metric;
  const Kernels& kernels = choose_kernels(request.instruction_set);
  // All points share one power of two, also those that are in no pair.
  const int exponent =
      common_exponent(request, points, nullptr, request.num_threads);
  const DistanceRule rule(metric, exponent);
  const PreparedPoints rows =
      prepare_points(some, recipe_of(request, exponent), skip, false,
                     kernels.prepare_row, request.num_threads, progress);
  for_pairs(
      pairs, numbers, rows.order, rows.padded, request.num_threads, progress,
      [&](const std::vector<Pair>& there, const std::vector<std::size_t>& at) {
        std::vector<double> sum(there.size());
        kernels.exact(metric.accumulation, rows.rows.data(), rows.rows.data(),
                      rows.padded, there.data(),
                      static_cast<std::int64_t>(there.size()), sum.data());
        for (std::size_t p = 0; p < there.size(); ++p) {
          const double a = rows.sums[there[p].row];
          const double b = rows.sums[there[p].column];
          if (metric.is_unit_dot())
            pairs.correlation[at[p]] = rule.correlation(sum[p], a, b);
          if (metric.rounds_similarity())
            pairs.similarity[at[p]] = metric.similarity(sum[p], a, b);
          if (metric.is_table())
            AlleleTable::largest_entry(
                AlleleTable::complete(sum[p], a, b, metric.table), metric.table,
                pairs.entry[at[p]]);
          pairs.distance[at[p]] = rule(sum[p], a, b);
        }
      });
}

}  // namespace cpu
}  // namespace fsknn
