#pragma once

// The plan of the CUDA engine. It is pure arithmetic without CUDA: every build
// links it, and tests need no GPU.

#include "core/search/plan.hpp"
#include "cuda/plan/filter_shape.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/plan/pair_bands.hpp"
#include "cuda/plan/streaming.hpp"

namespace fsknn {
namespace cuda {

/// A plan, with the details of its filter if it has one.
struct CudaPlan : Plan {
  FilterShape shape;
  FilterStreaming streaming;   ///< if it is streamed as well
  PairsInDouble doubles = {};  ///< if there is no filter
  /// By groups: whether one search covers all groups (group_pairs.hpp).
  bool groups_at_once = false;
  std::int64_t list_blocks = 0;  ///< then: of the groups compared at a time
};

/// input.num_workers is the number of devices. An automatic chunk becomes small
/// enough to fit. bytes_prepared, bytes_filter, bytes_working and bytes_peak
/// are those of one device. Working bytes are a chunk of distances, the
/// neighbour lists of a split, and the pieces in transfer to the host.
///
/// The plan decides whether there is a filter (Plan::filtered), which needs
/// enough points or queries and not too many neighbours. It also decides how
/// many devices share it, and whether points are streamed (Plan::streamed). A
/// chunk is then what a block of threads compares at a time, and the unit in
/// which rows are recomputed.
///
/// For a graph by groups the plan is one search with a filter, if there is a
/// filter and the memory for it. Else it describes the searches of
/// core/search/by_groups.hpp. Chunks and pairs are those of all searches; the
/// rest is for the one that takes the most memory.
CudaPlan plan_cuda(const PlanInput& input, const GpuFacts& gpus);

}  // namespace cuda
}  // namespace fsknn
