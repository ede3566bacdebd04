// Finds triples of small whole numbers that may be similar enough, and counts
// them by similarity.
#include <algorithm>

#include "core/contract/triple_sums.hpp"
#include "cuda/device/check.hpp"
#include "cuda/filter/start_pairs.cuh"
#include "cuda/triples/triple_counts.cuh"
#include "cuda/triples/triple_squares.cuh"

namespace fsknn {
namespace cuda {
namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kBitThreads = HopperBlock::threads;
#else
constexpr int kBitThreads = 32;
#endif

// A thread's sums of 16 columns, from which it can select by index.
constexpr int kTaken = 16;
constexpr int kTakenBytes = 4 * HopperBlock::consumers * kTaken * 32 * 4;
constexpr int kFilterBytes = SquareMemory::others;
constexpr int kBinBytes = 14336;
constexpr int kBitCountBytes = SquareMemory::others + kTakenBytes + kBinBytes;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Appends candidates to the list together: of each lane, those of four pairs
// whose bits are set.
__device__ inline void put_counted(const TripleTileWork& work,
                                   const TripleSquare& square,
                                   const SquareRows& rows, unsigned passes,
                                   const int (&largest)[4], std::int64_t column,
                                   int lane) {
  const int own = __popc(passes);
  int end = own;
#pragma unroll
  for (int gap = 1; gap < 32; gap *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, end, gap);
    if (lane >= gap) end += before;
  }
  unsigned long long first = 0;
  if (lane == 31)
    first =
        atomicAdd(work.num_candidates, static_cast<unsigned long long>(end));
  first = __shfl_sync(0xffffffffu, first, 31);
  unsigned long long at = first + static_cast<unsigned>(end - own);
  const std::int32_t* const places = work.pool.places + square.job->offset;
#pragma unroll
  for (int q = 0; q < 4; ++q)
    if (passes >> q & 1u) {
      if (at < static_cast<unsigned long long>(work.capacity))
        work.candidates[at] = {
            places[rows.position[q / 2]], places[column + q % 2],
            static_cast<std::int32_t>(square.job - work.jobs), largest[q]};
      ++at;
    }
}

#endif

// A cluster handles a square at a time. In: the pool, lists and jobs of the
// work. Out: candidates. Grid: x, clusters of two. Block: kBitThreads. Shared:
// kFilterBytes. Empty except on Hopper.
__global__ void __launch_bounds__(kBitThreads, 1)
    filter_squares(const TripleTileWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  const auto take = [&](const TripleSquare& square, const SquareSums& sums,
                        int warp, int lane) {
    const SquareRows rows(work, square, warp, lane);
    // Whole numbers as floats, and their product, have an error of at most
    // 2^-22.
    const float share = square.job->float_share * (1.0f + 0x1p-18f);
    const int4* const counts = reinterpret_cast<const int4*>(
        work.pool.counts + square.job->offset + rows.first_column);
#pragma unroll
    for (int g = 0; g < SquareSums::groups; ++g) {
      const int4 two = __ldg(counts + 4 * g);
      const std::int64_t column = rows.first_column + 8 * g;
      int largest[4];
      unsigned passes = 0;
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int i = q / 2, e = q % 2;
        largest[q] =
            rows.bits[i] + (e == 0 ? two.x : two.z) - sums.common[4 * g + q];
        const int total = rows.sum[i] + (e == 0 ? two.y : two.w);
        if (static_cast<float>(largest[q]) <=
                share * static_cast<float>(total) &&
            rows.has(i, column + e))
          passes |= 1u << q;
      }
      if (__any_sync(0xffffffffu, passes != 0))
        put_counted(work, square, rows, passes, largest, column, lane);
    }
  };
  for_squares(work, memory, take, [] {});
#endif
}

// Does the same for counts. Out: counts of bins. Shared: kBitCountBytes.
__global__ void __launch_bounds__(kBitThreads, 1)
    count_squares_bins(const TripleTileWork work, const TripleBins bins) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  BlockCounts counts(bins, memory + SquareMemory::others + kTakenBytes,
                     kBinBytes);
  const auto take_square = [&](const TripleSquare& square,
                               const SquareSums& sums, int warp, int lane) {
    const SquareRows rows(work, square, warp, lane);
    int* const taken = reinterpret_cast<int*>(memory + SquareMemory::others) +
                       warp * (kTaken * 32) + lane;
    // Most sums of a thread are in the previous sum's bin: a float comparison
    // with its ends proves that.
    int last = 0;
    unsigned in_last = 0;
    float low = 2.0f, high = 0.0f;
    const auto take = [&](int i, std::int64_t column, int common) {
      if (!rows.has(i, column)) return;
      const int2 other = __ldg(work.pool.counts + square.job->offset + column);
      const int largest = rows.bits[i] + other.x - common;
      const int total = rows.sum[i] + other.y;
      const float rough = 1.5f * __fdividef(static_cast<float>(total - largest),
                                            static_cast<float>(total));
      if (!(rough > low && rough < high)) {
        const int bin = counts.bin_of(similarity_of_three(
            static_cast<double>(largest), static_cast<double>(total)));
        if (bin != last) {
          counts.add(last, in_last);
          last = bin;
          in_last = 0;
        }
        constexpr double off = 0x1p-18;
        low =
            bin == 0 ? -1.0f : static_cast<float>(counts.end_of(bin - 1) + off);
        high = static_cast<float>(counts.end_of(bin) - off);
      }
      ++in_last;
    };
#pragma unroll
    for (int g = 0; g < SquareSums::groups; g += kTaken / 4) {
#pragma unroll
      for (int at = 0; at < kTaken; ++at)
        taken[at * 32] = sums.common[4 * g + at];
#pragma unroll 1
      for (int at = 0; at < kTaken; ++at)
        take(at / 2 % 2, rows.first_column + 8 * (g + at / 4) + at % 2,
             taken[at * 32]);
    }
    counts.add(last, in_last);
  };
  for_squares(work, memory, take_square, [&] {
    meet_consumers();
    counts.put(128 * HopperBlock::consumers);
  });
#endif
}

/// Starts as many clusters as there is room for, or as there are squares.
template <class... Arguments>
void start_squares(void (*kernel)(Arguments...), int bytes,
                   const TripleTileWork& work, cudaStream_t stream,
                   Arguments... arguments) {
  CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const std::int64_t clusters = multiprocessors_here() / HopperBlock::cluster;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = HopperBlock::cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(
      HopperBlock::cluster * std::min(work.to - work.from, clusters));
  config.blockDim = HopperBlock::threads;
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace

void start_triple_bit_filter(const TripleTileWork& work, cudaStream_t stream) {
  start_squares(filter_squares, kFilterBytes, work, stream, work);
}

void start_triple_bit_counts(const TripleTileWork& work, const TripleBins& bins,
                             cudaStream_t stream) {
  start_squares(count_squares_bins, kBitCountBytes, work, stream, work, bins);
}

bool has_triple_bits() { return has_warpgroups(filter_squares); }

}  // namespace cuda
}  // namespace fsknn
