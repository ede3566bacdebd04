#pragma once

// Holds neighbours in the memory of a block, and sorts them.

#include <math_constants.h>

#include <cstdint>

#include "core/base/select.hpp"
#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

struct Entry {
  double distance;
  std::int32_t index;
};

/// The order of neighbours: core's.
__device__ inline bool comes_before(const Entry& a, const Entry& b) {
  return nearer(a.distance, a.index, b.distance, b.index);
}

/// Entries in shared or global memory, as two arrays.
struct Entries {
  double* distance;
  std::int32_t* index;
  __device__ Entry get(std::int64_t at) const {
    return {distance[at], index[at]};
  }
  __device__ void set(std::int64_t at, const Entry& entry) const {
    distance[at] = entry.distance;
    index[at] = entry.index;
  }
  /// Returns how many of the first `size` entries, which are sorted, precede
  /// `entry`.
  __device__ std::int64_t rank_of(const Entry& entry, std::int64_t size) const {
    std::int64_t low = 0;
    while (low < size) {
      const std::int64_t middle = low + (size - low) / 2;
      if (comes_before(get(middle), entry))
        low = middle + 1;
      else
        size = middle;
    }
    return low;
  }
};

/// Sorts `count` entries (bitonic sort) by a block of `threads` threads, in
/// shared memory with room for the next power of two. Starts and ends with a
/// barrier.
template <int threads>
__device__ inline void sort_gathered(const Entries& gathered, int count) {
  const int tid = static_cast<int>(threadIdx.x);
  int size = 2;
  while (size < count) size *= 2;
  for (int i = count + tid; i < size; i += threads)
    gathered.set(i, {CUDART_INF, kNoPoint});
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int gap = run / 2; gap > 0; gap /= 2) {
      for (int i = tid; i < size / 2; i += threads) {
        const int low = 2 * i - (i & (gap - 1)), high = low + gap;
        const Entry a = gathered.get(low), b = gathered.get(high);
        const bool ascending = (low & run) == 0;
        if (comes_before(b, a) == ascending) {
          gathered.set(low, b);
          gathered.set(high, a);
        }
      }
      __syncthreads();
    }
  }
}

}  // namespace cuda
}  // namespace fsknn
