#pragma once

// Converts a distance limit to a filter's threshold: the similarity that all
// pairs within the limit reach. A search that starts from limits (each row's
// k-th distance so far) derives its first thresholds here. Exact re-ranking of
// k candidates of a row derives the next ones. Plain C++, for host and device.
//
// A filtered similarity s approximates a pair's t, in the filter's units. D is
// the distance before the matrix's power of two was removed:
//   rows of length 1    t = (1 - D) S,     |s - t| <= e of the returned
//   distance
//                       (half_unit_rows.cu), S = kSimilarityScale;
//   tables of alleles   the same, S = 2^-23 / K (table_bound.hpp);
//   near rows of length 1, centred
//                       t = -D S^2,        s >= t   (half_bound.hpp),
//   raw distances       t = -(D S)^2 / 2,  s >= t   (half_bound.hpp; by bits
//                       S = 1, bit_bound.hpp),
//   raw products        t = -D S^2,        s >= t   (the same),
//   differences         t = -D S,          s >= t   (float_bound.hpp), S the
//                       inverse of the unit,
//   proportions         t = o - 1,         s >= t   (the same), o the overlap;
//   of rows of bits     t = o,             |s - t| <= e  (bit_bound.hpp).
// A pair within distance `limit` therefore has an s of at least t(limit) (less
// e), since t decreases as D grows; for raw products s may be infinite. The
// rounding in this file is less than 2^-40 of each term, and is subtracted;
// 2^-100 covers underflow. Where no conversion is known, all pairs pass.

#include <cfloat>
#include <cmath>

#include "core/contract/metric.hpp"
#include "core/contract/scaling.hpp"

namespace fsknn {
namespace cuda {

/// The quantity that t stands for.
enum class LimitOf {
  unit,
  near_rows,
  squared_distance,
  product,
  difference,
  overlap,
  nothing
};

/// The constants that all limits of one search share.
struct LimitRule {
  LimitOf of = LimitOf::nothing;  ///< nothing: all pairs pass
  double scale = 1.0;             ///< S
  double error = 0.0;             ///< e, in the filter's units
  double less = 0.0;              ///< overlaps: this is subtracted
  PowerOfTwo redo = {1.0, 1.0};   ///< the matrix's scaling
};

FSKNN_HD inline float float_at_most(double x) {
  if (!(x >= -static_cast<double>(FLT_MAX))) return -HUGE_VALF;
  if (x > static_cast<double>(FLT_MAX)) return FLT_MAX;
  const float y = static_cast<float>(x);
  return static_cast<double>(y) > x ? nextafterf(y, -HUGE_VALF) : y;
}

/// Returns the threshold for an overlap of at least `least`.
FSKNN_HD inline float threshold_of_overlap(const LimitRule& rule,
                                           double least) {
  return float_at_most(least - rule.less - 0x1p-40 - rule.error);
}

/// Returns a bound that every pair within the returned distance `limit`
/// reaches. Minus infinity: all pairs pass. A limit of minus infinity gives
/// infinity, which no pair reaches.
FSKNN_HD inline float threshold_at(const LimitRule& rule, double limit) {
  constexpr double part = 0x1p-40, tiny = 0x1p-100;
  if (limit == -HUGE_VAL) return HUGE_VALF;
  if (!(limit < HUGE_VAL)) return -HUGE_VALF;
  const double most = before_scaling(limit, rule.redo);
  const double s = rule.scale;
  switch (rule.of) {
    case LimitOf::unit:
      return float_at_most((1.0 - most) * s - s * part -
                           rule.error * (1.0 + part));
    case LimitOf::near_rows:
    case LimitOf::product: {
      const double t = most * s * s;
      return float_at_most(-t - fabs(t) * part - tiny);
    }
    case LimitOf::squared_distance: {
      const double length = most * s;
      return float_at_most(-length * length / 2 * (1.0 + part) - tiny);
    }
    case LimitOf::difference:
      return float_at_most(-most * s * (1.0 + part) - tiny);
    case LimitOf::overlap:
      // Distances are between 0 and 1.
      if (!(limit < 1.0)) return -HUGE_VALF;
      return threshold_of_overlap(rule, overlap_at(limit < 0.0 ? 0.0 : limit));
    case LimitOf::nothing: break;
  }
  return -HUGE_VALF;
}

}  // namespace cuda
}  // namespace fsknn
