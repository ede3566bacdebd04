#include "cuda/candidates.cuh"

#include <math_constants.h>

#include <stdexcept>

#include "core/select.hpp"
#include "cuda/check.cuh"
#include "cuda/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr int kWarp = 32;
constexpr int kCutThreads = 256;
constexpr int kExactThreads = 128;
constexpr int kLargestCapacity = 1024;

unsigned blocks_for(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

// Grid: x over slots. Block: any. Shared: none.
__global__ void empty_lists(const CandidateLists lists) {
  const std::int64_t slot =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (slot >= lists.num_slots) return;
  lists.counts[slot] = 0;
  lists.thresholds[slot] = lists.places[slot] < 0 ? CUDART_NAN_F : -CUDART_INF_F;
}

__device__ inline void do_again(const RedoRows& redo, std::int32_t place) {
  redo.places[atomicAdd(redo.count, 1)] = place;
}

/// Whole numbers in the order of the floats; none is 0.
__device__ inline unsigned order_key(float x) {
  const unsigned bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float key_value(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/// Cuts one list, by a warp, per_lane entries a thread, all in registers.
template <int per_lane>
__device__ inline void cut_list(const Cut& cut, std::int64_t slot,
                                std::int32_t count, int lane) {
  const CandidateLists& lists = cut.lists;
  Candidate* const list = lists.entries + slot * lists.capacity;
  Candidate entry[per_lane];
  unsigned key[per_lane];  // 0: no candidate
  std::int32_t num_valid = 0;
#pragma unroll
  for (int q = 0; q < per_lane; ++q) {
    key[q] = 0;
    const int at = q * kWarp + lane;
    bool valid = at < count;
    if (valid) {
      entry[q] = list[at];
      if (cut.filled > 0)
        valid = entry[q].slot != slot && lists.places[entry[q].slot] >= 0 &&
                entry[q].similarity == entry[q].similarity;
    }
    if (valid) key[q] = order_key(entry[q].similarity);
    num_valid += __popc(__ballot_sync(kWholeWarp, valid));
  }

  float threshold = lists.thresholds[slot];
  if (num_valid >= cut.k) {
    // The k-th largest key, bit by bit.
    unsigned kth = 0;
    for (int bit = 31; bit >= 0; --bit) {
      const unsigned tried = kth | (1u << bit);
      int reach = 0;
#pragma unroll
      for (int q = 0; q < per_lane; ++q)
        reach += __popc(__ballot_sync(kWholeWarp, key[q] >= tried));
      if (reach >= cut.k) kth = tried;
    }
    threshold = fmaxf(
        threshold, __double2float_rd(static_cast<double>(key_value(kth)) -
                                     cut.twice_error));
  }
  __syncwarp();
  int kept = 0;
#pragma unroll
  for (int q = 0; q < per_lane; ++q) {
    const bool keep = key[q] != 0 && entry[q].similarity >= threshold;
    const unsigned keepers = __ballot_sync(kWholeWarp, keep);
    if (keep) list[kept + __popc(keepers & ((1u << lane) - 1))] = entry[q];
    kept += __popc(keepers);
  }
  if (lane == 0) {
    lists.counts[slot] = kept;
    lists.thresholds[slot] = threshold;
  }
}

// Cuts each list to what may still be among the k nearest. One warp a slot; most
// lists are far from full.
// In and out: see Cut. Grid: x over slots. Block: kCutThreads. Shared: none.
template <int most_per_lane>
__global__ void __launch_bounds__(kCutThreads) cut_lists(const Cut cut) {
  const CandidateLists& lists = cut.lists;
  const std::int64_t slot =
      cut.first_slot +
      (static_cast<std::int64_t>(blockIdx.x) * kCutThreads + threadIdx.x) /
          kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (slot >= cut.end_slot || lists.places[slot] < 0) return;
  const std::int32_t count = cut.filled > 0 ? cut.filled : lists.counts[slot];
  if (count > lists.capacity) {
    // What was dropped is not known: the row takes nothing more.
    if (lane == 0) {
      do_again(cut.redo, lists.places[slot]);
      lists.counts[slot] = kOverflowed;
      lists.thresholds[slot] = CUDART_INF_F;
    }
    return;
  }
  if (count < cut.k) return;  // overflowed before, or not yet enough
  constexpr int quarter = most_per_lane / 4;
  if (count <= quarter * kWarp)
    cut_list<quarter>(cut, slot, count, lane);
  else if (count <= 2 * quarter * kWarp)
    cut_list<2 * quarter>(cut, slot, count, lane);
  else
    cut_list<most_per_lane>(cut, slot, count, lane);
}

// The contract's distances of a row's candidates (8 threads, one a lane, make a
// pair), and each at its rank: the number of candidates that come before it.
// In and out: see ExactStep. Grid: one block a slot. Block: kExactThreads.
// Shared: 12 KiB, static.
template <class Rule>
__global__ void __launch_bounds__(kExactThreads)
    rank_candidates(const ExactStep step) {
  using Sum = SumOf<Rule::accumulation>;
  __shared__ double distance[kLargestCapacity];
  __shared__ std::int32_t index[kLargestCapacity];
  const std::int64_t slot = step.first_slot + blockIdx.x;
  const std::int32_t place = step.lists.places[slot];
  if (place < 0) return;
  const std::int32_t count = step.lists.counts[slot];
  if (count == kOverflowed) return;
  const std::int64_t k = step.nearest.k;
  const int tid = static_cast<int>(threadIdx.x);
  if (count < k) {  // sums that are no numbers: leave them to the float64 pass
    if (tid == 0) do_again(step.redo, place);
    return;
  }

  const Candidate* const list =
      step.lists.entries + slot * step.lists.capacity;
  const int lane = tid % kLanes;
  constexpr int groups = kExactThreads / kLanes;
  const double* const row = step.rows + place * step.padded;
  for (int first = 0; first < count; first += groups) {
    // Groups past the end do the last pair again: a warp joins together.
    const int at = min(first + tid / kLanes, count - 1);
    const std::int64_t other = step.lists.places[list[at].slot];
    const double sum = joined<Sum>(lane_sum<Sum>(
        row, step.rows + other * step.padded, step.padded, lane));
    if (lane != 0 || first + tid / kLanes >= count) continue;
    distance[at] = Rule::finish(sum, 0.0, 0.0);
    index[at] = step.ids[other];
  }
  __syncthreads();

  const std::int64_t out = step.list_rows[place] * k;
  for (int a = tid; a < count; a += kExactThreads) {
    int rank = 0;
    for (int b = 0; b < count; ++b)
      rank += nearer(distance[b], index[b], distance[a], index[a]);
    if (rank >= k) continue;
    step.nearest.distance[out + rank] = distance[a];
    step.nearest.index[out + rank] = index[a];
  }
}

// Grid: one block a gathered row. Block: any. Shared: none.
__global__ void gather_rows(const Gather gather) {
  const std::int64_t row = blockIdx.x;
  const bool there = row < gather.num_rows;
  const std::int64_t place = there ? gather.places[row] : 0;
  for (std::int64_t f = threadIdx.x; f < gather.padded; f += blockDim.x)
    gather.rows[row * gather.padded + f] =
        there ? gather.from[place * gather.padded + f] : 0.0;
  if (there && threadIdx.x == 0) gather.ids[row] = gather.ids_from[place];
}

// Grid: one block a row. Block: any. Shared: none.
__global__ void scatter_lists(const Lists from, const std::int32_t* places,
                              const std::int32_t* list_rows, const Lists to) {
  const std::int64_t row = blockIdx.x, target = list_rows[places[row]];
  for (std::int64_t rank = threadIdx.x; rank < from.k; rank += blockDim.x) {
    to.distance[target * to.k + rank] = from.distance[row * from.k + rank];
    to.index[target * to.k + rank] = from.index[row * from.k + rank];
  }
}

}  // namespace

void start_candidates(const CandidateLists& lists, cudaStream_t stream) {
  empty_lists<<<blocks_for(lists.num_slots, 256), 256, 0, stream>>>(lists);
  CUDA_CHECK(cudaGetLastError());
}

void start_cut(const Cut& cut, cudaStream_t stream) {
  const unsigned grid = blocks_for(cut.end_slot - cut.first_slot, kCutThreads / kWarp);
  switch (cut.lists.capacity) {
    case 256: cut_lists<8><<<grid, kCutThreads, 0, stream>>>(cut); break;
    case 512: cut_lists<16><<<grid, kCutThreads, 0, stream>>>(cut); break;
    case 1024: cut_lists<32><<<grid, kCutThreads, 0, stream>>>(cut); break;
    default: throw std::logic_error("no such capacity of candidate lists");
  }
  CUDA_CHECK(cudaGetLastError());
}

void start_exact(const MetricEntry& metric, const ExactStep& step,
                 cudaStream_t stream) {
  const unsigned grid = static_cast<unsigned>(step.end_slot - step.first_slot);
  const auto start = [&](auto rule) {
    rank_candidates<decltype(rule)><<<grid, kExactThreads, 0, stream>>>(step);
  };
  switch (metric.sign) {
    case Sign::absolute: start(UnitDot<Sign::absolute>()); break;
    case Sign::negative: start(UnitDot<Sign::negative>()); break;
    default: start(UnitDot<Sign::signed_value>());
  }
  CUDA_CHECK(cudaGetLastError());
}

void start_gather(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<static_cast<unsigned>(gather.num_places), 128, 0, stream>>>(
      gather);
  CUDA_CHECK(cudaGetLastError());
}

void start_scatter(const Lists& from, const std::int32_t* places,
                   const std::int32_t* list_rows, std::int64_t num_rows,
                   const Lists& to, cudaStream_t stream) {
  scatter_lists<<<static_cast<unsigned>(num_rows), 64, 0, stream>>>(
      from, places, list_rows, to);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
