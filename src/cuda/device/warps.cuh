#pragma once

// What kernels have in common: a warp, a block of those that go through rows,
// and sums over a warp's threads.

#include <cstdint>

namespace fsknn {
namespace cuda {

static constexpr int kWarp = 32;
static constexpr int kThreads = 256;
static constexpr int kWarps = kThreads / kWarp;

/// Returns the blocks of kThreads for items that a warp each handles.
inline unsigned blocks_of_warps(std::int64_t items) {
  return static_cast<unsigned>((items + kWarps - 1) / kWarps);
}

/// Returns the item that a warp handles, in blocks of kThreads.
__device__ inline std::int64_t warp_number() {
  return (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) /
         kWarp;
}

/// The same bits in every thread of the warp.
__device__ inline double warp_sum(double x) {
#pragma unroll
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, gap);
  return x;
}

}  // namespace cuda
}  // namespace fsknn
