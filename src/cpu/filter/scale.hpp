#pragma once

// Which form the rows of a search are filtered in, and what they have in
// common.

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Chooses the form of the metric's filter and the common scale, from points
/// and queries (null when the points are the queries).
FilterScale choose_scale(const MetricEntry& metric, const DistanceRule& rule,
                         const Kernels& kernels, const PreparedPoints& points,
                         const PreparedPoints* queries, int num_threads);

}  // namespace cpu
}  // namespace fsknn
