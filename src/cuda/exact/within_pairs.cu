#include "cuda/exact/within_pairs.hpp"

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/exact/pair_sum.cuh"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

using Block = ExactBlock<kThreads>;

// Computes the contract's distances of candidates and keeps those within a
// limit. In and out: see PairsToRerank. Grid: any. Block: kThreads. Shared:
// none.
template <class Rule>
__global__ void __launch_bounds__(kThreads)
    rerank_candidates(const PairsToRerank step, const Rule rule) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(threadIdx.x) % Block::pair_threads;
  const int own = static_cast<int>(threadIdx.x) / Block::pair_threads;
  for (std::int64_t first =
           static_cast<std::int64_t>(blockIdx.x) * Block::pairs;
       first < step.count;
       first += static_cast<std::int64_t>(gridDim.x) * Block::pairs) {
    // Threads past the end repeat the last pair, because the reduction needs
    // the whole warp.
    const std::int64_t at = min(first + own, step.count - 1);
    const SlotPair pair = step.pairs[at];
    const std::int32_t row = __ldg(step.row_places + pair.row);
    const std::int32_t column = __ldg(step.column_places + pair.column);
    const double sum = pair_sum<typename Rule::Sum>(
        step.rows + row * step.padded, step.columns + column * step.padded,
        step.padded, part);
    const double value = found_value<Rule>(sum, step.row_sums[row],
                                           step.column_sums[column], step.undo);
    const double distance =
        is_unit_rule<Rule> ? rule.finish(value, 0.0, 0.0) : value;
    const double column_limit = step.column_limits == nullptr
                                    ? -CUDART_INF
                                    : step.column_limits[column];
    const bool within = part == 0 && first + own < step.count &&
                        distance <= fmax(step.limits[row], column_limit);
    const unsigned finders = __ballot_sync(0xffffffffu, within);
    if (finders == 0) continue;
    std::int32_t place = 0;
    if (lane == 0) place = atomicAdd(step.num_found, __popc(finders));
    place = __shfl_sync(0xffffffffu, place, 0) +
            __popc(finders & ((1u << lane) - 1));
    if (within) step.found[place] = {row, column, value};
  }
}

}  // namespace

void start_reranking_pairs(const MetricEntry& metric, const PairsToRerank& step,
                           cudaStream_t stream) {
  if (step.count == 0) return;
  const unsigned grid = static_cast<unsigned>(std::min<std::int64_t>(
      (step.count + Block::pairs - 1) / Block::pairs, 1 << 16));
  with_any_sign(metric, [&](auto rule) {
    rerank_candidates<<<grid, kThreads, 0, stream>>>(step, rule);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
