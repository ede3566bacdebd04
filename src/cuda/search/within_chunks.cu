#include "cuda/search/within_chunks.hpp"

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/transfer.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
/// A band of a chunk's rows, and the pairs within the limits. Device memory.
struct Band {
  const double* values = nullptr;  ///< [rows x stride] of the chunk
  std::int64_t stride = 0;
  std::int64_t first_row = 0, end_row = 0, num_columns = 0;
  std::int32_t row0 = 0, column0 = 0;  ///< places of the chunk's first
  bool graph = false;                  ///< places refer to the same points
  const double* limits = nullptr;      ///< by place of rows
  /// By place of columns: a pair within the limit of either point counts. Null:
  /// only the rows' limits count.
  const double* column_limits = nullptr;
  FoundPair* found = nullptr;  ///< out: [capacity], in any order
  std::int32_t capacity = 0;
  std::int32_t* count = nullptr;  ///< out: may exceed the capacity
};

namespace {

// Each warp requests places for all pairs it found together.
// In and out: see Band. Grid: x over columns, y over rows of the band, in
// steps. Block: kThreads. Shared: none.
template <bool unit>
__global__ void __launch_bounds__(kThreads)
    find_in_band(const Band band, const Sign sign) {
  const std::int64_t c =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t column = band.column0 + static_cast<std::int32_t>(c);
  const bool there = c < band.num_columns;
  const double column_limit = there && band.column_limits != nullptr
                                  ? band.column_limits[column]
                                  : -CUDART_INF;
  for (std::int64_t r = band.first_row + blockIdx.y; r < band.end_row;
       r += gridDim.y) {
    const std::int32_t row = band.row0 + static_cast<std::int32_t>(r);
    const double value = there ? band.values[r * band.stride + c] : 0.0;
    const double distance = found_distance<unit>(value, sign);
    const bool within = there && (!band.graph || row < column) &&
                        distance <= fmax(band.limits[row], column_limit);
    const unsigned finders = __ballot_sync(0xffffffffu, within);
    if (finders == 0) continue;
    std::int32_t first = 0;
    if (lane == 0) first = atomicAdd(band.count, __popc(finders));
    first = __shfl_sync(0xffffffffu, first, 0);
    const std::int32_t at = first + __popc(finders & ((1u << lane) - 1));
    if (within && at < band.capacity) band.found[at] = {row, column, value};
  }
}

void start_band(const MetricEntry& metric, const Band& band,
                cudaStream_t stream) {
  const dim3 grid(
      static_cast<unsigned>((band.num_columns + kThreads - 1) / kThreads),
      static_cast<unsigned>(
          std::min<std::int64_t>(band.end_row - band.first_row, 4096)));
  with_unit(metric, [&](auto unit) {
    find_in_band<unit()><<<grid, kThreads, 0, stream>>>(band, metric.sign);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

WithinInChunks::WithinInChunks(const WithinWork& work, Workers& workers)
    : work_(work),
      workers_(workers),
      chunks_(work),
      limits_(work.rows.size()),
      column_limits_(static_cast<std::int64_t>(work.column_limits.size())),
      found_(work) {
  const Stream& stream = chunks_.stream();
  upload(limits_, work.limits.data(), limits_.size(), stream);
  if (column_limits_.size() > 0)
    upload(column_limits_, work.column_limits.data(), column_limits_.size(),
           stream);
  stream.wait();
}

void WithinInChunks::run(std::atomic<std::int64_t>& next,
                         WithinCollector& collector) {
  WithinCollector::Taker taker(collector);
  chunks_.run(next, [&](const Panel& rows, const Panel& columns,
                        const Chunk& chunk) {
    Band band;
    band.values = chunk.distances;
    band.stride = chunk.stride;
    band.end_row = rows.count;
    band.num_columns = columns.count;
    band.row0 = static_cast<std::int32_t>(rows.first.value);
    band.column0 = static_cast<std::int32_t>(columns.first.value);
    band.graph = work_.graph();
    band.limits = limits_.data();
    band.column_limits = band.graph ? limits_.data() : column_limits_.data();
    band.found = found_.data();
    band.capacity = static_cast<std::int32_t>(kMostFound);
    band.count = found_.count();
    if (!take(band, collector, taker)) {
      // There are too many at once, so it takes as many rows at a time as fit.
      const std::int64_t height =
          std::max<std::int64_t>(1, kMostFound / columns.count);
      for (std::int64_t r = 0; r < rows.count; r += height) {
        band.first_row = r;
        band.end_row = std::min(rows.count, r + height);
        take(band, collector, taker);
      }
    }
    return workers_.go_on();
  });
  stats_.pairs_exact = chunks_.pairs();
}

/// Returns whether there was room for all pairs within the limits.
bool WithinInChunks::take(const Band& band, WithinCollector& collector,
                          WithinCollector::Taker& taker) {
  const Stream& stream = chunks_.stream();
  found_.clear_count(stream);
  start_band(*work_.request.metric, band, stream.get());
  const std::int32_t count = found_.counted(stream);
  if (count > band.capacity) return false;
  found_.take(count, collector, taker, stream);
  return true;
}

}  // namespace cuda
}  // namespace fsknn
