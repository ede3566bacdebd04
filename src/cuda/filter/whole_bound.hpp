#pragma once

// The error bound of the filter by differences of whole numbers: that of floats
// (float_bound.hpp), apart from these points. Plain C++, for host and device.
//
// A row's entry x becomes q, the whole number nearest to clamp((x - centre) /
// unit), from -most to most, with one centre a feature and one unit, any
// positive number, for all rows. q plus an offset is stored.
//  * Bytes: l, the sum of |q_i - q_j|, is below 2 most d <= 254 * 32,768 < 2^23
//    (NumberFormEntry::most_features). It is added to the bits of 2^23, giving
//    2^23 + l, so that l is an exact float.
//  * 16 bits: l = T_i + T_j - 2 M, T the sum of a row's stored numbers and M
//    that of the minima, modulo 2^32. l <= 65,534 * 32,768 < 2^31, so l is
//    exact, and its conversion to a float is within 2^-24 of it.
//  * The largest difference: most is 2^14 - 1, so that a - b - 1 of stored
//    numbers, which are from 0 to 2^15 - 1, is a 16-bit number; l is exact.
// So F is the rounding of the test's own operations: for s, three in 2^-24 each
// of at most l and both rooms; for may_reach()'s product, or a quotient and a
// sum of sums, 2^-19 as with floats. All is relative to l, which is at most A_i
// + A_j. C holds for any unit: x - centre and its product are each rounded
// once. This moves an entry that is not clamped by 2^-52 of |v|, and a clamped
// one by less. The intended unit is the inverse of inverse_unit. The rest is as
// with floats: the two rounding errors are R, the clamped parts are K, and
// |clamp(a) - clamp(b)| <= |a - b|.

#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/filter/float_bound.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// Returns the largest whole number of a row in a form of whole numbers; the
/// offset is one more.
constexpr int most_whole(NumberForm form, FilterKind kind) {
  return form == NumberForm::byte_difference ? 127
         : kind == FilterKind::largest       ? 16383
                                             : 32767;
}

/// Returns the filter's form of an entry, and adds its share to the row's
/// terms.
FSKNN_HD inline int whole_entry(const ElementwiseRule& rule, int most, double x,
                                double centre, RowTerms& terms) {
  const double y = (x - centre) * rule.inverse_unit;
  const double high = y > most ? most : y;
  const double v = high < -most ? -most : high;
  const double q = rint(v);
  add_terms(rule, terms, {fabs(q), fabs(v - q), fabs(y - v)});
  return static_cast<int>(q);
}

/// Throws std::logic_error if the metric declares another filter.
ElementwiseRule whole_rule(const MetricEntry& metric, std::int64_t padded,
                           double inverse_unit);

/// Returns centres and unit from a sample of prepared rows. An inverse unit of
/// 0 means that the sample's spread is too small for such numbers.
ElementwiseScale whole_scale(const double* rows, std::int64_t num_rows,
                             std::int64_t padded, std::int64_t num_features,
                             NumberForm form, FilterKind kind);

}  // namespace cuda
}  // namespace fsknn
