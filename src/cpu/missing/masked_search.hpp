#pragma once

// Searches where request.na_pairwise: over the samples that both rows have.

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/search/within.hpp"

namespace fsknn {
namespace cpu {

/// find_neighbours() for request.na_pairwise.
void find_masked(const Request& request, const RowSource& points,
                 const RowSource* queries, const Neighbours& out,
                 Progress* progress, Stats* stats);

/// find_within() where request.na_pairwise.
void find_masked_within(const Request& request, const Within& within,
                        const RowSource& points, const RowSource* queries,
                        WithinAnswer& answer, Progress* progress, Stats* stats);

}  // namespace cpu
}  // namespace fsknn
