#pragma once

// Sorts a block's items by buckets: each item counts the items of its own
// bucket that precede it, which are few if the keys are spread out.

#include <math_constants.h>

#include <cstdint>

#include "cuda/exact/sorting.cuh"

namespace fsknn {
namespace cuda {

/// The memory that a block of `threads` threads (whole warps) needs beside its
/// items.
template <int threads>
struct BucketMemory {
  static constexpr int warps = threads / 32;
  static constexpr int of_thread = 4, buckets = of_thread * threads;
  int ends[buckets];
  int of_warps[warps];
  double least[warps], most[warps];
};

/// Two orders of the items as 16-bit numbers, both in shared memory.
struct ItemOrder {
  std::uint16_t *by_bucket, *sorted;
};

/// Sorts the numbers 0 .. count - 1 by before(a, b), a strict total order.
/// Ranks are therefore distinct, and the order of arrival in the buckets has no
/// effect. bucket_of(item), below BucketMemory::buckets, must not decrease
/// along that order. Returns false, without an order, if a bucket has more than
/// `most` items, since all pairs within a bucket are compared. Starts and ends
/// with a barrier.
template <int threads, class BucketOf, class Before>
__device__ inline bool order_by_buckets(int count, int most,
                                        BucketMemory<threads>& memory,
                                        const ItemOrder& order,
                                        BucketOf bucket_of, Before before) {
  using Memory = BucketMemory<threads>;
  const int tid = static_cast<int>(threadIdx.x);
  const int lane = tid % 32, warp = tid / 32;
  for (int b = tid; b < Memory::buckets; b += threads) memory.ends[b] = 0;
  __syncthreads();
  for (int item = tid; item < count; item += threads)
    atomicAdd(&memory.ends[bucket_of(item)], 1);
  __syncthreads();

  // Each thread computes where some of the buckets begin.
  int* const own = memory.ends + Memory::of_thread * tid;
  int begin[Memory::of_thread], sum = 0;
  bool overflowing = false;
#pragma unroll
  for (int b = 0; b < Memory::of_thread; ++b) {
    begin[b] = sum;
    overflowing |= own[b] > most;
    sum += own[b];
  }
  int upto = sum;
#pragma unroll
  for (int gap = 1; gap < 32; gap *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, upto, gap);
    if (lane >= gap) upto += other;
  }
  if (lane == 31) memory.of_warps[warp] = upto;
  if (__syncthreads_or(overflowing)) return false;
  int first = upto - sum;
#pragma unroll
  for (int w = 0; w < Memory::warps; ++w)
    if (w < warp) first += memory.of_warps[w];
#pragma unroll
  for (int b = 0; b < Memory::of_thread; ++b) own[b] = first + begin[b];
  __syncthreads();

  for (int item = tid; item < count; item += threads)
    order.by_bucket[atomicAdd(&memory.ends[bucket_of(item)], 1)] =
        static_cast<std::uint16_t>(item);
  __syncthreads();
  // Each bucket's counter has reached its end, where the next one begins.
  for (int at = tid; at < count; at += threads) {
    const int item = order.by_bucket[at];
    const int bucket = bucket_of(item);
    const int begin_at = bucket > 0 ? memory.ends[bucket - 1] : 0;
    const int end = memory.ends[bucket];
    int rank = begin_at;
    for (int other = begin_at; other < end; ++other)
      rank += before(order.by_bucket[other], item);
    order.sorted[rank] = static_cast<std::uint16_t>(item);
  }
  __syncthreads();
  return true;
}

/// Does the same for neighbours. Returns false if many have equal distances, or
/// if a distance is not finite.
template <int threads>
__device__ inline bool order_neighbours(const Entries& found, int count,
                                        BucketMemory<threads>& memory,
                                        const ItemOrder& order) {
  using Memory = BucketMemory<threads>;
  constexpr int most_compared = 64;
  const int tid = static_cast<int>(threadIdx.x);
  double least = CUDART_INF, most = -CUDART_INF;
  bool unknown = false;
  for (int item = tid; item < count; item += threads) {
    const double distance = found.distance[item];
    unknown |= !(fabs(distance) < CUDART_INF);
    least = fmin(least, distance);
    most = fmax(most, distance);
  }
#pragma unroll
  for (int gap = 16; gap > 0; gap /= 2) {
    least = fmin(least, __shfl_xor_sync(0xffffffffu, least, gap));
    most = fmax(most, __shfl_xor_sync(0xffffffffu, most, gap));
  }
  if (tid % 32 == 0) {
    memory.least[tid / 32] = least;
    memory.most[tid / 32] = most;
  }
  if (__syncthreads_or(unknown)) return false;
#pragma unroll
  for (int w = 0; w < Memory::warps; ++w) {
    least = fmin(least, memory.least[w]);
    most = fmax(most, memory.most[w]);
  }
  const double range = most - least;
  // This keeps the scale and its products finite.
  if (!(range > 1e-290 && range < 1e290)) return false;
  const double scale = Memory::buckets / range;
  const auto bucket_of = [&](int item) {
    // Subtraction, multiplication and rounding are monotone, so they keep the
    // order.
    const int bucket = static_cast<int>((found.distance[item] - least) * scale);
    return min(bucket, Memory::buckets - 1);
  };
  return order_by_buckets(
      count, most_compared, memory, order, bucket_of, [&](int a, int b) {
        const Entry first = found.get(a), second = found.get(b);
        return comes_before(first, second) ||
               (a < b && !comes_before(second, first));
      });
}

}  // namespace cuda
}  // namespace fsknn
