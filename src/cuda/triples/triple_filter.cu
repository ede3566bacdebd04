// Finds triples that may be similar enough.
#include "cuda/device/check.hpp"
#include "cuda/triples/triple_half_sums.cuh"
#include "cuda/triples/triple_word_sums.cuh"

namespace fsknn {
namespace cuda {
namespace {

// A block handles a tile. In: the pool, lists and jobs of the work. Out:
// candidates. Grid: x over tiles [from, to). Block: TripleThreads::threads.
// Shared: TripleThreads::shared_bytes.
template <class Sums>
__global__ void __launch_bounds__(TripleThreads::threads, 2)
    filter_triples(const TripleTileWork work) {
  extern __shared__ uint4 staged[];
  const TripleTile tile = triple_tile(work);
  Sums sums;
  sum_tile(work, tile, shared_address(staged), sums);
  const TripleEnds<Sums> ends(work, tile, sums);
  const float share = tile.job->float_share;
  const float own = work.points.most[tile.job->apex];
  float row_most[Sums::rows], column_most[Sums::columns];
#pragma unroll
  for (int i = 0; i < Sums::rows; ++i)
    row_most[i] =
        own +
        (ends.row[i] < 0 ? 0.0f : work.pool.most[ends.offset + ends.row[i]]);
#pragma unroll
  for (int j = 0; j < Sums::columns; ++j)
    column_most[j] = ends.column[j] < 0
                         ? 0.0f
                         : work.pool.most[ends.offset + ends.column[j]];
  const auto passes = [&](int i, int j) {
    return ends.has(i, j) &&
           sums.at(i, j) <= share * (row_most[i] + column_most[j]);
  };
  bool any = false;
  for_sums<Sums>([&](int i, int j) { any = any || passes(i, j); });
  if (!__any_sync(0xffffffffu, any)) return;
  for_sums<Sums>([&](int i, int j) {
    put_candidate(work, tile, passes(i, j), ends.row[i], ends.column[j]);
  });
}

template <class Sums>
void start(const TripleTileWork& work, cudaStream_t stream) {
  CUDA_CHECK(cudaFuncSetAttribute(filter_triples<Sums>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  TripleThreads::shared_bytes));
  filter_triples<Sums>
      <<<static_cast<unsigned>(work.to - work.from), TripleThreads::threads,
         TripleThreads::shared_bytes, stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void start_triple_filter(const TripleTileWork& work, cudaStream_t stream) {
  if (work.points.form == TripleForm::words)
    start<TripleWordSums>(work, stream);
  else if (has_feature_ranges(work.points.depth))
    start<TripleHalfSums<true>>(work, stream);
  else
    start<TripleHalfSums<false>>(work, stream);
}

}  // namespace cuda
}  // namespace fsknn
