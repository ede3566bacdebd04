#pragma once

// What a warp found, on its way to the lists. A place in a list takes an atomic
// addition, whose answer is a microsecond away: they are asked for by all lanes
// at once, and seldom.

#include <cstdint>

#include "cuda/candidates.cuh"

namespace fsknn {
namespace cuda {

/// A pair for `row`'s list.
struct Found {
  std::int32_t row, column;
  float similarity;
};

/// All threads of the warp must call every member.
class WarpQueue {
 public:
  static constexpr int length = 128;

  __device__ WarpQueue(Found* entries, int lane)
      : entries_(entries), lane_(lane) {}

  __device__ void push(const CandidateLists& lists, bool here,
                       const Found& entry) {
    const unsigned lanes = __ballot_sync(0xffffffffu, here);
    if (here) entries_[count_ + __popc(lanes & ((1u << lane_) - 1))] = entry;
    count_ += __popc(lanes);
    if (count_ > length - 32) flush(lists);
  }

  __device__ void flush(const CandidateLists& lists) {
    constexpr int a_lane = length / 32;
    if (count_ == 0) return;
    __syncwarp();
    Found entry[a_lane];
    std::int32_t at[a_lane];
#pragma unroll
    for (int q = 0; q < a_lane; ++q)
      if (q * 32 + lane_ < count_) {
        entry[q] = entries_[q * 32 + lane_];
        at[q] = atomicAdd(lists.counts + entry[q].row, 1);
      }
#pragma unroll
    for (int q = 0; q < a_lane; ++q)
      if (q * 32 + lane_ < count_ && at[q] < lists.capacity)
        lists.entries[static_cast<std::int64_t>(entry[q].row) *
                          lists.capacity +
                      at[q]] = {entry[q].similarity, entry[q].column};
    __syncwarp();
    count_ = 0;
  }

 private:
  Found* entries_;
  int lane_;
  int count_ = 0;
};

}  // namespace cuda
}  // namespace fsknn
