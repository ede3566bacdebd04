#pragma once

// Searches whose points are not held: they are met block by block.

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cpu {

/// Whether there are so few queries that a filter would cost more to set up
/// than it saves. Then the exact step computes every pair.
bool few_queries(const Request& request, const RowSource* queries);

/// Finds the nearest neighbours of few queries. It reads and prepares the
/// points block by block, compares each block with every query, and drops it.
/// The answer equals that of find_neighbours().
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
