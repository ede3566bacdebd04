#pragma once

// The code that the kernels of the exact step share.

#include <algorithm>
#include <cstdint>

#include "core/base/poll.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/exact/sorting.cuh"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

/// Leaves the row of a list with too few candidates (NaN sums) or too many to
/// the float64 pass. One thread calls this.
__device__ inline void leave_list(const ExactStep& step, std::int32_t place,
                                  std::int64_t slot) {
  const CandidateLists& lists = step.lists;
  if (lists.bounds != nullptr && !step.estimated)
    lists.bounds[slot] = lists.thresholds[slot];
  do_again(step.redo, place, slot);
}

/// Returns the number of candidates to rank in a slot's list. It is 0 if there
/// is no point, or if the row is recomputed. A list with fewer than k or more
/// than `most` has its row recomputed. All of a block's threads call this.
__device__ inline std::int32_t to_rank(const ExactStep& step, std::int64_t slot,
                                       std::int32_t most) {
  const std::int32_t place = step.lists.places[slot];
  if (place < 0) return 0;
  const std::int32_t count = step.lists.counts[slot];
  if (is_overflowed(count)) return 0;
  if (count >= step.nearest.k && count <= most) return count;
  if (threadIdx.x == 0) leave_list(step, place, slot);
  return 0;
}

/// Returns the place of the neighbours of a slot's point.
__device__ inline Entries neighbours_of(const ExactStep& step,
                                        std::int32_t place, std::int64_t slot) {
  const std::int64_t row =
      step.slot_rows != nullptr ? step.slot_rows[slot] : step.list_rows[place];
  return {step.nearest.distance + row * step.nearest.k,
          step.nearest.index + row * step.nearest.k};
}

/// Counts pairs. One thread calls this.
__device__ inline void count_exact(const ExactStep& step, std::int64_t slot,
                                   int pairs) {
  if (step.counts != nullptr)
    atomicAdd(step.counts + slot % kExactCounts,
              static_cast<unsigned long long>(pairs));
}

/// Calls start(part) for parts of the step's slots that take about 0.1 s at
/// most, and polls between them.
template <class Start>
void in_turns(const ExactStep& step, const Stream& stream, Start start) {
  const std::int64_t turn = turn_of(static_cast<double>(step.lists.capacity) *
                                    static_cast<double>(step.padded));
  ExactStep part = step;
  for (; part.first_slot.value < step.end_slot.value;
       part.first_slot = part.end_slot) {
    if (part.first_slot.value > step.first_slot.value) {
      stream.wait();
      poll();
    }
    part.end_slot = {
        std::min(step.end_slot.value, part.first_slot.value + turn)};
    start(part);
  }
}

}  // namespace cuda
}  // namespace fsknn
