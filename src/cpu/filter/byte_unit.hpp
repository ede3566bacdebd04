#pragma once

// The unit of rows in bytes, which maps a row's range to 255 numbers. A row's
// bound contains its own loss, so that any unit gives the same answers.

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Sets centre, unit and largest number from a sample. queries is null if the
/// points are the queries. The unit is 0 if the sample has no spread.
void fit_bytes(FilterScale& scale, const PreparedPoints& points,
               const PreparedPoints* queries);

/// Whether most sampled queries are within the unit's range. Held points may
/// have a unit that was chosen without these queries.
bool bytes_fit(const FilterScale& scale, const PreparedPoints& queries);

}  // namespace cpu
}  // namespace fsknn
