#include "cuda/search/within_chunks.hpp"

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
  PairsWithin within;
};

namespace {

// In and out: see Band. Grid: x over columns, y over rows of the band, in
// steps. Block: kThreads. Shared: none.
template <bool unit>
__global__ void __launch_bounds__(kThreads)
    find_in_band(const Band band, const Sign sign) {
  const std::int64_t c =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int32_t column = band.column0 + static_cast<std::int32_t>(c);
  const bool there = c < band.num_columns;
  const double column_limit =
      there ? band.within.column_limit(column) : -HUGE_VAL;
  for (std::int64_t r = band.first_row + blockIdx.y; r < band.end_row;
       r += gridDim.y) {
    const std::int32_t row = band.row0 + static_cast<std::int32_t>(r);
    const double value = there ? band.values[r * band.stride + c] : 0.0;
    const double distance = found_distance<unit>(value, sign);
    band.within.append(there && (!band.graph || row < column),
                       {row, column, value}, distance, column_limit);
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
      found_(work, chunks_.stream()) {}

void WithinInChunks::run(std::atomic<std::int64_t>& next,
                         WithinCollector& collector) {
  WithinCollector::Taker taker(collector);
  chunks_.run(next,
              [&](const Panel& rows, const Panel& columns, const Chunk& chunk) {
                Band band;
                band.values = chunk.distances;
                band.stride = chunk.stride;
                band.end_row = rows.count;
                band.num_columns = columns.count;
                band.row0 = static_cast<std::int32_t>(rows.first.value);
                band.column0 = static_cast<std::int32_t>(columns.first.value);
                band.graph = work_.graph();
                band.within = found_.view();
                if (!take(band, collector, taker)) {
                  // There are too many at once, so it takes as many rows at a
                  // time as fit.
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
  if (count > band.within.capacity) return false;
  found_.take(count, collector, taker, stream);
  return true;
}

}  // namespace cuda
}  // namespace fsknn
