#include <algorithm>
#include <memory>

#include "core/base/errors.hpp"
#include "core/base/pieces.hpp"
#include "core/rows/made_rows.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/by_groups.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/missing/find_masked.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/all_pairs.hpp"
#include "cuda/search/engine.hpp"
#include "cuda/search/graph_by_filter_panels.hpp"
#include "cuda/search/groups_by_filter.hpp"

namespace fsknn {
namespace cuda {
namespace {

std::int64_t size_without(const RowSource& points,
                          const std::vector<std::int64_t>& skip) {
  return points.num_points() - static_cast<std::int64_t>(skip.size());
}

/// Checks that there is enough memory for a plan that cannot be made smaller.
void check_fits(const Plan& plan, double bytes_usable, int device) {
  if (plan.streamed && bytes_usable > 0 && plan.bytes_peak > bytes_usable)
    throw PlanFailure(PlanFailure::Held::two_chunks, plan.bytes_peak,
                      bytes_usable, device);
}

CudaPlan make_plan(const Request& request, const RowSource& points,
                   const RowSource* queries, const Neighbours& out,
                   const UsedDevices& gpus, const PointStore& store) {
  // Memory of the store counts as free: it is reused or released.
  const GpuFacts facts =
      facts_of(store.as_if_free(gpus.all()), request.max_device_memory);
  PlanInput input = plan_input(
      request, size_without(points, request.skip), points.num_features(),
      queries == nullptr ? 0 : size_without(*queries, request.query_skip));
  input.num_given = points.num_points();
  input.bytes_made_from =
      bytes_made_from(points) +
      (queries == nullptr ? 0.0 : bytes_made_from(*queries));
  // Points and queries each have a basis of their own for preparation.
  if (request.covariates != nullptr)
    input.bytes_made_from += 2.0 * request.covariates->bytes();
  input.num_workers = Workers::at_once(gpus.count());
  input.held = store.held();
  input.correlation = out.correlation != nullptr;
  const CudaPlan plan = plan_cuda(input, facts);
  check_fits(plan, facts.bytes_usable(), gpus.id(0));
  return plan;
}

void emit_missing_rows(const PointOrder& order, const Neighbours& out,
                       std::int64_t k) {
  for (std::int64_t i = 0; i < out.rows; ++i)
    if (order.place[static_cast<std::size_t>(i)] < 0)
      emit_missing(out, AnswerRow::of(i), k);
}

/// The parts of a filtered search. No part is destroyed until all have
/// finished.
template <class Part>
struct FilterParts {
  explicit FilterParts(int count) : parts(static_cast<std::size_t>(count)) {}
  ~FilterParts() {
    for (const auto& part : parts)
      if (part) part->wait();
  }
  std::vector<std::unique_ptr<Part>> parts;
};

/// Runs the parts of a team, one for each device, with `pieces` of work in all.
template <class Part, class Team>
void run_team(const Search& search, Team& team, const UsedDevices& gpus,
              std::int64_t pieces, Progress* progress, Stats& stats) {
  Workers workers(progress, pieces);
  team.workers = &workers;
  FilterParts<Part> all(team.size());
  run_parts(workers, gpus, team.size(), stats, [&](int w) {
    std::unique_ptr<Part>& part = all.parts[static_cast<std::size_t>(w)];
    part.reset(new Part(search, team, w));
    part->run();
    return part->stats();
  });
}

/// Runs a filtered plan: each device has its blocks' slabs.
template <class Part>
void run_filtered(const Search& search, const UsedDevices& gpus,
                  Progress* progress, Stats& stats) {
  FilterTeam team(gpus.all(), Workers::at_once(search.plan.num_workers));
  run_team<Part>(search, team, gpus, Part::num_launches(team, search), progress,
                 stats);
}

/// Runs filtered queries: each device has an equal part of them.
void run_queries(const Search& search, const UsedDevices& gpus,
                 Progress* progress, Stats& stats) {
  const int count = search.plan.num_workers;
  const std::int64_t rows = search.rows.size();
  std::int64_t pieces = 0;
  for (int w = 0; w < count; ++w)
    pieces += QueriesByFilter::num_launches(
        search, rows * (w + 1) / count - rows * w / count);
  Workers workers(progress, pieces);
  run_parts(workers, gpus, count, stats, [&](int w) {
    QueriesByFilter part(search, workers);
    part.run(rows * w / count, rows * (w + 1) / count);
    return part.stats();
  });
}

/// Runs the float64 pass over all pairs: each device has its segment.
void run_segments(const Search& search, const UsedDevices& gpus,
                  Progress* progress, Stats& stats) {
  const Plan& plan = search.plan;
  Workers workers(progress, plan.num_chunks);
  run_parts(workers, gpus, plan.num_workers, stats, [&](int w) {
    workers.tell_chosen(FilterNumbers::none);
    AllPairs segment(search, workers);
    const Clock::time_point start = Clock::now();
    segment.run(w * plan.splits_per_segment,
                std::min((w + 1) * plan.splits_per_segment, plan.num_splits));
    Stats part;
    part.pairs_exact = segment.pairs();
    part.seconds_emit = segment.seconds_emit();
    part.seconds_device = seconds_since(start) - part.seconds_emit;
    return part;
  });
}

/// Makes a graph by groups in a single search, if that is possible. Returns
/// whether it did.
bool find_groups(const Request& request, const RowSource& points,
                 const Neighbours& out, Progress* progress, Stats* stats,
                 PointStore& store) {
  check_metric(*request.metric);
  const Clock::time_point start = Clock::now();
  const UsedDevices gpus(request.devices);
  if (size_without(points, request.skip) == 0) return false;
  const CudaPlan plan = make_plan(request, points, nullptr, out, gpus, store);
  if (!plan.groups_at_once) return false;
  const PointGroups& groups = *request.groups;
  const int exponent =
      common_exponent(request, points, nullptr, request.num_threads);
  PlacedPoints columns(points, request.skip, true);
  columns.order = order_by_group(groups, columns.order);
  emit_missing_rows(columns.order, out, request.k * groups.num_lists());
  const DistanceRule rule(*request.metric, exponent);
  const Search search = {
      request,     plan,        columns, columns, recipe_of(request, exponent),
      rule.undo(), rule.redo(), out,     nullptr, &store,
      nullptr};
  const GroupBlocks blocks(sizes_of(groups, request.skip));
  GroupTeam team(search, groups, blocks, gpus.all(),
                 Workers::at_once(plan.num_workers));
  const double seconds_prepare = seconds_since(start);
  Stats found;
  run_team<GroupsByFilter>(search, team, gpus, team.num_launches(), progress,
                           found);
  note(found, gpus, start, seconds_prepare, stats);
  return true;
}

}  // namespace

void find_neighbours(const Request& asked, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats) {
  const Request request = suited(asked, points, queries, progress);
  if (request.groups != nullptr && !request.na_pairwise) {
    if (queries == nullptr) {
      PointStore store;
      if (find_groups(request, points, out, progress, stats, store)) return;
    }
    // Reads the points once for all groups.
    if (!points.made_when_read())
      return HeldPoints(request, points)
          .find_neighbours(request, queries, out, progress, stats);
  }
  PointStore store;
  find_with_store(request, points, queries, out, progress, stats, store);
}

void find_with_store(const Request& asked, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats, PointStore& store) {
  const Request request = suited(asked, points, queries, progress);
  if (request.groups != nullptr) {
    if (queries == nullptr && !request.na_pairwise &&
        find_groups(request, points, out, progress, stats, store))
      return;
    return find_by_groups(
        request, points, queries, out, progress, stats,
        [&](const Request& part, const RowSource* rows, const Neighbours& to,
            Progress* of_part, Stats* found) {
          find_with_store(part, points, rows, to, of_part, found, store);
        });
  }
  check_metric(*request.metric);
  if (request.na_pairwise)
    return find_masked(request, points, queries, out, progress, stats);
  const Clock::time_point start = Clock::now();
  const UsedDevices gpus(request.devices);
  const std::int64_t num_rows =
      queries == nullptr ? size_without(points, request.skip)
                         : size_without(*queries, request.query_skip);
  if (num_rows == 0) {
    for (std::int64_t i = 0; i < out.rows; ++i)
      emit_missing(out, AnswerRow::of(i), request.k);
    return;
  }
  const CudaPlan plan = make_plan(request, points, queries, out, gpus, store);
  if (plan.streamed) store.clear();

  // The points are shuffled if the filter's thresholds need it, otherwise in
  // their own order.
  const MetricEntry& metric = *request.metric;
  const int exponent =
      common_exponent(request, points, queries, request.num_threads);
  const PlacedPoints& columns =
      store.placed(points, request.skip, plan.filtered);
  PlacedPoints own_rows, in_panels;
  if (plan.filtered && plan.streamed)
    in_panels = PlacedPoints(points, request.skip, false);
  if (queries != nullptr) {
    own_rows = PlacedPoints(*queries, request.query_skip, false);
    own_rows.self = self_by_place(request, own_rows.order);
    std::replace(own_rows.self.begin(), own_rows.self.end(), std::int32_t{-1},
                 kNoPoint);
  }
  const PlacedPoints& rows = queries != nullptr ? own_rows : columns;
  emit_missing_rows(rows.order, out, request.k);

  const DistanceRule rule(metric, exponent);
  LearntForms learnt;
  const bool exchange = queries == nullptr && plan.num_workers > 1;
  const Search search = {request,
                         plan,
                         rows,
                         columns,
                         recipe_of(request, exponent),
                         rule.undo(),
                         rule.redo(),
                         out,
                         &in_panels,
                         &store,
                         exchange ? &learnt : nullptr};
  const double seconds_prepare = seconds_since(start);
  Stats found;
  try {
    if (plan.filtered && queries != nullptr)
      run_queries(search, gpus, progress, found);
    else if (plan.filtered)
      (plan.streamed
           ? run_filtered<GraphByFilterPanels>
           : run_filtered<GraphByFilter>)(search, gpus, progress, found);
    else
      run_segments(search, gpus, progress, found);
  } catch (const NoTree&) {
    Request scattered = asked;
    scattered.instruction_set += "/scattered";
    store.clear();
    return find_with_store(scattered, points, queries, out, progress, stats,
                           store);
  }
  found.streamed = plan.streamed;
  note(found, gpus, start, seconds_prepare, stats);
}

}  // namespace cuda
}  // namespace fsknn
