#pragma once

// The elementwise filter's bound (Manhattan, Chebyshev, Proportional
// Similarity): how a prepared row becomes floats, and what that and the float
// arithmetic may change in a pair's distance. Plain C++, for host and device.
//
// A row's entry x becomes q = float(clamp((x - centre) / unit)), with one
// centre a feature and one unit, a power of two, for all rows. A filtered
// distance l is the float sum (or maximum) of |q_i - q_j|. With
//   A  sum |q|, and R sum |v - q|, of a row, v what was rounded to q,
//   K  sum of what clamping took off,
// (or maxima in place of sums) the contract's distance D, in units, is within
//   l - e_i - e_j  <=  D  <=  l + e_i + e_j + K_i + K_j,
// for |v_i - v_j| and |q_i - q_j| differ by no more than the two rounding
// errors, and clamping brings no two entries farther apart. e has
//   R + (F + C) (A + R):  F for the float operations, C for those in double.
//  * F: each |q_i - q_j| is rounded once, and added to a sum that is rounded
//    each time, in all relative (padded + 2) 2^-24 of the sum, which is at most
//    A_i + A_j; and the test's own three operations.
//  * C: subtracting the centre rounds once; the contract's own sum is within
//    rounding_of_sums() of its magnitude; and A, R and K are sums themselves.
// So a pair's similarity, minus the distance, lies between
//   s - slack_i - slack_j  and  s = room_i + room_j - l,
// room = e, slack = 2 e + K. For Proportional Similarity the distance is
// L1 / (sum_i + sum_j), since 2 min(a, b) = a + b - |a - b| and entries are not
// negative; s is divided by the sums too, and slack_i + slack_j when a pair is
// cut (slack_over_sums()).
//
// No s is infinite or no number. Entries are kept within 2^100, and there are
// at most 2^15 of them, so l, room and a sum of two are below 2^120. A quotient
// by tiny sums may be beyond all floats where rooms are large; but no distance
// is negative, so s is at most 0 there. Of what is infinite (slack, by entries
// that were clamped or sums that are tiny) nothing is known from above.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/contract/metric.hpp"

namespace fsknn {
namespace cuda {

/// What all rows of one search have in common.
struct ElementwiseRule {
  /// Their sum, the largest, or the sum over the rows' sums.
  FilterKind kind = FilterKind::difference;
  double inverse_unit = 1.0;
  double float_error = 0.0;   ///< F
  double double_error = 0.0;  ///< C
  double sums_error = 0.0;    ///< the contract's proportion, absolute
};

/// A row's A, R and K.
struct RowTerms {
  double size = 0.0, rounding = 0.0, clamped = 0.0;
};

/// What the filter keeps of a row besides its entries. Padding's are zeros.
struct RowBounds {
  float room = 0.0f;   ///< above 0
  float slack = 0.0f;  ///< infinity: nothing is known from above
  float sum = 0.0f;    ///< in units; proportions only
};

// No sum over all features leaves float's range.
static constexpr double kElementLimit = 0x1p100;

FSKNN_HD inline float float_at_least(double x) {
  if (!(x <= static_cast<double>(FLT_MAX))) return HUGE_VALF;
  const float y = static_cast<float>(x);
  return static_cast<double>(y) < x ? nextafterf(y, HUGE_VALF) : y;
}

FSKNN_HD inline void add_terms(const ElementwiseRule& rule, RowTerms& to,
                               const RowTerms& more) {
  switch (rule.kind) {
    case FilterKind::largest:
      to.size = to.size < more.size ? more.size : to.size;
      to.rounding = to.rounding < more.rounding ? more.rounding : to.rounding;
      to.clamped = to.clamped < more.clamped ? more.clamped : to.clamped;
      return;
    case FilterKind::difference:
    case FilterKind::overlap:
      to.size += more.size;
      to.rounding += more.rounding;
      to.clamped += more.clamped;
      return;
    case FilterKind::none:
    case FilterKind::product:
    case FilterKind::bits: break;
  }
  // elementwise_rule() makes no such rule: what bounds nothing drops nothing.
  to.size = HUGE_VAL;
}

/// Whether a pair's sum is over its rows' sums.
FSKNN_HD constexpr bool is_proportion(FilterKind kind) {
  return kind == FilterKind::overlap;
}

/// The filter's form of an entry, and what it adds to the row's terms.
FSKNN_HD inline float filter_entry(const ElementwiseRule& rule, double x,
                                   double centre, RowTerms& terms) {
  const double y = (x - centre) * rule.inverse_unit;
  const double limited = y > kElementLimit ? kElementLimit : y;
  const double v = limited < -kElementLimit ? -kElementLimit : limited;
  const float q = static_cast<float>(v);
  const double rounded = static_cast<double>(q);
  add_terms(rule, terms, {fabs(rounded), fabs(v - rounded), fabs(y - v)});
  return q;
}

FSKNN_HD inline RowBounds row_bounds(const ElementwiseRule& rule,
                                     const RowTerms& terms, double row_sum) {
  constexpr double up = 1.0 + 0x1p-20;
  // What underflow took anywhere is far below this.
  constexpr double tiny = 0x1p-120;
  const double sum = row_sum * rule.inverse_unit;
  double e = (terms.rounding + (rule.float_error + rule.double_error) *
                                   (terms.size + terms.rounding)) *
                 up +
             tiny;
  // Sums of which two may not add up as floats are infinite: the quotient is 0
  // then, the largest similarity there is.
  constexpr double least = 0x1p-100, most = 0x1p120;
  const bool proportion = is_proportion(rule.kind);
  const bool usual = !proportion || (sum > least && sum < most);
  if (proportion && usual) e += rule.sums_error * sum;
  RowBounds bounds;
  bounds.room = float_at_least(e * up);
  double slack = (2.0 * static_cast<double>(bounds.room) + terms.clamped) * up;
  if (proportion) {
    // A larger sum than the true one only raises the similarity.
    bounds.sum = usual ? static_cast<float>(sum)
                       : (sum < most ? static_cast<float>(least) : HUGE_VALF);
    if (!usual) slack = HUGE_VAL;
  }
  bounds.slack = float_at_least(slack);
  return bounds;
}

/// s of a pair whose float sum or maximum of differences is `differences`: a
/// number below infinity, of a proportion at most 0.
FSKNN_HD inline float upper_similarity(FilterKind kind, float differences,
                                       const RowBounds& a, const RowBounds& b) {
  const float s = (a.room + b.room) - differences;
  if (!is_proportion(kind)) return s;
#ifdef __CUDA_ARCH__
  // 2 ulp; 0 where the sums overflow.
  return fminf(__fdividef(s, a.sum + b.sum), 0.0f);
#else
  return fminf(s / (a.sum + b.sum), 0.0f);
#endif
}

/// Whether s of such a pair may be this large: nearly always not, and seen
/// without a quotient. Of two numbers that are none, yes.
FSKNN_HD inline bool may_reach(FilterKind kind, float differences,
                               const RowBounds& a, const RowBounds& b,
                               float threshold) {
  const float s = (a.room + b.room) - differences;
  if (!is_proportion(kind)) return s >= threshold;
  return !(s < threshold * (a.sum + b.sum));
}

/// Centres and unit from a sample of prepared rows.
struct ElementwiseScale {
  std::vector<double> centre;  ///< [padded]
  double inverse_unit = 1.0;   ///< a power of two
};
ElementwiseScale elementwise_scale(const double* rows, std::int64_t num_rows,
                                   std::int64_t padded);

/// Throws std::logic_error where the metric declares another filter.
ElementwiseRule elementwise_rule(const MetricEntry& metric, std::int64_t padded,
                                 double inverse_unit);

}  // namespace cuda
}  // namespace fsknn
