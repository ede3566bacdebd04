#include <algorithm>
#include <chrono>
#include <memory>

#include "core/errors.hpp"
#include "core/prepared.hpp"
#include "cpu/kernels.hpp"
#include "cuda/backend.hpp"
#include "cuda/devices.hpp"
#include "cuda/plan.hpp"
#include "cuda/resources.cuh"
#include "cuda/segment.cuh"
#include "cuda/workers.hpp"

namespace fsknn {
namespace cuda {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Free memory of the device that has least. Starts CUDA on all of them, one
/// host thread a device, since that takes long.
double least_free(const std::vector<int>& devices) {
  std::vector<double> bytes(devices.size());
  Workers workers(nullptr, 1);
  workers.run(static_cast<int>(devices.size()), [&](int w) {
    const DeviceGuard guard(devices[static_cast<std::size_t>(w)]);
    std::size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    bytes[static_cast<std::size_t>(w)] = static_cast<double>(free);
  });
  return *std::min_element(bytes.begin(), bytes.end());
}

Plan make_plan(const Request& request, const PreparedPoints& rows,
               const PreparedPoints& columns, const Neighbours& out,
               const std::vector<int>& devices) {
  PlanInput input;
  input.num_points = columns.size();
  input.num_features = columns.num_features;
  input.num_queries = &rows == &columns ? 0 : rows.size();
  input.k = request.k;
  input.chunk_size = request.chunk_size;
  input.num_workers = static_cast<int>(devices.size());
  input.correlation = out.correlation != nullptr;
  return plan_cuda(input, least_free(devices));
}

}  // namespace

void find_neighbours(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats) {
  const Clock::time_point start = Clock::now();
  const std::vector<int> devices = chosen_devices(request.devices);

  // Rows are prepared by the host's vector code, in their own order: there is
  // no filter yet whose thresholds a shuffle would serve.
  const MetricEntry& metric = *request.metric;
  const int threads = request.num_threads;
  const RowKernel prepare =
      cpu::choose_kernels(request.instruction_set).prepare_row;
  const int exponent = common_exponent(metric, points, queries, threads);
  const PreparedPoints columns = prepare_points(
      points, metric, exponent, request.skip, false, prepare, threads);
  PreparedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_points(*queries, metric, exponent, request.query_skip,
                              false, prepare, threads);
  const PreparedPoints& rows = queries != nullptr ? own_rows : columns;
  for (std::int64_t i = 0; i < out.rows; ++i)
    if (rows.order.place[static_cast<std::size_t>(i)] < 0)
      emit_missing(out, i, request.k);
  if (rows.size() == 0) return;

  const Plan plan = make_plan(request, rows, columns, out, devices);
  const DistanceRule rule(metric, exponent);
  const Search search = {request, plan, rows, columns, rule.undo(), out};
  const double seconds_prepare = seconds_since(start);

  Workers workers(progress, plan.num_chunks);
  std::vector<double> pairs(devices.size()), seconds_emit(devices.size());
  workers.run(plan.num_workers, [&](int w) {
    const std::size_t at = static_cast<std::size_t>(w);
    const DeviceGuard guard(devices[at]);
    Segment segment(search, workers);
    segment.run(w * plan.splits_per_segment,
                std::min((w + 1) * plan.splits_per_segment, plan.num_splits));
    pairs[at] = segment.pairs();
    seconds_emit[at] = segment.seconds_emit();
  });

  if (stats == nullptr) return;
  for (const double p : pairs) stats->pairs_exact += p;
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_emit =
      *std::max_element(seconds_emit.begin(), seconds_emit.end());
  stats->seconds_search =
      seconds_since(start) - seconds_prepare - stats->seconds_emit;
}

}  // namespace cuda
}  // namespace fsknn
