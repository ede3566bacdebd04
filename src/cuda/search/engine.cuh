#pragma once

// Searches by a store of points, which outlives them.

#include "core/progress.hpp"
#include "core/request.hpp"
#include "core/source.hpp"
#include "cuda/search/point_store.cuh"

namespace fsknn {
namespace cuda {

/// find_neighbours() of backend.hpp, its points prepared in the store.
void find_with_store(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats, PointStore& store);

}  // namespace cuda
}  // namespace fsknn
