#pragma once

// Searches with a store of points, which must outlive them.

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/search/within.hpp"
#include "cuda/search/point_store.hpp"

namespace fsknn {
namespace cuda {

/// Does find_neighbours() of backend.hpp, with points prepared in the store.
void find_with_store(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats, PointStore& store);

/// Does find_within() of backend.hpp. Points stay prepared in the store if all
/// of them fit.
void find_within_with_store(const Request& request, const Within& within,
                            const RowSource& points, const RowSource* queries,
                            WithinAnswer& answer, Progress* progress,
                            Stats* stats, PointStore& store);

}  // namespace cuda
}  // namespace fsknn
