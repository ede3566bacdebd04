// Finds triples of small whole numbers that may be similar enough, and counts
// them by similarity.
#include <algorithm>

#include "core/contract/triple_sums.hpp"
#include "cuda/device/check.hpp"
#include "cuda/triples/triple_counts.cuh"
#include "cuda/triples/triple_squares.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// The numbers of its rows that a thread needs.
struct CountedRows : SquareRows {
  int bits[2];  ///< of X
  int sum[2];   ///< the point's and the apex's
  __device__ CountedRows(const TripleTileWork& work, const TripleSquare& square,
                         int warp, int lane)
      : SquareRows(work, square, warp, lane) {
    const int apex = static_cast<int>(work.points.sums[square.job->apex]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int2 counts = work.pool.counts[pool_row[i]];
      bits[i] = counts.x;
      sum[i] = counts.y + apex;
    }
  }
};

// A cluster handles a square at a time. In: the pool, lists and jobs of the
// work. Out: candidates. Grid: x, clusters of two. Block: kSquareThreads.
// Shared: SquareMemory. Empty except on Hopper.
__global__ void __launch_bounds__(kSquareThreads, 1)
    filter_squares(const TripleTileWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  const auto take = [&](const TripleSquare& square, const SquareSums& sums,
                        int warp, int lane) {
    const CountedRows rows(work, square, warp, lane);
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

// Does the same for counts. Out: counts of bins. Shared: kTakenBytes and
// kBinBytes, besides.
__global__ void __launch_bounds__(kSquareThreads, 1)
    count_squares_bins(const TripleTileWork work, const TripleBins bins) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  unsigned char* const data = data_of_kernel(memory);
  BlockCounts counts(bins, data + kTakenBytes, kBinBytes);
  const auto take_square = [&](const TripleSquare& square,
                               const SquareSums& sums, int warp, int lane) {
    const CountedRows rows(work, square, warp, lane);
    // Most sums of a thread are in the previous sum's bin: a float comparison
    // with its ends proves that.
    int last = 0;
    unsigned in_last = 0;
    float low = 2.0f, high = 0.0f;
    for_each_sum(sums, data, warp, lane, [&](int g, int at, int common) {
      const int i = at / 2;
      const std::int64_t column = rows.first_column + 8 * g + at % 2;
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
    });
    counts.add(last, in_last);
  };
  for_squares(work, memory, take_square, [&] {
    meet_consumers();
    counts.put(128 * HopperBlock::consumers);
  });
#endif
}

}  // namespace

void start_squares(const void* kernel, void** arguments, int bytes,
                   const TripleTileWork& work, cudaStream_t stream) {
  const bool hopper = has_warpgroups(kernel);
  if (hopper) bytes += SquareMemory::others;
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
  config.blockDim = hopper ? HopperBlock::threads : 256;
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = hopper ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
}

void start_triple_bit_filter(const TripleTileWork& work, cudaStream_t stream) {
  start_squares(filter_squares, 0, work, stream, work);
}

void start_triple_bit_counts(const TripleTileWork& work, const TripleBins& bins,
                             cudaStream_t stream) {
  start_squares(count_squares_bins, kTakenBytes + kBinBytes, work, stream, work,
                bins);
}

bool has_triple_bits() { return has_warpgroups(filter_squares); }

}  // namespace cuda
}  // namespace fsknn
