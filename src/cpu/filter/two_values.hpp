#pragma once

// Rows of length 1 with two values each, in bits, and the test for such rows.

#include "core/contract/metric.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Whether all rows are such: centred, or with a lower value of 0. In most
/// other data the first row shows that they are not.
bool holds_two_values(const PreparedPoints& points, bool centred,
                      int num_threads);

/// The form for a metric of rows of length 1, and whether a form is one of
/// these.
const FilterForm& two_value_form(const MetricEntry& metric);
bool is_two_values(const FilterForm& form);

}  // namespace cpu
}  // namespace fsknn
