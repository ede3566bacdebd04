#include "cuda/search/panel_correlations.hpp"

#include "cuda/device/check.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kPairsPerBlock = 32;

// Computes the contract's r of the neighbours in the panel: 8 threads, one a
// lane, compute a pair. In and out: see PanelPairs. Grid: x over entries of the
// lists. Block: kPairsPerBlock * 8. Shared: none.
__global__ void __launch_bounds__(kPairsPerBlock* kLanes)
    correlate_with_panel(const PanelPairs p) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t entry =
      static_cast<std::int64_t>(blockIdx.x) * kPairsPerBlock +
      threadIdx.x / kLanes;
  const bool there = entry < p.rows.count * p.lists.k;
  const std::int64_t at = there ? entry : 0;
  const std::int32_t index = p.lists.index[at];
  std::int64_t column = -1;
  if (there && p.in_order)
    column = at;
  else if (there && index != kNoPoint)
    column =
        (p.places != nullptr ? p.places[index] : index) - p.columns.first.value;
  const bool here = column >= 0 && column < p.columns.count;
  // The reduction needs all threads of the warp.
  if (!__any_sync(0xffffffffu, here)) return;
  const std::int64_t row = at / p.lists.k;
  if (!here) column = 0;
  const double part =
      lane_sum<Dot>(p.rows.rows + row * p.padded,
                    p.columns.rows + column * p.padded, p.padded, lane);
  const double r = clamp_to_one(unit_similarity(
      joined<Dot>(part), p.rows.sums[row], p.columns.sums[column]));
  if (lane == 0 && here) p.correlation[at] = r;
}

}  // namespace

void start_correlating(const PanelPairs& pairs, cudaStream_t stream) {
  const std::int64_t grid =
      (pairs.rows.count * pairs.lists.k + kPairsPerBlock - 1) / kPairsPerBlock;
  correlate_with_panel<<<static_cast<unsigned>(grid), kPairsPerBlock * kLanes,
                         0, stream>>>(pairs);
  CUDA_CHECK(cudaGetLastError());
}

bool correlate_all(PanelPairs pairs, const Panels& panels, Workers& workers,
                   const Stream& stream) {
  pairs.places = panels.from.places();
  return for_panels(panels, stream, [&](const Panel& columns) {
    pairs.columns = columns;
    start_correlating(pairs, stream.get());
    return workers.go_on();
  });
}

}  // namespace cuda
}  // namespace fsknn
