#include "cuda/select.cuh"

#include <math_constants.h>

#include "cuda/check.cuh"
#include "cuda/sorting.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// One block a row. What may be among the row's k nearest is gathered in shared
/// memory, and from time to time sorted and merged into the row's list.
struct SelectBlock {
  static constexpr int threads = 256;
  static constexpr int items = 4;
  static constexpr int step = threads * items;  ///< entries looked at at a time
  static constexpr int capacity = 2 * step;     ///< entries gathered at most
};
static_assert((SelectBlock::capacity & (SelectBlock::capacity - 1)) == 0,
              "the sort is bitonic");

/// Merges `count` sorted entries into the row's sorted list, in place, by the
/// block: every entry's place is its place in its own sequence and the number
/// of the other's entries before it. List entries move to higher places only,
/// so they are moved a step at a time from the far end.
__device__ inline void merge(const Entries& gathered, int count,
                             const Entries& list, std::int64_t k) {
  using B = SelectBlock;
  const int tid = static_cast<int>(threadIdx.x);
  std::int64_t places[B::capacity / B::threads];
#pragma unroll
  for (int i = 0; i < B::capacity / B::threads; ++i) {
    const int q = i * B::threads + tid;
    places[i] = q < count ? q + list.rank_of(gathered.get(q), k) : k;
  }
  // Nothing before the first gathered entry's place moves.
  const std::int64_t first = list.rank_of(gathered.get(0), k);
  if (first >= k) return;
  for (std::int64_t end = k; end > first; end -= B::step) {
    const std::int64_t begin = end - B::step > first ? end - B::step : first;
    Entry moved[B::items];
    std::int64_t to[B::items];
#pragma unroll
    for (int i = 0; i < B::items; ++i) {
      const std::int64_t p = begin + i * B::threads + tid;
      to[i] = k;
      if (p >= end) continue;
      moved[i] = list.get(p);
      to[i] = p + gathered.rank_of(moved[i], count);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < B::items; ++i)
      if (to[i] < k) list.set(to[i], moved[i]);
  }
#pragma unroll
  for (int i = 0; i < B::capacity / B::threads; ++i) {
    const int q = i * B::threads + tid;
    if (places[i] < k) list.set(places[i], gathered.get(q));
  }
}

// Selection over one chunk (Arefin 2012, "kNN kernel": there one thread a row
// replaces the farthest of k candidates, Maxk; here a block a row drops all that
// is not nearer than the k-th, and merges the rest).
// In and out: see Selection. Grid: one block a row. Block: SelectBlock::threads.
// Shared: 24 KiB, static. Any k: the list is in global memory.
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
    // Merge when the next step might not fit, at the end, and as soon as an
    // unfilled list can be filled: what comes then is dropped on sight.
    const bool merge_now =
        count > B::capacity - B::step || c0 + B::step >= s.num_columns ||
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
