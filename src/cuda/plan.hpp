#pragma once

// The plan of the CUDA engine. Pure arithmetic with no CUDA in it: linked in
// every build, and testable without a GPU.

#include "core/plan.hpp"

namespace fsknn {
namespace cuda {

/// A chunk is a multiple of this on a side: whole tiles of the distance kernel.
static constexpr std::int64_t kChunkUnit = 64;

/// input.num_workers: the devices. bytes_free: of the device that has least, 0
/// where it is not known; an automatic chunk is made small enough to fit.
/// bytes_prepared, bytes_working and bytes_peak are those of one device
/// (working: a chunk of distances, the neighbour lists of a split, and what is
/// on its way to the host); there is no filter yet.
Plan plan_cuda(const PlanInput& input, double bytes_free);

/// Entries of a list that go to the host at a time, for `rows` rows: as many
/// ranks as fit the staging memory, at least one, at most k.
std::int64_t ranks_at_a_time(std::int64_t rows, std::int64_t k);

}  // namespace cuda
}  // namespace fsknn
