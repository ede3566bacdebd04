#pragma once

#include "core/plan.hpp"
#include "core/progress.hpp"
#include "core/request.hpp"
#include "core/source.hpp"

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
