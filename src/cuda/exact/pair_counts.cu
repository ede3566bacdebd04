#include "cuda/exact/pair_counts.hpp"

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

// Up to this many breaks and counters fit in shared memory; more use global
// memory.
constexpr std::int64_t kMostShared = 2048;
// The number of blocks down a chunk, each of which adds its counters to the
// total.
constexpr std::int64_t kMostDown = 64;

/// Computes PairValue of core/contract/pair_bins.hpp on a device.
template <bool unit>
__device__ inline double value_of(double found, Sign sign, bool similarity) {
  if (!unit || !similarity) return found_distance<unit>(found, sign);
  const double similar = clamp_to_one(found);
  if (sign == Sign::absolute) return fabs(similar);
  return sign == Sign::negative ? -similar : similar;
}

/// Computes PairBins::slot() on a device.
__device__ inline int slot_of(double value, const double* breaks, int count) {
  if (value == breaks[count - 1]) return count - 1;
  int first = 0;
  for (int left = count; left > 0;) {
    const int half = left / 2;
    const bool beyond = !(value < breaks[first + half]);
    first = beyond ? first + half + 1 : first;
    left = beyond ? left - half - 1 : half;
  }
  return first;
}

__device__ inline unsigned long long warp_least(unsigned long long x) {
  for (int gap = 16; gap > 0; gap /= 2)
    x = min(x, __shfl_xor_sync(0xffffffffu, x, gap));
  return x;
}

// In and out: see PairsToCount. Grid: x over columns, y over rows, in steps.
// Block: kThreads. Shared, where shared is true: num_breaks doubles and
// num_breaks + 1 counters, dynamic.
template <bool unit, bool shared>
__global__ void __launch_bounds__(kThreads)
    count_pairs(const PairsToCount step, const Sign sign) {
  extern __shared__ __align__(16) unsigned char memory[];
  double* const own_breaks = reinterpret_cast<double*>(memory);
  unsigned* const own_counts =
      reinterpret_cast<unsigned*>(own_breaks + step.num_breaks);
  const int num_breaks = static_cast<int>(step.num_breaks);
  if (shared) {
    for (int b = static_cast<int>(threadIdx.x); b <= num_breaks;
         b += kThreads) {
      if (b < num_breaks) own_breaks[b] = step.breaks[b];
      own_counts[b] = 0;
    }
    __syncthreads();
  }
  const double* const breaks = shared ? own_breaks : step.breaks;
  const std::int64_t c =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t end =
      c < step.chunk.num_columns
          ? min(step.chunk.num_rows, step.column0 + c - step.row0)
          : 0;
  double least = CUDART_INF, largest = -CUDART_INF;
  bool beyond = false;
  for (std::int64_t r = blockIdx.y; r < end; r += gridDim.y) {
    const double found = step.chunk.distances[r * step.chunk.stride + c];
    beyond = beyond || !(fabs(found) < CUDART_INF);
    const double value = value_of<unit>(found, sign, step.similarity);
    least = fmin(least, value);
    largest = fmax(largest, value);
    const int slot = slot_of(value, breaks, num_breaks);
    if (shared)
      atomicAdd(own_counts + slot, 1u);
    else
      atomicAdd(step.counts + slot, 1ull);
  }
  if (beyond) *step.beyond = 1;
  const unsigned long long low = warp_least(order_key_of(least));
  const unsigned long long high = ~warp_least(~order_key_of(largest));
  if (threadIdx.x % 32 == 0) {
    atomicMin(step.extremes, low);
    atomicMax(step.extremes + 1, high);
  }
  if (!shared) return;
  __syncthreads();
  for (int b = static_cast<int>(threadIdx.x); b <= num_breaks; b += kThreads)
    if (own_counts[b] > 0)
      atomicAdd(step.counts + b,
                static_cast<unsigned long long>(own_counts[b]));
}

}  // namespace

void start_counting_pairs(const MetricEntry& metric, const PairsToCount& step,
                          cudaStream_t stream) {
  const dim3 grid(
      static_cast<unsigned>((step.chunk.num_columns + kThreads - 1) / kThreads),
      static_cast<unsigned>(std::min(step.chunk.num_rows, kMostDown)));
  with_unit(metric, [&](auto unit) {
    if (step.num_breaks > kMostShared)
      count_pairs<unit(), false>
          <<<grid, kThreads, 0, stream>>>(step, metric.sign);
    else
      count_pairs<unit(), true>
          <<<grid, kThreads,
             static_cast<std::size_t>(step.num_breaks) * 12 + 16, stream>>>(
              step, metric.sign);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
