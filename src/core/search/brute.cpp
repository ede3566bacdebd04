#include "core/search/brute.hpp"

#include <vector>

#include "core/base/errors.hpp"
#include "core/base/poll.hpp"
#include "core/base/select.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/masked_points.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/by_groups.hpp"

namespace fsknn {

void brute_force(const Request& asked, const RowSource& points,
                 const RowSource* queries, const Neighbours& out) {
  const Request request = suited(asked, points, queries);
  if (request.groups != nullptr)
    return find_by_groups(
        request, points, queries, out, nullptr, nullptr,
        [&](const Request& part, const RowSource* rows, const Neighbours& to,
            Progress*, Stats*) { brute_force(part, points, rows, to); });
  if (request.na_pairwise)
    return brute_force_masked(request, points, queries, out);
  const MetricEntry& metric = *request.metric;
  const int exponent = common_exponent(request, points, queries, 1);
  const DistanceRule rule(metric, exponent);
  const RowRecipe recipe = recipe_of(request, exponent);
  const PreparedPoints columns = prepare_points(
      points, recipe, request.skip, false, &prepare_row<ScalarLanes>, 1);
  PreparedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_points(*queries, recipe, request.query_skip, false,
                              &prepare_row<ScalarLanes>, 1);
  const PreparedPoints& rows = queries != nullptr ? own_rows : columns;

  const std::vector<std::int32_t> self = self_by_place(request, rows.order);

  const std::size_t k = static_cast<std::size_t>(request.k);
  std::vector<double> distance(k);
  std::vector<std::int32_t> index(k);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const std::int32_t a = rows.order.place[static_cast<std::size_t>(i)];
    if (a < 0) {
      emit_missing(out, AnswerRow::of(i), request.k);
      continue;
    }
    NeighbourHeap heap(distance.data(), index.data(), request.k, 0);
    for (std::int32_t b = 0; b < columns.size(); ++b) {
      const PointId other = columns.order.id_at(Place{b});
      if (queries == nullptr
              ? a == b
              : !self.empty() &&
                    self[static_cast<std::size_t>(a)] == other.value)
        continue;
      const double sum = scalar_sum(metric.accumulation, rows.row(Place{a}),
                                    columns.row(Place{b}), columns.padded);
      poll_after(static_cast<double>(columns.padded));
      const double value = rule(sum, rows.sums[a], columns.sums[b]);
      heap.offer(value, other);
    }
    heap.sort();
    if (!is_in_range(distance[0]) || !is_in_range(distance[k - 1]))
      throw RangeFailure();
    std::int64_t at = out.at(AnswerRow::of(i), Rank{0});
    for (std::size_t r = 0; r < k; ++r, at += out.step()) {
      out.index[at] = index[r] + 1;
      out.distance[at] = distance[r];
      if (out.correlation != nullptr) {
        const Place b = columns.order.place_of(PointId{index[r]});
        out.correlation[at] =
            rule.correlation(scalar_sum(Accumulation::dot, rows.row(Place{a}),
                                        columns.row(b), columns.padded),
                             rows.sums[a], columns.sums[b.value]);
      }
    }
  }
}

}  // namespace fsknn
