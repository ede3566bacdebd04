#pragma once

// How many of all pairs of points have a value (a distance, or a similarity)
// between each two breaks: exact counts, with no pair kept.

#include "core/base/progress.hpp"
#include "core/contract/pair_bins.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cpu {

/// Counts all pairs of points but those that the request skips; under
/// na_pairwise those that have a value. progress and stats may be null.
PairCounts count_pairs(const Request& asked, const PairBins& bins,
                       const RowSource& points, Progress* progress,
                       Stats* stats);

}  // namespace cpu
}  // namespace fsknn
