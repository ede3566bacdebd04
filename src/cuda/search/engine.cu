#include <algorithm>
#include <chrono>
#include <memory>

#include "core/errors.hpp"
#include "core/prepared.hpp"
#include "cuda/backend.hpp"
#include "cuda/search/facts.hpp"
#include "cuda/filter/filter.cuh"
#include "cuda/search/graph_by_filter.cuh"
#include "cuda/missing/masked.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/queries_by_filter.cuh"
#include "cuda/device/resources.cuh"
#include "cuda/search/all_pairs.cuh"
#include "cuda/search/all_pairs_panels.cuh"
#include "cuda/search/graph_by_filter_panels.cuh"
#include "cuda/device/workers.hpp"

namespace fsknn {
namespace cuda {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::int64_t size_without(const RowSource& points,
                          const std::vector<std::int64_t>& skip) {
  return points.num_points() - static_cast<std::int64_t>(skip.size());
}

/// What a plan that cannot be cut any smaller needs, there must be.
void check_fits(const Plan& plan, double bytes_usable, int device) {
  if (!plan.streamed || bytes_usable <= 0 || plan.bytes_peak <= bytes_usable)
    return;
  CudaFailure failure("the limit on memory is too small", device);
  failure.where = "the plan: two chunks of the smallest size do not fit";
  failure.bytes_asked = plan.bytes_peak;
  failure.bytes_free = bytes_usable;
  throw failure;
}

struct PlannedWork {
  Plan plan;
  FilterStreaming streaming;  ///< where the plan is filtered and streamed
};

PlannedWork make_plan(const Request& request, const RowSource& points,
                      const RowSource* queries, const Neighbours& out,
                      const std::vector<Device>& gpus) {
  const GpuFacts facts = facts_of(gpus, request.max_device_memory);
  PlanInput input = plan_input(
      request, size_without(points, request.skip), points.num_features(),
      queries == nullptr ? 0 : size_without(*queries, request.query_skip));
  input.num_given = points.num_points();
  input.num_workers = static_cast<int>(gpus.size());
  input.correlation = out.correlation != nullptr;
  PlannedWork work;
  work.plan = plan_cuda(input, facts);
  check_fits(work.plan, facts.bytes_usable(), gpus[0].cuda_id);
  if (work.plan.filtered && work.plan.streamed)
    work.streaming = filter_streaming(input, filter_shape(input, facts),
                                      facts.bytes_usable());
  return work;
}

void emit_missing_rows(const PointOrder& order, const Neighbours& out,
                       std::int64_t k) {
  for (std::int64_t i = 0; i < out.rows; ++i)
    if (order.place[static_cast<std::size_t>(i)] < 0) emit_missing(out, i, k);
}

/// The parts of a filtered search. None goes before the work of all is over.
template <class Part>
struct FilterParts {
  explicit FilterParts(int count) : parts(static_cast<std::size_t>(count)) {}
  ~FilterParts() {
    for (const auto& part : parts)
      if (part) part->wait();
  }
  std::vector<std::unique_ptr<Part>> parts;
};

/// The work of a filtered plan, each device its blocks' slabs.
template <class Part>
void run_filtered(const Search& search, const std::vector<int>& devices,
                  Progress* progress, Stats& stats) {
  const int count = Workers::at_once(search.plan.num_workers);
  FilterTeam team(devices, count);
  Workers workers(progress, Part::num_launches(team, search));
  team.workers = &workers;
  FilterParts<Part> all(count);
  workers.run(count, [&](int w) {
    const std::size_t at = static_cast<std::size_t>(w);
    const DeviceGuard guard(devices[at]);
    all.parts[at].reset(new Part(search, team, w));
    all.parts[at]->run();
  });
  for (const auto& part : all.parts) {
    const Stats& its = part->stats();
    stats.pairs_filtered += its.pairs_filtered;
    stats.pairs_exact += its.pairs_exact;
    stats.rows_redone += its.rows_redone;
    stats.rows_widened += its.rows_widened;
    stats.seconds_emit = std::max(stats.seconds_emit, its.seconds_emit);
    stats.seconds_device = std::max(stats.seconds_device, its.seconds_device);
  }
  stats.filtered = true;
  stats.num_devices = count;
}

/// Filtered queries, each device an equal part of them.
void run_queries(const Search& search, const std::vector<int>& devices,
                 Progress* progress, Stats& stats) {
  const int count = search.plan.num_workers;
  const std::int64_t rows = search.rows.size();
  std::int64_t pieces = 0;
  {
    const DeviceGuard guard(devices[0]);
    for (int w = 0; w < count; ++w)
      pieces += QueriesByFilter::num_launches(
          search, rows * (w + 1) / count - rows * w / count);
  }
  Workers workers(progress, pieces);
  std::vector<Stats> parts(static_cast<std::size_t>(count));
  workers.run(count, [&](int w) {
    const std::size_t at = static_cast<std::size_t>(w);
    const DeviceGuard guard(devices[at]);
    QueriesByFilter part(search, workers);
    part.run(rows * w / count, rows * (w + 1) / count);
    parts[at] = part.stats();
  });
  for (const Stats& its : parts) {
    stats.pairs_filtered += its.pairs_filtered;
    stats.pairs_exact += its.pairs_exact;
    stats.rows_redone += its.rows_redone;
    stats.rows_widened += its.rows_widened;
    stats.seconds_emit = std::max(stats.seconds_emit, its.seconds_emit);
    stats.seconds_device = std::max(stats.seconds_device, its.seconds_device);
  }
  stats.filtered = true;
  stats.num_devices = count;
}

/// The float64 pass over all pairs, each device its segment.
template <class Part>
void run_segments(const Search& search, const std::vector<int>& devices,
                  Progress* progress, Stats& stats) {
  const Plan& plan = search.plan;
  Workers workers(progress, plan.num_chunks);
  std::vector<double> pairs(devices.size()), seconds_emit(devices.size()),
      seconds(devices.size());
  workers.run(plan.num_workers, [&](int w) {
    const std::size_t at = static_cast<std::size_t>(w);
    const DeviceGuard guard(devices[at]);
    Part segment(search, workers);
    const Clock::time_point start = Clock::now();
    segment.run(w * plan.splits_per_segment,
                std::min((w + 1) * plan.splits_per_segment, plan.num_splits));
    pairs[at] = segment.pairs();
    seconds_emit[at] = segment.seconds_emit();
    seconds[at] = seconds_since(start) - seconds_emit[at];
  });
  for (const double p : pairs) stats.pairs_exact += p;
  stats.seconds_emit =
      *std::max_element(seconds_emit.begin(), seconds_emit.end());
  stats.seconds_device = *std::max_element(seconds.begin(), seconds.end());
  stats.num_devices = plan.num_workers;
}

}  // namespace

void find_neighbours(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats) {
  if (request.na_pairwise)
    return find_masked(request, points, queries, out, progress, stats);
  const Clock::time_point start = Clock::now();
  const std::vector<Device> gpus = start_devices(request.devices);
  std::vector<int> devices;
  for (const Device& gpu : gpus) devices.push_back(gpu.cuda_id);
  const std::int64_t num_rows =
      queries == nullptr ? size_without(points, request.skip)
                         : size_without(*queries, request.query_skip);
  if (num_rows == 0) {
    for (std::int64_t i = 0; i < out.rows; ++i)
      emit_missing(out, i, request.k);
    return;
  }
  // What the first thread does besides its share, as to pin memory or to give
  // back what the others had, it must not start CUDA elsewhere for.
  const DeviceGuard guard(devices[0]);
  for (const int device : devices) reset_peak_bytes(device);
  const PlannedWork work = make_plan(request, points, queries, out, gpus);
  const Plan& plan = work.plan;

  // Shuffled where the filter's thresholds need it, else in their own order.
  const MetricEntry& metric = *request.metric;
  const int exponent =
      common_exponent(request, points, queries, request.num_threads);
  const PlacedPoints columns(points, request.skip, plan.filtered);
  PlacedPoints own_rows, ranked;
  if (plan.filtered && plan.streamed)
    ranked = PlacedPoints(points, request.skip, false);
  if (queries != nullptr) {
    own_rows = PlacedPoints(*queries, request.query_skip, false);
    own_rows.self = self_by_place(request, own_rows.order);
    std::replace(own_rows.self.begin(), own_rows.self.end(), std::int32_t{-1},
                 kNoPoint);
  }
  const PlacedPoints& rows = queries != nullptr ? own_rows : columns;
  emit_missing_rows(rows.order, out, request.k);

  const DistanceRule rule(metric, exponent);
  const Search search = {request, plan, rows, columns,
                         recipe_of(request, exponent), rule.undo(), out,
                         work.streaming, &ranked};
  const double seconds_prepare = seconds_since(start);
  Stats found;
  if (plan.filtered && queries != nullptr)
    run_queries(search, devices, progress, found);
  else if (plan.filtered)
    (plan.streamed ? run_filtered<GraphByFilterPanels> : run_filtered<GraphByFilter>)(
        search, devices, progress, found);
  else
    (plan.streamed ? run_segments<AllPairsPanels> : run_segments<AllPairs>)(
        search, devices, progress, found);
  found.streamed = plan.streamed;

  if (stats == nullptr) return;
  *stats = found;
  for (const int device : devices)
    stats->bytes_device = std::max(stats->bytes_device, peak_bytes(device));
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search =
      seconds_since(start) - seconds_prepare - stats->seconds_emit;
}

}  // namespace cuda
}  // namespace fsknn
