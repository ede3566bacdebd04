#pragma once

// Gathers neighbours of a row in a block, and merges them into the row's list.

#include <cstdint>

#include "cuda/exact/sorting.cuh"

namespace fsknn {
namespace cuda {

/// One block handles a row. It gathers possible neighbours in shared memory,
/// and from time to time sorts and merges them into the row's list.
struct SelectBlock {
  static constexpr int threads = 256;
  static constexpr int items = 4;
  static constexpr int step = threads * items;  ///< entries examined at a time
  static constexpr int capacity = 2 * step;     ///< entries gathered at most
};
static_assert((SelectBlock::capacity & (SelectBlock::capacity - 1)) == 0,
              "the sort is bitonic");

/// Merges `count` sorted entries into the row's sorted list, in place, by the
/// block. An entry's place is its place in its own sequence plus the number of
/// entries of the other that precede it. List entries only move to higher
/// places, so they are moved step by step from the far end.
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
  // Entries before the first gathered entry's place do not move.
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

}  // namespace cuda
}  // namespace fsknn
