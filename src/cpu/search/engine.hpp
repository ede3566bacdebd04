#pragma once

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/search/plan.hpp"

namespace fsknn {
namespace cpu {

/// The k nearest of every point (queries null: self excluded), or of every
/// query among the points. Equal to core's brute_force(), bit for bit.
/// progress and stats may be null.
void find_neighbours(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats);

}  // namespace cpu
}  // namespace fsknn
