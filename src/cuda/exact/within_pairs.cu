#include "cuda/exact/within_pairs.hpp"

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
    double distance = value;
    if constexpr (is_unit_rule<Rule>) distance = rule.finish(value, 0.0, 0.0);
    step.within.append(part == 0 && first + own < step.count,
                       {row, column, value}, distance,
                       step.within.column_limit(column));
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
