#pragma once

// Which form the rows of a search are filtered in, and what they have in
// common.

#include "core/contract/request.hpp"
#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Bits that are asked for behind the name of an instruction set ("auto/8", a
/// testing aid) are taken.
FilterUse use_for_lists(const Request& request);
FilterUse use_within(const Request& request);

/// Chooses the form of the metric's filter and the common scale, from points
/// and queries (null when the points are the queries).
FilterScale choose_scale(const MetricEntry& metric, const DistanceRule& rule,
                         const Kernels& kernels, const PreparedPoints& points,
                         const PreparedPoints* queries, int num_threads,
                         const FilterUse& use = {});

/// Whether the scale serves these queries too. Forms whose rows have a factor
/// each (products) take any: how a row was rounded is measured, and the slack
/// follows it. Those of one unit for all take what is within its reach: then
/// whole numbers stay within `largest`, where each is rounded by half a unit at
/// most and no sum overflows, and floats below 2. Bits take 0 and 1. Bytes that
/// are subtracted would do for any, and are chosen anew for queries that would
/// mostly be cut off.
bool reaches(const FilterScale& scale, const PreparedPoints& queries,
             int num_threads);

}  // namespace cpu
}  // namespace fsknn
