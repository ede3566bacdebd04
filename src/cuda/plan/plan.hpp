#pragma once

// The plan of the CUDA engine. Pure arithmetic with no CUDA in it: linked in
// every build, and testable without a GPU.

#include "core/search/plan.hpp"
#include "cuda/plan/filter_shape.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/plan/pair_bands.hpp"
#include "cuda/plan/streaming.hpp"

namespace fsknn {
namespace cuda {

/// A plan, and how its filter works, where it has one.
struct CudaPlan : Plan {
  FilterShape shape;
  FilterStreaming streaming;  ///< where it is streamed, too
  PairsInDouble doubles;      ///< where there is no filter
  /// By groups: in one search (group_pairs.hpp), and not one after another.
  bool groups_at_once = false;
  std::int64_t list_blocks = 0;  ///< then: of those that meet at a time
};

/// input.num_workers: the devices. An automatic chunk is made small enough to
/// fit. bytes_prepared, bytes_filter, bytes_working and bytes_peak are those of
/// one device (working: a chunk of distances, the neighbour lists of a split,
/// and what is on its way to the host).
///
/// Here is chosen what the filter does (Plan::filtered): graphs of enough
/// points and enough queries, with not too many neighbours; on how many of the
/// devices; and whether the points come piece by piece (Plan::streamed). A
/// chunk is then what a block of threads meets at a time, and what the rows
/// that no filter settles are done again by.
///
/// By groups, of a graph: in one search with a filter, where there is one and
/// the room for it; else it is of the searches that core/search/by_groups.hpp
/// makes, numbers of chunks and pairs of all of them, and the rest of the one
/// that takes the most memory.
CudaPlan plan_cuda(const PlanInput& input, const GpuFacts& gpus);

}  // namespace cuda
}  // namespace fsknn
