#pragma once

// Searches whose points are not held: they are met block by block.

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cpu {

/// Whether so few queries are asked for that every pair is dealt with by the
/// exact step: a filter would cost more to set up than it saves.
bool few_queries(const Request& request, const RowSource* queries);

/// The nearest of few queries: points are read, prepared, met by every query,
/// and dropped, block by block. Equal to find_neighbours() by any other way.
void find_for_few(const Request& request, const RowSource& points,
                  const RowSource& queries, const Neighbours& out,
                  Progress* progress, Stats* stats);

/// As find_neighbours() for points, or queries, that do not fit in memory: they
/// are read by blocks, of which two are there at a time, and block meets block.
void find_streamed(const Request& request, const RowSource& points,
                   const RowSource* queries, const Neighbours& out,
                   Progress* progress, Stats* stats);

}  // namespace cpu
}  // namespace fsknn
