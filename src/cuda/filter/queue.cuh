#pragma once

// Queues the pairs that a warp found, for the rows' lists or for the one list
// of all pairs. A place in a list needs an atomic addition with a latency of a
// microsecond. All lanes therefore request their places together, and rarely.

#include <cstdint>

#include "cuda/exact/candidate_pairs.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

/// A pair, for `row`'s list.
struct Found {
  std::int32_t row, column;
  float similarity;
};

/// Holds sums of some of a warp's lanes, 16 each, for the whole warp to read.
/// from: the lane, 5 bits; the group of its sums, 3 bits; the sums in question,
/// the upper 16.
struct SpreadGroups {
  static constexpr int most = 8;
  alignas(16) std::uint32_t values[most][16];  ///< their bits
  std::uint32_t from[most];
};

/// All threads of the warp must call every member. spreads: whether the end of
/// its memory is for spread sums.
template <bool spreads>
class FoundQueue {
 public:
  static constexpr int length = 128;  ///< of its memory
  static constexpr int most =
      length -
      (spreads ? static_cast<int>((sizeof(SpreadGroups) + sizeof(Found) - 1) /
                                  sizeof(Found))
               : 0);
  static constexpr std::int32_t none = -1;  ///< a row that is not for the lists

  /// entries [length], in whole 16 bytes
  __device__ FoundQueue(Found* entries, int lane)
      : entries_(entries), lane_(lane) {}

  /// This memory holds no entry.
  __device__ SpreadGroups& spread() const {
    static_assert(spreads, "there is room");
    constexpr int bytes = static_cast<int>(sizeof(SpreadGroups));
    constexpr int first = length * static_cast<int>(sizeof(Found)) - bytes;
    static_assert(first % 16 == 0, "four numbers at a time");
    return *reinterpret_cast<SpreadGroups*>(reinterpret_cast<char*>(entries_) +
                                            first);
  }

  /// Appends the entry make(bit) for each bit of the lane.
  template <class Lists, class Make>
  __device__ void push(const Lists& lists, unsigned bits, Make make) {
    unsigned lanes = __ballot_sync(0xffffffffu, bits != 0);
    while (lanes != 0) {
      const int taken = __popc(lanes);
      if (count_ + taken > most) flush(lists);
      if (bits != 0) {
        const int before = __popc(lanes & ((1u << lane_) - 1));
        entries_[count_ + before] = make(__ffs(static_cast<int>(bits)) - 1);
        bits &= bits - 1;
      }
      count_ += taken;
      lanes = __ballot_sync(0xffffffffu, bits != 0);
    }
  }

  __device__ void flush(const CandidateLists& lists) {
    constexpr int a_lane = (most + 31) / 32;
    if (count_ == 0) return;
    __syncwarp();
    Found entry[a_lane];
    std::int32_t at[a_lane];
#pragma unroll
    for (int q = 0; q < a_lane; ++q)
      if (q * 32 + lane_ < count_) {
        entry[q] = entries_[q * 32 + lane_];
        at[q] = entry[q].row == none
                    ? lists.capacity
                    : atomicAdd(lists.counts + entry[q].row, 1);
      }
#pragma unroll
    for (int q = 0; q < a_lane; ++q)
      if (q * 32 + lane_ < count_ && has_place(at[q], lists.capacity))
        lists.entries[static_cast<std::int64_t>(entry[q].row) * lists.capacity +
                      at[q]] = {entry[q].similarity, entry[q].column};
    __syncwarp();
    count_ = 0;
  }

  __device__ void flush(const CandidatePairs& list) {
    constexpr int a_lane = (most + 31) / 32;
    if (count_ == 0) return;
    __syncwarp();
    Found entry[a_lane];
    int before[a_lane], total = 0;
#pragma unroll
    for (int q = 0; q < a_lane; ++q) {
      entry[q].row = none;
      if (q * 32 + lane_ < count_) entry[q] = entries_[q * 32 + lane_];
      const unsigned there = __ballot_sync(0xffffffffu, entry[q].row != none);
      before[q] = total + __popc(there & ((1u << lane_) - 1));
      total += __popc(there);
    }
    unsigned long long first = 0;
    if (lane_ == 0 && total > 0)
      first = atomicAdd(list.count, static_cast<unsigned long long>(total));
    first = __shfl_sync(0xffffffffu, first, 0);
#pragma unroll
    for (int q = 0; q < a_lane; ++q) {
      const std::int64_t at = static_cast<std::int64_t>(first) + before[q];
      if (entry[q].row != none && at < list.capacity)
        list.pairs[at] = {entry[q].row, entry[q].column};
    }
    __syncwarp();
    count_ = 0;
  }

 private:
  Found* entries_;
  int lane_;
  int count_ = 0;
};
using WarpQueue = FoundQueue<false>;
using SpreadQueue = FoundQueue<true>;

/// Makes an entry for the one list from a pair of slots that reached one of its
/// thresholds. It makes none if either slot is padding, or if the pair also
/// occurs from the other side. That is so in a graph for a block of slots with
/// itself.
__device__ inline Found found_pair(const CandidatePairs& pairs,
                                   std::int32_t row, std::int32_t column,
                                   float column_threshold) {
  const float row_threshold = __ldg(pairs.row_thresholds + row);
  constexpr std::int32_t block = static_cast<std::int32_t>(kFilterBlock);
  const bool other_side =
      pairs.graph && row >= column && row / block == column / block;
  const bool there = row_threshold == row_threshold &&
                     column_threshold == column_threshold && !other_side;
  return {there ? row : WarpQueue::none, column, 0.0f};
}

}  // namespace cuda
}  // namespace fsknn
