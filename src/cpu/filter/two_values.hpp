#pragma once

// Rows of length 1 of two values each in bits, and whether points are such.

#include "core/contract/metric.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Whether all rows are: centred ones, or such whose lower value is 0. Others
/// show in the first row, mostly.
bool holds_two_values(const PreparedPoints& points, bool centred,
                      int num_threads);

/// For a metric of rows of length 1, and whether a form is one of these.
const FilterForm& two_value_form(const MetricEntry& metric);
bool is_two_values(const FilterForm& form);

}  // namespace cpu
}  // namespace fsknn
