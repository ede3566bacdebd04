#pragma once

// Holds short lists of neighbours in the registers of a warp, so that no block
// barrier is needed.

#include <math_constants.h>

#include <cstdint>

#include "core/base/select.hpp"
#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

static constexpr unsigned kWholeWarp = 0xffffffffu;
/// One entry a lane.
static constexpr std::int64_t kLongestWarpList = 32;

/// Neighbours of a row, one in each lane of a warp.
struct LaneEntry {
  double distance;
  std::int32_t index;

  __device__ static LaneEntry none() { return {CUDART_INF, kNoPoint}; }
  __device__ bool before(const LaneEntry& other) const {
    return nearer(distance, index, other.distance, other.index);
  }
  /// Returns the entry of another lane.
  __device__ LaneEntry from(int lane) const {
    return {__shfl_sync(kWholeWarp, distance, lane),
            __shfl_sync(kWholeWarp, index, lane)};
  }
  /// Returns the first or the last of this entry and another lane's.
  __device__ LaneEntry first_or_last(int gap, bool first) const {
    const LaneEntry other = {__shfl_xor_sync(kWholeWarp, distance, gap),
                             __shfl_xor_sync(kWholeWarp, index, gap)};
    return other.before(*this) == first ? other : *this;
  }
};

/// Sorts a warp's entries, the nearest in lane 0.
__device__ inline LaneEntry sorted(LaneEntry own, int lane) {
#pragma unroll
  for (int run = 2; run <= 32; run *= 2)
#pragma unroll
    for (int gap = run / 2; gap > 0; gap /= 2)
      own = own.first_or_last(
          gap, ((lane & gap) == 0) == (run == 32 || (lane & run) == 0));
  return own;
}

/// Merges two sorted warps of entries into the nearest 32, sorted.
__device__ inline LaneEntry merged(const LaneEntry& own, const LaneEntry& other,
                                   int lane) {
  const LaneEntry reversed = other.from(31 - lane);
  LaneEntry nearest = reversed.before(own) ? reversed : own;
#pragma unroll
  for (int gap = 16; gap > 0; gap /= 2)
    nearest = nearest.first_or_last(gap, (lane & gap) == 0);
  return nearest;
}

}  // namespace cuda
}  // namespace fsknn
