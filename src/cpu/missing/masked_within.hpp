#pragma once

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/search/within.hpp"

namespace fsknn {
namespace cpu {

/// find_within() where request.na_pairwise.
void find_masked_within(const Request& request, const Within& within,
                        const RowSource& points, const RowSource* queries,
                        WithinAnswer& answer, Progress* progress, Stats* stats);

}  // namespace cpu
}  // namespace fsknn
