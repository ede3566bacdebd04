#pragma once

// What a distance that counts means to a filter: the similarity that no pair
// so near is filtered below. A search that starts from limits, each the
// distance of some row's k-th neighbour so far, has its first thresholds here.
// Plain C++, for the host.
//
// A filtered similarity s stands for a pair's t, in the filter's units; of the
// distance before the matrix's power of two was taken off, D:
//   rows of length 1    t = (1 - D) S,     |s - t| <= e of the returned
//   distance
//                       (half_unit_rows.cu), S = kSimilarityScale;
//   near rows of length 1, centred
//                       t = -D S^2,        s >= t   (half_bound.hpp),
//   raw distances       t = -(D S)^2 / 2,  s >= t   (half_bound.hpp; by bits
//                       S = 1, bit_bound.hpp),
//   raw products        t = -D S^2,        s >= t   (the same),
//   differences         t = -D S,          s >= t   (float_bound.hpp), S the
//                       inverse of the unit,
//   proportions         t = o - 1,         s >= t   (the same), o the overlap;
//   of rows of bits     t = o,             |s - t| <= e  (bit_bound.hpp).
// So a pair at most `limit` apart has an s of at least t(limit) (less e), since
// t falls as D rises. Of raw products that is not so of wild rows: their own
// products, and so a limit, may be above what s they have. But s is above
// kWildSimilarity there, and no threshold is. What this file's own operations
// round is less than 2^-40 of each term, and is taken off; 2^-100 covers what
// is so small that it vanishes. A limit at which nothing is known lets all
// pairs pass.

#include <cfloat>
#include <cmath>

#include "core/prepared.hpp"
#include "cuda/filter/half_bound.hpp"

namespace fsknn {
namespace cuda {

/// How a filter's similarities stand to distances.
struct SimilarityUnits {
  double scale = 1.0;  ///< S
  double error = 0.0;  ///< e, in the filter's units
  /// Proportions: what is taken off an overlap.
  double less = 1.0;
  bool near_rows = false;  ///< of length 1, centred
};

inline float float_at_most(double x) {
  if (!(x >= -static_cast<double>(FLT_MAX))) return -HUGE_VALF;
  if (x > static_cast<double>(FLT_MAX)) return FLT_MAX;
  const float y = static_cast<float>(x);
  return static_cast<double>(y) > x ? nextafterf(y, -HUGE_VALF) : y;
}

/// No pair whose returned distance is at most `limit` has a filtered similarity
/// below this. Minus infinity: all pass; infinity, for a limit of minus
/// infinity: none does.
inline float threshold_of_limit(const MetricEntry& metric,
                                const DistanceRule& rule,
                                const SimilarityUnits& units, double limit) {
  constexpr double part = 0x1p-40, tiny = 0x1p-100;
  if (limit == -HUGE_VAL) return HUGE_VALF;
  if (!(limit < HUGE_VAL)) return -HUGE_VALF;
  const double most = rule.before_scaling(limit);
  const double s = units.scale;
  if (units.near_rows) {
    const double t = most * s * s;
    return float_at_most(-t - std::fabs(t) * part - tiny);
  }
  if (metric.is_unit_dot())
    return float_at_most((1.0 - most) * s - s * part -
                         units.error * (1.0 + part));
  switch (metric.filter) {
    case FilterKind::product: {
      if (metric.accumulation == Accumulation::dot) {
        const double t = most * s * s;
        return float_at_most(
            std::fmin(-t - std::fabs(t) * part - tiny, kWildSimilarity));
      }
      const double length = most * s;
      return float_at_most(-length * length / 2 * (1.0 + part) - tiny);
    }
    case FilterKind::difference:
    case FilterKind::largest:
      return float_at_most(-most * s * (1.0 + part) - tiny);
    case FilterKind::overlap:
    case FilterKind::bits:
      // No distance is below 0, nor above 1.
      if (!(limit < 1.0)) return -HUGE_VALF;
      return float_at_most(metric.least_overlap(limit < 0.0 ? 0.0 : limit) -
                           units.less - part - units.error);
    case FilterKind::none: break;
  }
  return -HUGE_VALF;
}

}  // namespace cuda
}  // namespace fsknn
