#include "cuda/exact/shared_pairs.cuh"

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/exact/ascending.hpp"
#include "cuda/exact/buckets.cuh"
#include "cuda/exact/exact_step.cuh"
#include "cuda/exact/pair_sum.cuh"
#include "cuda/plan/units.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// A block sorts a list's slots.
struct ArrangeBlock {
  static constexpr int threads = 256;
};

/// A block finds the pairs of a row that it must compute, and computes them.
struct MakeBlock : ExactBlock<128> {
  static constexpr int pairs_a_turn = 2 * threads;
};

/// A block sorts a list's distances.
struct RankBlock {
  static constexpr int threads = 256;
  // The most candidates that are sorted by buckets; longer lists have no memory
  // for them.
  static constexpr int most_in_buckets = 2048;
};

/// A block's memory: `room` distances and numbers, two orders of them, and
/// buckets. Without buckets only the first two.
struct RankMemory {
  Entries found;
  ItemOrder order;
  BucketMemory<RankBlock::threads>* buckets;
  __device__ RankMemory(unsigned char* memory, int room) {
    found.distance = reinterpret_cast<double*>(memory);
    found.index = reinterpret_cast<std::int32_t*>(found.distance + room);
    order.by_bucket = reinterpret_cast<std::uint16_t*>(found.index + room);
    order.sorted = order.by_bucket + room;
    buckets = reinterpret_cast<BucketMemory<RankBlock::threads>*>(order.sorted +
                                                                  room);
  }
  static int bytes_of(int room) {
    const int bytes =
        room * static_cast<int>(sizeof(double) + sizeof(std::int32_t));
    if (room > RankBlock::most_in_buckets) return bytes;
    return bytes + room * 2 * static_cast<int>(sizeof(std::uint16_t)) +
           static_cast<int>(sizeof(BucketMemory<RankBlock::threads>));
  }
};

/// The kernels' arguments besides the step, whose slots are those of one turn.
struct Sharing {
  ExactStep step;
  Slot first_list = {0}, end_list = {0};  ///< the lists present
  std::uint32_t bucket_scale = 0;         ///< of 2^32: buckets by slots
  float position_scale = 0.0f;            ///< 1 / slots
  std::int64_t part_slots = 0;            ///< of columns, of a part
};

// Sorts the slots of each list that takes part. They must be distinct and not
// the row's own: in a graph's rounds two points are compared once, and the
// first cut drops a row's own point. A list that violates this takes no part. A
// pair of a slot with itself would be computed by no row, and a repeated slot
// would be two neighbours. The row is recomputed, and its threshold is ignored,
// since it may count such a pair twice. Grid: one block a slot. Block:
// ArrangeBlock. Shared: most_shared() slots and two orders of them, dynamic.
__global__ void __launch_bounds__(ArrangeBlock::threads)
    arrange_lists(const Sharing sharing) {
  constexpr int threads = ArrangeBlock::threads;
  __shared__ BucketMemory<threads> buckets;
  extern __shared__ std::int32_t slots[];
  const CandidateLists& lists = sharing.step.lists;
  const std::int64_t slot = sharing.step.first_slot.value + blockIdx.x;
  const std::int32_t count = lists.counts[slot];
  if (!is_shared(count, sharing.step.nearest.k, lists.capacity)) return;
  const std::int32_t room = most_shared(lists.capacity);
  std::uint16_t* const numbers = reinterpret_cast<std::uint16_t*>(slots + room);
  const ItemOrder order = {numbers, numbers + room};
  const Candidate* const list = lists.entries + slot * lists.capacity;
  for (int at = static_cast<int>(threadIdx.x); at < count; at += threads)
    slots[at] = slot_of(list[at]);
  order_by_buckets(
      count, count, buckets, order,
      [&](int item) {
        return static_cast<int>(
            __umulhi(static_cast<unsigned>(slots[item]), sharing.bucket_scale));
      },
      [&](int a, int b) {
        return slots[a] != slots[b] ? slots[a] < slots[b] : a < b;
      });
  bool alike = false;
  for (int at = static_cast<int>(threadIdx.x); at < count; at += threads) {
    const std::int32_t own = slots[order.sorted[at]];
    alike |= own == slot || (at > 0 && own == slots[order.sorted[at - 1]]);
  }
  if (__syncthreads_or(alike)) {
    if (threadIdx.x > 0) return;
    lists.thresholds[slot] = -CUDART_INF_F;
    leave_list(sharing.step, lists.places[slot], slot);
    if (lists.bounds != nullptr) lists.bounds[slot] = -CUDART_INF_F;
    lists.counts[slot] = kOverflowed;
    return;
  }
  const SharedList to = shared_list(lists, slot);
  for (int at = static_cast<int>(threadIdx.x); at < count; at += threads)
    to.slots[at] = slots[order.sorted[at]];
}

// Computes the distances of each row's pairs with a part of the columns. It
// takes pairs that the column's list lacks. A pair that both lists have is
// computed by the row that comes first, and written to both. Grid: x over
// slots, y over parts in sequence, so that a part's rows remain in the cache.
// Block: MakeBlock. Shared: static.
template <class Rule>
__global__ void __launch_bounds__(MakeBlock::threads)
    make_pairs(const Sharing sharing) {
  using Sum = typename Rule::Sum;
  constexpr int threads = MakeBlock::threads;
  __shared__ int ends[2], num_own;
  __shared__ int own_at[MakeBlock::pairs_a_turn];
  __shared__ int twin_at[MakeBlock::pairs_a_turn];
  const ExactStep& step = sharing.step;
  const CandidateLists& lists = step.lists;
  const std::int64_t slot = step.first_slot.value + blockIdx.x;
  const std::int32_t count = lists.counts[slot];
  const std::int64_t k = step.nearest.k;
  if (!is_shared(count, k, lists.capacity)) return;
  const int tid = static_cast<int>(threadIdx.x);
  const SharedList list = shared_list(lists, slot);
  if (tid < 2)
    ends[tid] =
        count_below(list.slots, count, (blockIdx.y + tid) * sharing.part_slots);
  __syncthreads();
  const int end = ends[1];
  const std::int32_t place = lists.places[slot];
  const double* const row = step.rows + place * step.padded;
  const double row_sum = step.row_sums[place];
  const float share = static_cast<float>(slot) * sharing.position_scale;
  for (int first = ends[0]; first < end; first += MakeBlock::pairs_a_turn) {
    if (tid == 0) num_own = 0;
    __syncthreads();
#pragma unroll
    for (int q = 0; q < MakeBlock::pairs_a_turn / threads; ++q) {
      const int at = first + q * threads + tid;
      bool own = at < end;
      int twin = -1;
      if (own) {
        const std::int64_t other = list.slots[at];
        const bool here =
            other >= sharing.first_list.value && other < sharing.end_list.value;
        const std::int32_t others = here ? lists.counts[other] : 0;
        if (is_shared(others, k, lists.capacity)) {
          const int estimate = min(
              static_cast<int>(share * static_cast<float>(others)), others - 1);
          twin = position_of(shared_list(lists, other).slots, others,
                             static_cast<std::int32_t>(slot), estimate);
          own = twin < 0 || slot < other;  // never equal: arrange_lists()
        }
      }
      const unsigned owners = __ballot_sync(0xffffffffu, own);
      int to = 0;
      if (tid % kWarp == 0) to = atomicAdd(&num_own, __popc(owners));
      to = __shfl_sync(0xffffffffu, to, 0) +
           __popc(owners & ((1u << tid % kWarp) - 1));
      if (own) {
        own_at[to] = at;
        twin_at[to] = twin;
      }
    }
    __syncthreads();
    const int some = num_own;
    for (int turn = 0; turn < some; turn += MakeBlock::pairs) {
      // Threads past the end repeat the last pair, because the reduction needs
      // the whole warp.
      const int pair = turn + tid / MakeBlock::pair_threads;
      const int at = own_at[min(pair, some - 1)];
      const std::int64_t other_slot = list.slots[at];
      const std::int64_t other = lists.column_places[other_slot];
      const double sum =
          pair_sum<Sum>(row, step.columns + other * step.padded, step.padded,
                        tid % MakeBlock::pair_threads);
      if (tid % MakeBlock::pair_threads != 0 || pair >= some) continue;
      const double distance =
          finished(Rule(), sum, row_sum, step.column_sums[other], step.undo);
      list.distances[at] = distance;
      const int twin = twin_at[pair];
      if (twin >= 0) shared_list(lists, other_slot).distances[twin] = distance;
    }
    __syncthreads();
  }
}

// Finds the nearest of each row's pairs. In and out: see ExactStep. Grid: one
// block a slot. Block: RankBlock. Shared: RankMemory of most_shared(), dynamic.
__global__ void __launch_bounds__(RankBlock::threads)
    rank_shared(const ExactStep step) {
  constexpr int threads = RankBlock::threads;
  extern __shared__ __align__(16) unsigned char bytes[];
  const CandidateLists& lists = step.lists;
  const int room = most_shared(lists.capacity);
  const RankMemory memory(bytes, room);
  const std::int64_t slot = step.first_slot.value + blockIdx.x;
  const std::int32_t count = to_rank(step, slot, room);
  if (count == 0) return;
  const std::int32_t place = lists.places[slot];
  const std::int64_t k = step.nearest.k;
  const int tid = static_cast<int>(threadIdx.x);
  const SharedList list = shared_list(lists, slot);
  const Entries& found = memory.found;
  for (int at = tid; at < count; at += threads)
    found.set(at, {list.distances[at],
                   lists.column_ids[lists.column_places[list.slots[at]]]});
  __syncthreads();
  const Entries nearest = neighbours_of(step, place, slot);
  if (tid == 0) count_exact(step, slot, count);
  if (room <= RankBlock::most_in_buckets &&
      order_neighbours(found, count, *memory.buckets, memory.order)) {
    for (int rank = tid; rank < k; rank += threads)
      nearest.set(rank, found.get(memory.order.sorted[rank]));
    return;
  }
  sort_gathered<threads>(found, count);
  for (int rank = tid; rank < k; rank += threads)
    nearest.set(rank, found.get(rank));
}

/// Splits the columns into parts whose rows remain in the cache while all lists
/// are processed, if a list has enough pairs in each.
std::int64_t num_parts(const ExactStep& step) {
  constexpr std::int64_t least_pairs = 64;
  int device = 0, cache_bytes = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(
      cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, device));
  const std::int64_t part_bytes = std::max(cache_bytes, 1 << 20) / 5 * 2;
  const std::int64_t bytes = step.lists.num_slots * step.padded * 8;
  return std::max<std::int64_t>(
      1, std::min(ceil_div(bytes, part_bytes), step.nearest.k / least_pairs));
}

}  // namespace

bool may_share_pairs(const ExactStep& step) {
  const CandidateLists& lists = step.lists;
  return !step.sums_given && lists.places == lists.column_places &&
         step.rows == step.columns && step.row_sums == step.column_sums &&
         step.nearest.k <= most_shared(lists.capacity);
}

void run_exact_shared(const MetricEntry& metric, const ExactStep& step,
                      const Stream& stream) {
  Sharing sharing;
  sharing.step = step;
  sharing.first_list = step.first_slot;
  sharing.end_list = step.end_slot;
  const std::int64_t slots = std::max<std::int64_t>(1, step.lists.num_slots);
  sharing.bucket_scale = static_cast<std::uint32_t>(std::min<std::int64_t>(
      (std::int64_t{BucketMemory<ArrangeBlock::threads>::buckets} << 32) /
          slots,
      UINT32_MAX));
  sharing.position_scale = 1.0f / static_cast<float>(slots);
  const std::int64_t parts = num_parts(step);
  sharing.part_slots = ceil_div(slots, parts);
  const int bytes = most_shared(step.lists.capacity) * 8;
  in_turns(step, stream, [&](const ExactStep& part) {
    sharing.step = part;
    arrange_lists<<<static_cast<unsigned>(part.end_slot.value -
                                          part.first_slot.value),
                    ArrangeBlock::threads, bytes, stream.get()>>>(sharing);
    CUDA_CHECK(cudaGetLastError());
  });
  in_turns(step, stream, [&](const ExactStep& part) {
    sharing.step = part;
    const dim3 grid(
        static_cast<unsigned>(part.end_slot.value - part.first_slot.value),
        static_cast<unsigned>(parts));
    with_pair_rule(metric, [&](auto rule) {
      make_pairs<decltype(rule)>
          <<<grid, MakeBlock::threads, 0, stream.get()>>>(sharing);
    });
    CUDA_CHECK(cudaGetLastError());
  });
  in_turns(step, stream, [&](const ExactStep& part) {
    rank_shared<<<
        static_cast<unsigned>(part.end_slot.value - part.first_slot.value),
        RankBlock::threads,
        RankMemory::bytes_of(most_shared(step.lists.capacity)), stream.get()>>>(
        part);
    CUDA_CHECK(cudaGetLastError());
  });
}

}  // namespace cuda
}  // namespace fsknn
