#pragma once

#include "core/search/within.hpp"

namespace fsknn {
namespace cpu {

/// All pairs within a distance, by the filter with fixed thresholds. Equal to
/// core's brute_within(), bit for bit. progress and stats may be null.
void find_within(const Request& request, const Within& within,
                 const RowSource& points, const RowSource* queries,
                 WithinAnswer& answer, Progress* progress, Stats* stats);

}  // namespace cpu
}  // namespace fsknn
