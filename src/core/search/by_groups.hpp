#pragma once

// Neighbours by group, put together of searches that know no groups.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// Points of each group that are not left out. skip: ascending.
std::vector<std::int64_t> sizes_of(const PointGroups& groups,
                                   const std::vector<std::int64_t>& skip);

/// An engine's search of the points: as its find_neighbours().
using FindNeighbours =
    std::function<void(const Request&, const RowSource* queries,
                       const Neighbours&, Progress*, Stats*)>;

/// What the request with groups asks for, by searches without: for each group
/// the rows that look for neighbours there, and of a graph the group by itself.
/// Rows and columns that a search is not about are left out of it, so that the
/// points are the same source in all of them. Each two points of a graph meet
/// twice unless they are of one group.
void find_by_groups(const Request& request, const RowSource& points,
                    const RowSource* queries, const Neighbours& out,
                    Progress* progress, Stats* stats,
                    const FindNeighbours& find);

}  // namespace fsknn
