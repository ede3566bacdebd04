#include "cuda/exact/candidates.hpp"

#include <math_constants.h>

#include <algorithm>
#include <stdexcept>

#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/exact/warp_lists.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kCutThreads = 256;
// One block, not one warp, cuts a longer list. The threads of a block
// synchronise at each step.
constexpr std::int32_t kWarpCapacity = 512;
// Lists of so few neighbours otherwise have half this capacity
// (candidates_for()).
constexpr std::int32_t kShortList = 32;
// For so small a k, searching from the largest key downwards is faster than
// bisection.
constexpr std::int32_t kFewNeighbours = 8;

unsigned blocks_for(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

// Grid: x over slots. Block: any. Shared: none.
__global__ void empty_lists(const CandidateLists lists, const Slot first,
                            const Slot end) {
  const std::int64_t slot =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (slot >= lists.num_slots) return;
  lists.counts[slot] = 0;
  const bool accepts = slot >= first.value && slot < end.value;
  lists.thresholds[slot] = lists.places[slot] < 0 ? CUDART_NAN_F
                           : accepts              ? -CUDART_INF_F
                                                  : CUDART_INF_F;
  if (lists.bounds != nullptr) lists.bounds[slot] = -CUDART_INF_F;
}

/// A warp or a block that cuts one list. All its threads must call every
/// member.
class WarpGroup {
 public:
  static constexpr int size = kWarp;
  __device__ int thread() const {
    return static_cast<int>(threadIdx.x) % kWarp;
  }
  __device__ int sum(int x) const {
#if __CUDA_ARCH__ >= 800
    x = __reduce_add_sync(0xffffffffu, x);
#else
#pragma unroll
    for (int gap = kWarp / 2; gap > 0; gap /= 2)
      x += __shfl_xor_sync(0xffffffffu, x, gap);
#endif
    return x;
  }
  __device__ unsigned largest(unsigned x) const {
#if __CUDA_ARCH__ >= 800
    x = __reduce_max_sync(0xffffffffu, x);
#else
#pragma unroll
    for (int gap = kWarp / 2; gap > 0; gap /= 2)
      x = max(x, __shfl_xor_sync(0xffffffffu, x, gap));
#endif
    return x;
  }
  __device__ void wait() const { __syncwarp(); }
  /// Returns the first of the next `some` places, which this warp fills.
  __device__ int take_places(int some) {
    const int first = kept_;
    kept_ += some;
    return first;
  }
  __device__ int kept() const { return kept_; }
  /// Finds nearly the k-th largest key by bisection. At least k keys reach the
  /// result, and at most `enough` do unless keys are equal. There are
  /// `num_valid` >= k keys other than 0, all between `low` and `high`.
  template <int per_thread>
  __device__ unsigned nearly_kth(const unsigned (&key)[per_thread], int k,
                                 int enough, int num_valid, unsigned low,
                                 unsigned high) const {
    int reach = num_valid;
    while (reach > enough && low < high) {
      const unsigned tried = low + (high - low + 1) / 2;
      int reaches = 0;
#pragma unroll
      for (int q = 0; q < per_thread; ++q) reaches += key[q] >= tried;
      reaches = sum(reaches);
      if (reaches >= k) {
        low = tried;
        reach = reaches;
      } else {
        high = tried - 1;
      }
    }
    return low;
  }

 private:
  int kept_ = 0;
};

class BlockGroup {
 public:
  static constexpr int size = kCutThreads;
  static constexpr int warps = kCutThreads / kWarp;
  static constexpr int bins_a_thread = 4, log2_bins = 10;
  static constexpr int bins = bins_a_thread * kCutThreads;
  static_assert(bins == 1 << log2_bins, "a bin is a number of log2_bins bits");
  struct Shared {
    unsigned part[2][warps];
    int kept;
    int bin[bins];
    int in_bins[warps];        // by warp
    int found, reach, beyond;  // of nearly_kth()
  };
  __device__ explicit BlockGroup(Shared& shared) : shared_(shared) {
    if (threadIdx.x == 0) shared.kept = 0;
  }
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int sum(int x) {
    const unsigned* part = share(static_cast<unsigned>(warp_.sum(x)));
    int all = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) all += static_cast<int>(part[w]);
    return all;
  }
  __device__ unsigned largest(unsigned x) {
    const unsigned* part = share(warp_.largest(x));
    unsigned all = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) all = max(all, part[w]);
    return all;
  }
  __device__ void wait() const { __syncthreads(); }
  __device__ int take_places(int some) {
    int first = 0;
    if (warp_.thread() == 0) first = atomicAdd(&shared_.kept, some);
    return __shfl_sync(0xffffffffu, first, 0);
  }
  __device__ int kept() const {
    __syncthreads();
    return shared_.kept;
  }
  /// Does the same by a histogram of the keys, and by a second one within one
  /// bin: a block's threads then synchronise a few times, not at each
  /// bisection.
  template <int per_thread>
  __device__ unsigned nearly_kth(const unsigned (&key)[per_thread], int k,
                                 int enough, int num_valid, unsigned low,
                                 unsigned high) {
    const int lane = warp_.thread(), warp = thread() / kWarp;
    int* const own = shared_.bin + bins_a_thread * thread();
    int reach = num_valid, beyond = 0;  // keys from low on; above high
    while (reach > enough && low < high) {
      const int shift = max(0, 32 - __clz(high - low) - log2_bins);
#pragma unroll
      for (int b = 0; b < bins_a_thread; ++b) own[b] = 0;
      __syncthreads();
#pragma unroll
      for (int q = 0; q < per_thread; ++q)
        if (key[q] >= low && key[q] <= high)
          atomicAdd(&shared_.bin[(key[q] - low) >> shift], 1);
      __syncthreads();
      // The number of keys in the bins of later threads.
      int all = 0;
#pragma unroll
      for (int b = 0; b < bins_a_thread; ++b) all += own[b];
      int later = all;
#pragma unroll
      for (int gap = 1; gap < kWarp; gap *= 2) {
        const int other = __shfl_down_sync(0xffffffffu, later, gap);
        if (lane + gap < kWarp) later += other;
      }
      if (lane == 0) shared_.in_bins[warp] = later;
      later += beyond - all;
      __syncthreads();
#pragma unroll
      for (int w = 0; w < warps; ++w)
        if (w > warp) later += shared_.in_bins[w];
      // The k-th key is in one thread's bins.
      if (later < k && later + all >= k) {
        int b = bins_a_thread - 1;
        while (later + own[b] < k) later += own[b--];
        shared_.found = bins_a_thread * thread() + b;
        shared_.reach = later + own[b];
        shared_.beyond = later;
      }
      __syncthreads();
      low += static_cast<unsigned>(shared_.found) << shift;
      high = min(high - low, (1u << shift) - 1) + low;
      reach = shared_.reach;
      beyond = shared_.beyond;
    }
    return low;
  }

 private:
  /// Shares the warps' numbers through two alternating buffers, so that one
  /// barrier is enough.
  __device__ const unsigned* share(unsigned x) {
    turn_ ^= 1;
    if (warp_.thread() == 0) shared_.part[turn_][threadIdx.x / kWarp] = x;
    __syncthreads();
    return shared_.part[turn_];
  }
  Shared& shared_;
  WarpGroup warp_;
  int turn_ = 0;
};

/// The least number of blocks on a multiprocessor. Registers bound it; several
/// blocks hide each other's waits.
constexpr int blocks_at_once(int entries_a_thread, bool of_warps) {
  return entries_a_thread <= 8                 ? 4
         : entries_a_thread <= 16 && !of_warps ? 3
                                               : 2;
}

/// Reads both words of a candidate in one access.
__device__ inline Candidate candidate_at(const Candidate* from) {
  const int2 both = *reinterpret_cast<const int2*>(from);
  return {__int_as_float(both.x), both.y};
}

/// Cuts one list by a group of threads, each with per_thread entries in
/// registers.
template <int per_thread, class Group>
__device__ inline void cut_list(const Cut& cut, std::int64_t slot,
                                std::int32_t count, Group group) {
  const CandidateLists& lists = cut.lists;
  Candidate* const list = lists.entries + slot * lists.capacity;
  const bool overflowed = count > lists.capacity;
  const std::int32_t place = lists.places[slot];
  const std::int32_t own =
      lists.row_ids != nullptr ? lists.row_ids[place] : kNoPoint;
  const double row_error = __dadd_ru(
      cut.twice_error, cut.row_slack != nullptr ? cut.row_slack[slot] : 0.0f);
  const double row_sum = cut.row_sum != nullptr ? cut.row_sum[slot] : 0.0f;
  const double row_factor =
      cut.row_factor != nullptr ? cut.row_factor[slot] : 1.0f;
  const auto error_beside = [&](std::int32_t column) {
    const double slack =
        cut.column_slack != nullptr ? cut.column_slack[column] : 0.0f;
    if (cut.row_sum != nullptr)
      return slack_over_sums(row_error + slack,
                             row_sum + cut.column_sum[column]);
    const double error = __dadd_ru(row_error, slack);
    return cut.row_factor == nullptr
               ? error
               : __dmul_ru(error, row_factor * cut.column_factor[column]);
  };
  // All reads are issued before the first value is used, to overlap their
  // latencies.
  Candidate entry[per_thread];
  const std::int32_t there = min(count, lists.capacity);
#pragma unroll
  for (int q = 0; q < per_thread; ++q) {
    const int at = q * Group::size + group.thread();
    entry[q] =
        at < there ? candidate_at(list + at) : Candidate{CUDART_NAN_F, 0};
  }
  bool dropped[per_thread] = {};
  if (!cut.all_valid) {
    std::int32_t other[per_thread];
#pragma unroll
    for (int q = 0; q < per_thread; ++q)
      other[q] = lists.column_places[slot_of(entry[q])];
#pragma unroll
    for (int q = 0; q < per_thread; ++q)
      dropped[q] = other[q] < 0 || lists.column_ids[max(other[q], 0)] == own;
  }
  unsigned key[per_thread];  // of the similarity's lower bound; 0: none
  int mine = 0;
  unsigned largest = 0, least = 0;  // least: the maximum of the complements
#pragma unroll
  for (int q = 0; q < per_thread; ++q) {
    const float s = entry[q].similarity;
    const std::uint32_t least_key =
        order_key(least_similarity(s, error_beside(slot_of(entry[q])), 0.0));
    const bool valid = q * Group::size + group.thread() < there &&
                       !dropped[q] && (cut.all_valid || s == s);
    key[q] = valid ? least_key : 0;
    mine += valid;
    if (!valid) continue;
    largest = max(largest, key[q]);
    least = max(least, ~key[q]);
  }
  const int num_valid = group.sum(mine);

  float threshold = lists.thresholds[slot];
  float certain = cut.estimate.may ? lists.bounds[slot] : threshold;
  unsigned first_key = 0;  // the key that set the threshold
  // Computes the certain threshold, the estimated one, or both in turn. The
  // loop keeps a single copy of this code.
#pragma unroll 1
  for (int turn = 0; turn < 2; ++turn) {
    const bool is_estimate = turn == 1;
    const int rank = is_estimate                          ? cut.estimate.rank
                     : cut.estimate.certain || overflowed ? cut.k
                                                          : 0;
    if (rank == 0 || num_valid < rank) continue;
    unsigned low;
    if (rank <= kFewNeighbours) {
      // Walks down from the largest key to the one of this rank.
      const auto reaches = [&](unsigned from) {
        int reach = 0;
#pragma unroll
        for (int q = 0; q < per_thread; ++q) reach += key[q] >= from;
        return group.sum(reach);
      };
      low = group.largest(largest);
      while (rank > 1 && reaches(low) < rank) {
        unsigned below = 0;
#pragma unroll
        for (int q = 0; q < per_thread; ++q)
          if (key[q] < low) below = max(below, key[q]);
        low = group.largest(below);
      }
    } else {
      low = group.nearly_kth(key, rank, rank + rank / 64, num_valid,
                             ~group.largest(least), group.largest(largest));
    }
    if (!is_estimate) {
      certain = fmaxf(certain, key_value(low));
      threshold = fmaxf(threshold, certain);
      if (rank <= kLongestWarpList) first_key = low;
      continue;
    }
    // The estimate is the entry's own key, raised by a part of its error.
    unsigned next = 0;  // a complement of a key
#pragma unroll
    for (int q = 0; q < per_thread; ++q)
      if (key[q] >= low) next = max(next, ~key[q]);
    low = ~group.largest(next);
    unsigned error = 0;  // positive floats order as their bits do
#pragma unroll
    for (int q = 0; q < per_thread; ++q)
      if (key[q] == low)
        error = max(error, __float_as_uint(static_cast<float>(
                               cut.estimate.error_part *
                               error_beside(slot_of(entry[q])))));
    const float estimate =
        key_value(low) + __uint_as_float(group.largest(error));
    if (estimate < CUDART_INF_F) threshold = fmaxf(threshold, estimate);
  }
  if (overflowed || (cut.estimate.confirms && threshold > certain)) {
    // Dropped candidates are unknown, so the row accepts no more and is
    // recomputed.
    if (group.thread() > 0) return;
    do_again(cut.redo, place, slot);
    lists.counts[slot] = kOverflowed;
    if (lists.bounds != nullptr) lists.bounds[slot] = certain;
    lists.thresholds[slot] = CUDART_INF_F;
    return;
  }
  group.wait();
  const auto put = [&](unsigned least_key, unsigned most_key) {
    const auto keeps = [&](int q) {
      return key[q] >= least_key && key[q] <= most_key &&
             entry[q].similarity >= threshold;
    };
    int some = 0;  // within the warp
#pragma unroll
    for (int q = 0; q < per_thread; ++q)
      some += __popc(__ballot_sync(0xffffffffu, keeps(q)));
    int at = group.take_places(some);
    const unsigned before = (1u << group.thread() % kWarp) - 1;
#pragma unroll
    for (int q = 0; q < per_thread; ++q) {
      const bool keep = keeps(q);
      const unsigned keepers = __ballot_sync(0xffffffffu, keep);
      if (keep) list[at + __popc(keepers & before)] = entry[q];
      at += __popc(keepers);
    }
  };
  if (first_key > 1) {
    put(first_key, 0xffffffffu);
    group.wait();
    put(1, first_key - 1);
  } else {
    put(1, 0xffffffffu);
  }
  const int kept = group.kept();
  if (group.thread() > 0) return;
  lists.counts[slot] = kept;
  lists.thresholds[slot] = threshold;
  if (cut.estimate.may) lists.bounds[slot] = certain;
}

/// Returns the number of entries to cut in a slot's list; 0: there is nothing
/// to cut.
__device__ inline std::int32_t to_cut(const Cut& cut, std::int64_t slot) {
  if (slot >= cut.end_slot.value || cut.lists.places[slot] < 0) return 0;
  const std::int32_t count =
      cut.filled > 0 && !cut.counted ? cut.filled : cut.lists.counts[slot];
  const std::int32_t enough = cut.estimate.rank > 0 ? cut.estimate.rank : cut.k;
  return count < enough ? 0 : count;  // overflowed before, or too few
}

// Cuts each list to the candidates that may still be among the k nearest. Most
// lists are far from full. cut_rest() cuts the lists that are too long for
// these warps. In and out: see Cut. Grid: x over slots, one warp each. Block:
// kCutThreads. Shared: none.
template <int most_per_lane>
__global__ void __launch_bounds__(kCutThreads,
                                  blocks_at_once(most_per_lane, true))
    cut_lists(const Cut cut) {
  const std::int64_t slot =
      cut.first_slot.value +
      (static_cast<std::int64_t>(blockIdx.x) * kCutThreads + threadIdx.x) /
          kWarp;
  const std::int32_t count = to_cut(cut, slot);
  constexpr int quarter = most_per_lane / 4, most = most_per_lane * kWarp;
  if (count == 0 || (count > most && cut.lists.capacity > most)) return;
  if (count <= quarter * kWarp)
    cut_list<quarter>(cut, slot, count, WarpGroup());
  else if (count <= 2 * quarter * kWarp)
    cut_list<2 * quarter>(cut, slot, count, WarpGroup());
  else
    cut_list<most_per_lane>(cut, slot, count, WarpGroup());
}

// Does the same for long lists. Grid: one block a slot. Block: kCutThreads.
template <int most_per_thread>
__global__ void __launch_bounds__(kCutThreads,
                                  blocks_at_once(most_per_thread, false))
    cut_long_lists(const Cut cut) {
  __shared__ BlockGroup::Shared shared;
  const std::int64_t slot = cut.first_slot.value + blockIdx.x;
  const std::int32_t count = to_cut(cut, slot);
  constexpr int quarter = most_per_thread / 4;
  if (count == 0) return;
  if (count <= quarter * kCutThreads)
    cut_list<quarter>(cut, slot, count, BlockGroup(shared));
  else if (count <= 2 * quarter * kCutThreads)
    cut_list<2 * quarter>(cut, slot, count, BlockGroup(shared));
  else
    cut_list<most_per_thread>(cut, slot, count, BlockGroup(shared));
}

// Cuts the lists that are longer than `others`, up to 1,024 entries. There are
// few or none. Grid: x over slots. Block: kCutThreads.
__global__ void __launch_bounds__(kCutThreads)
    cut_rest(const Cut cut, const std::int32_t others) {
  __shared__ BlockGroup::Shared shared;
  __shared__ std::int64_t slots[kCutThreads];
  __shared__ std::int32_t counts[kCutThreads];
  __shared__ int num_lists;
  if (threadIdx.x == 0) num_lists = 0;
  __syncthreads();
  const std::int64_t own = cut.first_slot.value +
                           static_cast<std::int64_t>(blockIdx.x) * kCutThreads +
                           threadIdx.x;
  const std::int32_t count = to_cut(cut, own);
  if (count > others) {
    const int at = atomicAdd(&num_lists, 1);
    slots[at] = own;
    counts[at] = count;
  }
  __syncthreads();
  for (int at = 0; at < num_lists; ++at) {
    cut_list<4>(cut, slots[at], counts[at], BlockGroup(shared));
    __syncthreads();
  }
}

}  // namespace

void start_candidates(const CandidateLists& lists, cudaStream_t stream,
                      Slot first, Slot end) {
  empty_lists<<<blocks_for(lists.num_slots, 256), 256, 0, stream>>>(lists,
                                                                    first, end);
  CUDA_CHECK(cudaGetLastError());
}

void start_cut(const Cut& cut, cudaStream_t stream) {
  const std::int32_t capacity = cut.lists.capacity;
  const std::int64_t slots = cut.end_slot.value - cut.first_slot.value;
  if (slots == 0) return;
  const unsigned warps = blocks_for(slots, kCutThreads / kWarp);
  if (capacity <= 128) {
    cut_lists<4><<<warps, kCutThreads, 0, stream>>>(cut);
    CUDA_CHECK(cudaGetLastError());
    return;
  }
  const bool seldom_long = capacity > kWarpCapacity && capacity <= 1024;
  // In the order of a tree, lists of few neighbours have more room.
  const bool has_room = capacity == kWarpCapacity && cut.k <= kShortList;
  const std::int32_t short_lists = has_room ? kWarpCapacity / 2 : kWarpCapacity;
  if ((seldom_long || has_room) && cut.filled <= short_lists) {
    if (has_room)
      cut_lists<8><<<warps, kCutThreads, 0, stream>>>(cut);
    else
      cut_lists<16><<<warps, kCutThreads, 0, stream>>>(cut);
    CUDA_CHECK(cudaGetLastError());
    cut_rest<<<blocks_for(slots, kCutThreads), kCutThreads, 0, stream>>>(
        cut, short_lists);
    CUDA_CHECK(cudaGetLastError());
    return;
  }
  const unsigned grid =
      capacity <= kWarpCapacity ? warps : static_cast<unsigned>(slots);
  switch (seldom_long ? 1024 : capacity) {
    case 256: cut_lists<8><<<grid, kCutThreads, 0, stream>>>(cut); break;
    case 512: cut_lists<16><<<grid, kCutThreads, 0, stream>>>(cut); break;
    case 1024: cut_long_lists<4><<<grid, kCutThreads, 0, stream>>>(cut); break;
    case 2048: cut_long_lists<8><<<grid, kCutThreads, 0, stream>>>(cut); break;
    case 4096: cut_long_lists<16><<<grid, kCutThreads, 0, stream>>>(cut); break;
    case 8192: cut_long_lists<32><<<grid, kCutThreads, 0, stream>>>(cut); break;
    default: throw std::logic_error("no such capacity of candidate lists");
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
