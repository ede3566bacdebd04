#include "cuda/plan/plan.hpp"

#include <algorithm>

#include "cuda/plan/all_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

// So few queries, one tile's rows, meet each point once: it is prepared, met
// and dropped.
constexpr std::int64_t kFewQueries = kChunkUnit;
// A device's part of the filter, in products and sums: some milliseconds, or
// the devices' meetings take as long as they save.
constexpr double kLeastFilterShare = 5.0e11;

/// How many devices a graph's filter is spread over: no more than help. Where
/// the user says how large a chunk is, as many as have a split.
int filter_devices(const PlanInput& in, const FilterShape& shape) {
  // None without a block.
  const std::int64_t most = std::min<std::int64_t>(
      std::max(1, in.num_workers), FilterBlocks(in.num_points).count);
  if (in.num_queries > 0)
    return static_cast<int>(
        std::min(most, ceil_div(in.num_queries, kLeastFilteredQueries)));
  if (in.chunk_size > 0)
    return static_cast<int>(
        std::min(most, ceil_div(in.num_points, whole_tiles(in.chunk_size))));
  const double n = static_cast<double>(in.num_points);
  const double work = n * n / 2 * static_cast<double>(shape.rows.work);
  return static_cast<int>(std::max(
      1.0, std::min(static_cast<double>(most), work / kLeastFilterShare)));
}

CudaPlan plan_filter(const PlanInput& in, const FilterShape& shape,
                     double bytes_usable, std::int64_t chunk_size) {
  PlanInput shared = in;
  shared.num_workers = filter_devices(in, shape);
  shared.chunk_size = chunk_size;
  const double filter =
      bytes_filter(in, shape) + (shared.num_workers > 1 && in.num_queries == 0
                                     ? static_cast<double>(kStagedBytes)
                                     : 0.0);
  CudaPlan p = {
      plan_all_pairs(
          shared, bytes_usable <= 0 ? 0 : std::max(1.0, bytes_usable - filter)),
      shape,
      {}};
  p.filtered = true;
  p.filter = entry_of(shape.rows.form).name;
  // All rows are written at once, and those done again gathered, for a wider
  // filter or in doubles.
  const std::int64_t rows = p.num_queries > 0 ? p.num_queries : p.num_points;
  const WideRows wide(
      in.num_queries > 0 ? query_slots(queries_at_a_time(rows, in.k))
                         : FilterBlocks(in.num_points).num_slots(),
      shape.capacity, shape.rows.slot_bytes(), p.padded_features);
  const double more =
      bytes_answer(rows, p.k) +
      std::max(static_cast<double>(std::min(p.chunk_size, whole_tiles(rows))) *
                   (static_cast<double>(p.padded_features) * 8 + 16),
               wide.bytes());
  p.bytes_working += more;
  p.bytes_peak += more;
  p.bytes_filter = filter;
  p.bytes_peak += filter;
  p.num_chunks = in.num_queries > 0 ? p.num_splits * p.chunks_per_split
                                    : p.num_splits * (p.num_splits + 1) / 2;
  p.num_workers = shared.num_workers;
  p.num_segments = shared.num_workers;
  p.splits_per_segment = ceil_div(p.num_splits, p.num_segments);
  return p;
}

CudaPlan plan_filter_streamed(const PlanInput& in, const FilterShape& shape,
                              const FilterStreaming& streaming) {
  CudaPlan p = plan_filter(in, shape, 0, in.chunk_size);
  p.streamed = true;
  p.streaming = streaming;
  // Once for the filter's rows; then each stretch that stays, and all after it.
  const std::int64_t stretches = ceil_div(in.num_points, streaming.stay_rows);
  p.num_passes = 2 + stretches / 2;
  p.bytes_filter =
      shape.bytes_sums +
      static_cast<double>(FilterBlocks(in.num_points).num_slots()) *
          (static_cast<double>(shape.rows.slot_bytes()) +
           static_cast<double>(streaming.capacity) * 8);
  p.bytes_prepared = static_cast<double>(streaming.stay_rows) *
                     (static_cast<double>(p.padded_features) * 8 + 12);
  p.bytes_working = streaming.bytes_fixed;
  p.bytes_peak = streaming.bytes_peak;
  return p;
}

}  // namespace

CudaPlan plan_cuda(const PlanInput& in, const GpuFacts& gpus) {
  const double usable = gpus.bytes_usable();
  const auto fits = [&](const Plan& p) {
    return usable <= 0 || p.bytes_peak <= usable;
  };
  // Each point is needed once: none needs to be kept.
  if (in.num_queries > 0 && in.num_queries <= kFewQueries &&
      in.num_points > kLargestChunk)
    return {plan_all_pairs_panels(in, usable), {}, {}};
  const FilterShape shape = filter_shape(in, gpus, true);
  // Chunks are for rows done again only: smaller ones do as well.
  for (std::int64_t chunk = in.chunk_size; shape.usable();) {
    const CudaPlan p = plan_filter(in, shape, usable, chunk);
    if (fits(p)) return p;
    if (p.chunk_size <= kLeastShare) break;
    chunk = p.chunk_size / 2;
  }
  if (shape.usable() && in.num_queries == 0) {
    // What points suit bytes is known when all are there.
    const FilterShape streamed = filter_shape(in, gpus, false);
    const FilterStreaming streaming = filter_streaming(in, streamed, usable);
    if (streaming.fits) return plan_filter_streamed(in, streamed, streaming);
  }
  const Plan p = plan_all_pairs(in, usable);
  return {fits(p) ? p : plan_all_pairs_panels(in, usable), {}, {}};
}

}  // namespace cuda
}  // namespace fsknn
