#include "cuda/exact/select.hpp"

#include <math_constants.h>

#include "cuda/device/check.hpp"
#include "cuda/exact/merging.cuh"

namespace fsknn {
namespace cuda {
namespace {

// Selects from one chunk (Arefin 2012, "kNN kernel": there one thread a row
// replaces the farthest of k candidates, Maxk). Here a block a row drops all
// entries that are not nearer than the k-th, and merges the others. Any k: the
// list is in global memory. In and out: see Selection. Grid: one block a row.
// Block: SelectBlock::threads. Shared: 24 KiB, static.
__global__ void __launch_bounds__(SelectBlock::threads)
    select_from_chunk(const Selection s) {
  using B = SelectBlock;
  __shared__ double gathered_distance[B::capacity];
  __shared__ std::int32_t gathered_index[B::capacity];
  __shared__ int num_gathered;
  const Entries gathered = {gathered_distance, gathered_index};

  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t row = blockIdx.x, k = s.lists.k;
  const double* distances = s.distances + row * s.stride;
  const Entries list = {s.lists.distance + row * k, s.lists.index + row * k};
  const std::int64_t self = row + s.self;
  const std::int32_t own_id = s.own_ids != nullptr ? s.own_ids[row] : kNoPoint;
  Entry farthest = list.get(k - 1);
  if (tid == 0) num_gathered = 0;
  __syncthreads();

  for (std::int64_t c0 = 0; c0 < s.num_columns; c0 += B::step) {
#pragma unroll
    for (int i = 0; i < B::items; ++i) {
      const std::int64_t c = c0 + i * B::threads + tid;
      if (c >= s.num_columns || c == self) continue;
      const double distance = distances[c];
      if (distance > farthest.distance) continue;
      const Entry entry = {distance, s.column_ids[c]};
      if (entry.index != own_id && comes_before(entry, farthest))
        gathered.set(atomicAdd(&num_gathered, 1), entry);
    }
    __syncthreads();
    const int count = num_gathered;
    // Merges when the next step might not fit, at the end, and as soon as an
    // incomplete list can be filled: later entries can then be dropped at once.
    const bool merge_now = count > B::capacity - B::step ||
                           c0 + B::step >= s.num_columns ||
                           (farthest.index == kNoPoint && count >= k);
    __syncthreads();
    if (!merge_now || count == 0) continue;
    if (tid == 0) num_gathered = 0;
    sort_gathered<B::threads>(gathered, count);
    merge(gathered, count, list, k);
    __syncthreads();
    farthest = list.get(k - 1);
  }
}

// Grid: any; block: any. lists: [size / k x k], device.
__global__ void clear_lists(const Lists lists, std::int64_t size) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < size; i += step) {
    lists.distance[i] = CUDART_INF;
    lists.index[i] = kNoPoint;
  }
}

}  // namespace

void start_clear(const Lists& lists, std::int64_t num_rows,
                 cudaStream_t stream) {
  clear_lists<<<1024, 256, 0, stream>>>(lists, num_rows * lists.k);
  CUDA_CHECK(cudaGetLastError());
}

void start_selection(const Selection& selection, cudaStream_t stream) {
  select_from_chunk<<<static_cast<unsigned>(selection.num_rows),
                      SelectBlock::threads, 0, stream>>>(selection);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
