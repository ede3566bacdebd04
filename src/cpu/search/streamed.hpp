#pragma once

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cpu {

/// As find_neighbours() for points, or queries, that do not fit in memory: they
/// are read by blocks, of which two are there at a time, and block meets block.
void find_streamed(const Request& request, const RowSource& points,
                   const RowSource* queries, const Neighbours& out,
                   Progress* progress, Stats* stats);

}  // namespace cpu
}  // namespace fsknn
