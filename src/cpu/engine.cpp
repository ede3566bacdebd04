#include "cpu/engine.hpp"

#include <algorithm>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/errors.hpp"
#include "core/pieces.hpp"
#include "cpu/few.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/kernels.hpp"
#include "cpu/masked.hpp"
#include "cpu/search.hpp"
#include "cpu/streamed.hpp"

namespace fsknn {
namespace cpu {
namespace {

// How far the work is, roughly, when rows are prepared, and thresholds seeded.
constexpr double kPrepared = 0.02;
constexpr double kSeeded = 0.05;

}  // namespace

void find_neighbours(const Request& asked, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats) {
  if (asked.na_pairwise)
    return find_masked(asked, points, queries, out, progress, stats);
  const Clock::time_point start = Clock::now();
  const Kernels& kernels = choose_kernels(asked.instruction_set);
  const MetricEntry& metric = *asked.metric;
  const double rows_asked = static_cast<double>(
      queries != nullptr ? queries->num_points() : points.num_points());
  // The filter does some 16 products in one instruction.
  const int threads = useful_threads(
      asked.num_threads, rows_asked * static_cast<double>(points.num_points()) *
                             static_cast<double>(points.num_features()) / 16);
  Request request = asked;
  request.num_threads = threads;
  const int exponent = common_exponent(asked, points, queries, threads);
  if (few_queries(request, queries))
    return find_for_few(request, kernels, exponent, points, *queries, out,
                        progress, stats);
  if (points.on_disk() || (queries != nullptr && queries->on_disk()))
    return find_streamed(request, kernels, exponent, points, queries, out,
                         progress, stats);
  const DistanceRule rule(metric, exponent);
  const RowRecipe recipe = recipe_of(request, exponent);
  const PreparedPoints columns =
      prepare_points(points, recipe, request.skip, true,
                     kernels.prepare_row, threads, progress, false);
  PreparedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_points(*queries, recipe, request.query_skip, false,
                              kernels.prepare_row, threads, progress,
                              false);
  const PreparedPoints& rows = queries != nullptr ? own_rows : columns;

  PlanInput input = plan_input(request, columns.size(), columns.num_features,
                               queries != nullptr ? rows.size() : 0);
  input.rows_made = !columns.held();
  const Plan plan = plan_cpu(input);

  if (rows.size() == 0) {
    for (std::int64_t i = 0; i < out.rows; ++i)
      emit_missing(out, i, request.k);
    return;
  }
  const bool is_graph = queries == nullptr;
  FilterScale scale = choose_scale(metric, rule, kernels, columns,
                                   is_graph ? nullptr : &rows, threads);
  FilterRows column_filter = pack(scale, columns, threads, progress);
  FilterRows row_filter;
  double error = column_filter.error;
  if (!is_graph) {
    row_filter = pack(scale, rows, threads, progress);
    error = std::max(error, row_filter.error);
  }
  set_slack(scale, error, columns.padded);
  complete(scale, column_filter);
  if (!is_graph) complete(scale, row_filter);
  const PointBlock all_columns = {&columns, &column_filter};
  const PointBlock all_rows =
      is_graph ? all_columns : PointBlock{&rows, &row_filter};
  Search search(request, plan, kernels, rule, scale, is_graph, rows.size(),
                progress);
  const double seconds_prepare = seconds_since(start);
  search.seed(all_rows, all_columns, kPrepared, kSeeded);
  search.meet(all_rows, all_columns, kSeeded, 1.0);
  const double seconds_search = seconds_since(start) - seconds_prepare;
  if (!search.emit(out, rows.order.place, &rows, &columns))
    throw RangeFailure();
  if (stats != nullptr) {
    stats->pairs_filtered = search.counts().filtered;
    stats->filtered = stats->pairs_filtered > 0;
    stats->pairs_exact = search.counts().exact;
    stats->seconds_prepare = seconds_prepare;
    stats->seconds_search = seconds_search;
    stats->seconds_emit =
        seconds_since(start) - seconds_prepare - seconds_search;
  }
}

int num_processors() {
#ifdef _OPENMP
  return std::max(1, omp_get_num_procs());
#else
  return 1;
#endif
}

}  // namespace cpu
}  // namespace fsknn
