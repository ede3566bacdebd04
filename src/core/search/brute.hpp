#pragma once

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// The answer by definition, which every backend must equal: the exact step
/// over all pairs, in scalar code, in the points' own order, without a filter.
/// queries: null for the graph of `points` (self excluded).
void brute_force(const Request& asked, const RowSource& points,
                 const RowSource* queries, const Neighbours& out);

}  // namespace fsknn
