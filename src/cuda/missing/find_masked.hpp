#pragma once

// Searches over the samples for which both rows of a pair have values.

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cuda {

/// find_neighbours() where request.na_pairwise.
void find_masked(const Request& request, const RowSource& points,
                 const RowSource* queries, const Neighbours& out,
                 Progress* progress, Stats* stats);

}  // namespace cuda
}  // namespace fsknn
