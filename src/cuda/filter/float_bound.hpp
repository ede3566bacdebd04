#pragma once

// The error bound of the elementwise filter (Manhattan, Chebyshev, Proportional
// Similarity): how a prepared row becomes floats, and how far this and float
// arithmetic may change a pair's distance. Plain C++, for host and device.
//
// A row's entry x becomes q = float(clamp((x - centre) / unit)), with one
// centre a feature and one unit, a power of two, for all rows. A filtered
// distance l is the float sum (or maximum) of |q_i - q_j|. With
//   A  sum |q|, and R sum |v - q|, of a row, where v was rounded to q,
//   K  sum of the parts that clamping cut off,
// (or maxima in place of sums) the contract's distance D, in units, is within
//   l - e_i - e_j  <=  D  <=  l + e_i + e_j + K_i + K_j.
// The reason is that |v_i - v_j| and |q_i - q_j| differ by at most the two
// rounding errors, and clamping moves no two entries farther apart. e has
//   R + (F + C) (A + R):  F for the float operations, C for those in double.
//  * F: each |q_i - q_j| is rounded once, and added to a sum that is rounded
//    each time. The relative error is at most (padded + 2) 2^-24 of the sum,
//    which is at most A_i + A_j; the test adds three operations of its own.
//  * C: subtracting the centre rounds once; the contract's own sum is within
//    rounding_of_sums() of its magnitude; and A, R and K are sums themselves.
// So a pair's similarity, minus the distance, lies between
//   s - slack_i - slack_j  and  s = room_i + room_j - l,
// room = e, slack = 2 e + K. For Proportional Similarity the distance is L1 /
// (sum_i + sum_j), since 2 min(a, b) = a + b - |a - b| and entries are not
// negative. s is divided by the sums too, and so is slack_i + slack_j when a
// pair is cut (slack_over_sums()).
//
// s is always finite. Entries are kept within 2^100, and there are at most 2^15
// of them, so l, room and a sum of two are below 2^120. A quotient by tiny sums
// may exceed all floats where rooms are large. But no distance is negative, so
// s is capped at 0 there. An infinite slack (entries that were clamped, or sums
// that are tiny) gives no bound from above.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/contract/metric.hpp"

namespace fsknn {
namespace cuda {

/// The constants that all rows of one search share.
struct ElementwiseRule {
  /// The sum, the maximum, or the sum divided by the rows' sums.
  FilterKind kind = FilterKind::difference;
  double inverse_unit = 1.0;
  double float_error = 0.0;   ///< F
  double double_error = 0.0;  ///< C
  double sums_error = 0.0;    ///< the contract's error of a proportion,
                              ///< absolute
};

/// A row's A, R and K.
struct RowTerms {
  double size = 0.0, rounding = 0.0, clamped = 0.0;
};

/// The numbers that the filter keeps of a row besides its entries. Padding has
/// zeros.
struct RowBounds {
  float room = 0.0f;   ///< above 0
  float slack = 0.0f;  ///< infinity: there is no bound from above
  float sum = 0.0f;    ///< in units; proportions only
};

// With this limit no sum over all features exceeds the range of floats.
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
    case FilterKind::table:
    case FilterKind::bits: break;
  }
  // elementwise_rule() makes no such rule; without a bound, nothing is dropped.
  to.size = HUGE_VAL;
}

/// Returns whether a pair's sum is divided by its rows' sums.
FSKNN_HD constexpr bool is_proportion(FilterKind kind) {
  return kind == FilterKind::overlap;
}

/// Returns the filter's form of an entry, and adds its share to the row's
/// terms.
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
  // The total effect of underflow is far below this.
  constexpr double tiny = 0x1p-120;
  const double sum = row_sum * rule.inverse_unit;
  double e = (terms.rounding + (rule.float_error + rule.double_error) *
                                   (terms.size + terms.rounding)) *
                 up +
             tiny;
  // Sums so large that two of them may overflow as floats become infinite. The
  // quotient is then 0, the largest possible similarity.
  constexpr double least = 0x1p-100, most = 0x1p120;
  const bool proportion = is_proportion(rule.kind);
  const bool usual = !proportion || (sum > least && sum < most);
  if (proportion && usual) e += rule.sums_error * sum;
  RowBounds bounds;
  bounds.room = float_at_least(e * up);
  double slack = (2.0 * static_cast<double>(bounds.room) + terms.clamped) * up;
  if (proportion) {
    // A sum above the true one only raises the similarity.
    bounds.sum = usual ? static_cast<float>(sum)
                       : (sum < most ? static_cast<float>(least) : HUGE_VALF);
    if (!usual) slack = HUGE_VAL;
  }
  bounds.slack = float_at_least(slack);
  return bounds;
}

/// Returns s of a pair whose float sum or maximum of differences is
/// `differences`. It is below infinity, and at most 0 for proportions.
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

/// Returns whether s of such a pair may reach this. It is almost always false,
/// which needs no quotient to see. With a NaN it is true.
FSKNN_HD inline bool may_reach(FilterKind kind, float differences,
                               const RowBounds& a, const RowBounds& b,
                               float threshold) {
  const float s = (a.room + b.room) - differences;
  if (!is_proportion(kind)) return s >= threshold;
  return !(s < threshold * (a.sum + b.sum));
}

/// The centres and the unit, from a sample of prepared rows.
struct ElementwiseScale {
  std::vector<double> centre;  ///< [padded]
  double inverse_unit = 1.0;   ///< a power of two
};
ElementwiseScale elementwise_scale(const double* rows, std::int64_t num_rows,
                                   std::int64_t padded);

/// Throws std::logic_error if the metric declares another filter.
ElementwiseRule elementwise_rule(const MetricEntry& metric, std::int64_t padded,
                                 double inverse_unit);

}  // namespace cuda
}  // namespace fsknn
