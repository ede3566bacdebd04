#pragma once

// Chooses the form in which the rows of a search are filtered, and their common
// scale.

#include "core/contract/request.hpp"
#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// The use of the filter in a request. It includes bits that a request sets
/// after the name of an instruction set ("auto/8", a testing aid).
FilterUse use_for_lists(const Request& request);
FilterUse use_within(const Request& request);

/// Chooses the form of the metric's filter and the common scale, from points
/// and queries (null if the points are the queries).
FilterScale choose_scale(const MetricEntry& metric, const DistanceRule& rule,
                         const Kernels& kernels, const PreparedPoints& points,
                         const PreparedPoints* queries, int num_threads,
                         const FilterUse& use = {});

/// Whether the scale also serves these queries. Forms with a factor for each
/// row (products) serve any: the rounding of rows is measured, and the slack
/// covers it. Forms with one common unit serve entries within its reach. Then
/// whole numbers stay within `largest`, each rounded by at most half a unit, no
/// sum overflows, and floats stay below 2. Bits serve 0 and 1. Differences of
/// bytes are valid for any queries, but a new scale is chosen for queries of
/// which most would be clipped.
bool reaches(const FilterScale& scale, const PreparedPoints& queries,
             int num_threads);

}  // namespace cpu
}  // namespace fsknn
