#pragma once

// Neighbours by group, combined from searches without groups.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// The number of points in each group, except those in `skip` (ascending).
std::vector<std::int64_t> sizes_of(const PointGroups& groups,
                                   const std::vector<std::int64_t>& skip);

/// The search of an engine, with the arguments of its find_neighbours().
using FindNeighbours =
    std::function<void(const Request&, const RowSource* queries,
                       const Neighbours&, Progress*, Stats*)>;

/// Answers the request with groups by searches without groups. Each group is
/// searched for the rows that need neighbours in it; for a graph also by
/// itself. A search skips the rows and columns that it does not need, so that
/// all searches have the same source. In a graph each pair of points is
/// compared twice, unless both are in one group.
void find_by_groups(const Request& request, const RowSource& points,
                    const RowSource* queries, const Neighbours& out,
                    Progress* progress, Stats* stats,
                    const FindNeighbours& find);

}  // namespace fsknn
