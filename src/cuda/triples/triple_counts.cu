// Counts triples by similarity.
#include "cuda/device/check.hpp"
#include "cuda/triples/triple_counts.cuh"
#include "cuda/triples/triple_half_sums.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// A block's data on its tile while it counts; they overwrite the staged rows.
struct CountedTile {
  /// With this stride, a warp's 8 columns of 4 rows use all banks.
  static constexpr int stride = TripleBlock::columns + 4;
  double row_total[TripleBlock::rows];     ///< with the apex's
  std::int32_t row_at[TripleBlock::rows];  ///< position; -1: none
  float sums[TripleBlock::rows * stride];
};
constexpr int kCountBytes =
    TripleThreads::shared_bytes - static_cast<int>(sizeof(CountedTile));
static_assert(kCountBytes >= 8192 && sizeof(CountedTile) % 8 == 0,
              "there is room for some bins");

// Does what filter_triples() does. Out: counts of bins, and candidates whose
// bin the sum of halves does not determine.
template <class Sums>
__global__ void __launch_bounds__(TripleThreads::threads, 2)
    count_triples(const TripleTileWork work, const TripleBins bins) {
  extern __shared__ uint4 staged[];
  const TripleTile tile = triple_tile(work);
  const TripleJob& job = *tile.job;
  Sums sums;
  sum_tile(work, tile, shared_address(staged), sums);
  __syncthreads();
  CountedTile& all = *reinterpret_cast<CountedTile*>(staged);
  for_sums<Sums>([&](int i, int j) {
    all.sums[sums.row(i) * CountedTile::stride + sums.column(j)] =
        sums.at(i, j);
  });
  const auto scaled_sum = [&](std::int64_t place) {
    return (work.points.sums[place] * bins.scale.first) * bins.scale.second;
  };
  const double own = scaled_sum(job.apex);
  if (threadIdx.x < TripleBlock::rows) {
    const std::int64_t row = tile.first_row + threadIdx.x;
    const std::int32_t at =
        row < job.rows ? work.lowers[static_cast<std::int64_t>(job.list) *
                                         work.points.count +
                                     row]
                       : -1;
    all.row_at[threadIdx.x] = at;
    all.row_total[threadIdx.x] =
        at < 0 ? 0.0 : own + scaled_sum(work.pool.places[job.offset + at]);
  }
  BlockCounts counts(bins, &all + 1, kCountBytes);
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x) % TripleBlock::columns;
  const std::int64_t position = tile.first_column + column;
  const bool is_column = position < job.columns;
  const double column_sum =
      is_column ? scaled_sum(work.pool.places[job.offset + position]) : 0.0;
  constexpr int at_once = TripleThreads::threads / TripleBlock::columns;
  // Most sums of a thread are in the previous sum's bin.
  int last = 0;
  unsigned in_last = 0;
#pragma unroll 2
  for (int r = static_cast<int>(threadIdx.x) / TripleBlock::columns;
       r < TripleBlock::rows; r += at_once) {
    const std::int32_t at = all.row_at[r];
    bool is_open = false;
    if (is_column && at >= 0 && at < position) {
      const double total = all.row_total[r] + column_sum;
      is_open = true;
      if (total >= bins.small) {
        const double sum =
            static_cast<double>(all.sums[r * CountedTile::stride + column]);
        const double by = 1.5 / total;
        const double low =
            1.5 - (sum * bins.high + bins.lost) * by - bins.off_exact;
        const double high = 1.5 - (sum * bins.low) * by + bins.off_exact;
        const int bin = counts.bin_of(fmin(1.0, fmax(0.0, low)));
        const double end = fmin(1.0, fmax(0.0, high));
        if (end < counts.end_of(bin) || counts.bin_of(end) == bin) {
          is_open = false;
          if (bin != last) {
            counts.add(last, in_last);
            last = bin;
            in_last = 0;
          }
          ++in_last;
        }
      }
    }
    put_candidate(work, tile, is_open, at, static_cast<std::int32_t>(position));
  }
  counts.add(last, in_last);
  counts.finish();
}

template <class Sums>
void start(const TripleTileWork& work, const TripleBins& bins,
           cudaStream_t stream) {
  CUDA_CHECK(cudaFuncSetAttribute(count_triples<Sums>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  TripleThreads::shared_bytes));
  count_triples<Sums>
      <<<static_cast<unsigned>(work.to - work.from), TripleThreads::threads,
         TripleThreads::shared_bytes, stream>>>(work, bins);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void start_triple_counts(const TripleTileWork& work, const TripleBins& bins,
                         cudaStream_t stream) {
  if (has_feature_ranges(work.points.depth))
    start<TripleHalfSums<true>>(work, bins, stream);
  else
    start<TripleHalfSums<false>>(work, bins, stream);
}

}  // namespace cuda
}  // namespace fsknn
