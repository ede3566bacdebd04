#include "cuda/exact/short_lists.hpp"

#include <math_constants.h>

#include "cuda/device/check.hpp"
#include "cuda/exact/pair_sum.cuh"
#include "cuda/exact/sorting.cuh"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

// A block has memory for this many without a special request: 48 KiB.
constexpr std::int32_t kMostRoom = 4096;

// Computes the contract's distances of a list's candidates, and sorts them. In
// and out: see ShortLists. Grid: one block a slot. Block: Block::threads.
// Shared: `room` distances and numbers, dynamic, room a power of two; longer
// lists are skipped.
template <class Rule, class Block>
__global__ void __launch_bounds__(Block::threads)
    rank_short_lists(const ShortLists step, const int room) {
  using Sum = typename Rule::Sum;
  extern __shared__ __align__(16) unsigned char memory[];
  const Entries found = {
      reinterpret_cast<double*>(memory),
      reinterpret_cast<std::int32_t*>(memory + sizeof(double) * room)};
  const CandidateLists& lists = step.lists;
  const std::int64_t row = blockIdx.x, slot = step.first_slot.value + row;
  const std::int32_t place = lists.places[slot];
  const std::int32_t held = place < 0 ? 0 : lists.counts[slot];
  // The count is negative, or exceeds the room.
  const bool lost = !has_place(held, room + 1);
  const std::int32_t count = lost ? 0 : held;
  const std::int64_t k = step.nearest.k;
  const int tid = static_cast<int>(threadIdx.x);

  const Candidate* const list = lists.entries + slot * lists.capacity;
  for (int first = 0; first < count; first += Block::pairs) {
    // Threads past the end repeat the last pair, because the reduction needs
    // the whole warp.
    const int own = first + tid / Block::pair_threads;
    const int at = min(own, count - 1);
    const std::int64_t other = lists.column_places[list[at].slot];
    const double sum = pair_sum<Sum>(step.rows + place * step.padded,
                                     step.rows + other * step.padded,
                                     step.padded, tid % Block::pair_threads);
    if (tid % Block::pair_threads != 0 || own >= count) continue;
    const double distance =
        finished(Rule(), sum, step.sums[place], step.sums[other], step.undo);
    found.set(at, {distance, lists.column_ids[other]});
  }
  __syncthreads();
  if (count > 1) sort_gathered<Block::threads>(found, count);

  const Entries nearest = {step.nearest.distance + row * k,
                           step.nearest.index + row * k};
  for (std::int64_t rank = tid; rank < k; rank += Block::threads)
    nearest.set(rank,
                rank < count ? found.get(rank) : Entry{CUDART_INF, kNoPoint});
  if (tid > 0) return;
  const std::int32_t most = k < count ? static_cast<std::int32_t>(k) : count;
  step.counts[row] = lost ? kOverflowed : most;
}

}  // namespace

void start_short_lists(const MetricEntry& metric, const ShortLists& step,
                       cudaStream_t stream) {
  const std::int64_t slots = step.end_slot.value - step.first_slot.value;
  if (slots == 0) return;
  const int room =
      step.lists.capacity < kMostRoom ? step.lists.capacity : kMostRoom;
  const int bytes =
      room * static_cast<int>(sizeof(double) + sizeof(std::int32_t));
  with_pair_rule(metric, [&](auto rule) {
    const auto start = [&](auto block) {
      using Block = decltype(block);
      rank_short_lists<decltype(rule), Block>
          <<<static_cast<unsigned>(slots), Block::threads, bytes, stream>>>(
              step, room);
    };
    if (room <= 1024)
      start(ExactBlock<128>());
    else
      start(ExactBlock<256>());
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
