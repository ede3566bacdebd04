// Which triples may be as similar as is asked for.
#include "cuda/device/check.cuh"
#include "cuda/triples/triple_tiles.cuh"

namespace fsknn {
namespace cuda {
namespace {

// A block a tile. In: the pool, lists and jobs of the work. Out: candidates.
// Grid: x over tiles [from, to). Block: TripleWarps::threads. Shared:
// TripleWarps::shared_bytes.
template <bool stretches>
__global__ void __launch_bounds__(TripleWarps::threads, 2)
    filter_triples(const TripleTileWork work) {
  extern __shared__ uint4 staged[];
  const TripleTile tile = triple_tile(work);
  TripleSums sums;
  sum_tile<stretches>(work, tile, shared_address(staged), sums);
  const TripleEnds ends(work, tile);
  const float share = tile.job->float_share;
  const float own = work.points.most[tile.job->apex];
  float row_most[TripleWarps::octets][2], column_most[TripleWarps::groups][2];
#pragma unroll
  for (int e = 0; e < 2; ++e) {
#pragma unroll
    for (int o = 0; o < TripleWarps::octets; ++o)
      row_most[o][e] =
          own + (ends.row[o][e] < 0
                     ? 0.0f
                     : work.pool.most[ends.offset + ends.row[o][e]]);
#pragma unroll
    for (int c = 0; c < TripleWarps::groups; ++c)
      column_most[c][e] = ends.column[c][e] < 0
                              ? 0.0f
                              : work.pool.most[ends.offset + ends.column[c][e]];
  }
  bool any = false;
  for_sums([&](int c, int o, int e) {
    any = any || (ends.has(c, o, e) &&
                  sums.of[c][o][e] <=
                      share * (row_most[o][e % 2] + column_most[c][e / 2]));
  });
  if (!__any_sync(0xffffffffu, any)) return;
  for_sums([&](int c, int o, int e) {
    const bool passes = ends.has(c, o, e) &&
                        sums.of[c][o][e] <= share * (row_most[o][e % 2] +
                                                     column_most[c][e / 2]);
    put_candidate(work, tile, passes, ends.row[o][e % 2],
                  ends.column[c][e / 2]);
  });
}

template <bool stretches>
void start(const TripleTileWork& work, cudaStream_t stream) {
  CUDA_CHECK(cudaFuncSetAttribute(filter_triples<stretches>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  TripleWarps::shared_bytes));
  filter_triples<stretches>
      <<<static_cast<unsigned>(work.to - work.from), TripleWarps::threads,
         TripleWarps::shared_bytes, stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void start_triple_filter(const TripleTileWork& work, cudaStream_t stream) {
  if (has_stretches(work.points.depth))
    start<true>(work, stream);
  else
    start<false>(work, stream);
}

}  // namespace cuda
}  // namespace fsknn
