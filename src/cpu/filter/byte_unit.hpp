#pragma once

// The unit of rows in bytes: what of a row's range 255 numbers are spread over.
// A bound is made of what each row loses, so any unit gives the same answers.

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Centre, unit and largest number, as a sample has them. queries: null when
/// the points are the queries. A unit of 0: the sample has no spread.
void fit_bytes(FilterScale& scale, const PreparedPoints& points,
               const PreparedPoints* queries);

/// Whether most of some queries stay within the unit's range: points may be
/// held in it for queries of which it knows nothing.
bool bytes_fit(const FilterScale& scale, const PreparedPoints& queries);

}  // namespace cpu
}  // namespace fsknn
