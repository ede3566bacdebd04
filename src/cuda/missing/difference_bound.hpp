#pragma once

// The error bound of the filter of differences over common samples: the effect
// of rounding rows to floats and of adding in floats. Plain C++, for host and
// device; the vignette "proofs" has the proof.

#include <cmath>
#include <cstdint>

#include "core/contract/scaling.hpp"
#include "cuda/filter/float_bound.hpp"

namespace fsknn {
namespace cuda {

/// A row longer than this takes no part, because its squares exceed the range
/// of floats.
static constexpr double kLongestDifferences = 0x1p60;

/// Returns a factor that makes a float32 sum over `depth` features a lower
/// bound of the true one, except for underflow. Each difference is rounded
/// once, and their sum once a feature; the rest covers the comparison itself.
inline float difference_shrink(std::int64_t depth) {
  const double v = static_cast<double>(depth + 8) * 0x1p-24;
  return v < 0.5 ? static_cast<float>((1.0 - v / (1.0 - v)) * (1.0 - 4e-6))
                 : 0.0f;
}

/// Returns a row's share of a distance's error. `lost`: of its rounding to
/// floats, and `length`: of the row, both in the distance's norm. It is
/// infinity for a row that is too long or has NaN.
///
/// Underflow: a square that is not a normal float is rounded by up to 2^-150,
/// also upwards. The root of the sum of depth such errors is 2^-75 times the
/// root of depth. Sums of differences are exact there.
template <bool kSquared>
FSKNN_HD inline float difference_error(double lost, double length,
                                       std::int64_t depth) {
  if (!(length <= kLongestDifferences)) return HUGE_VALF;
  const double vanished =
      kSquared ? 0x1p-75 * sqrt(static_cast<double>(depth)) : 1e-30;
  return float_at_least((lost + 0x1p-48 * length) * (1.0 + 1e-6) + vanished);
}

/// Returns whether a pair with a sum s over n samples may be within the
/// threshold, a mean over samples (or its root); error: of both rows.
template <bool kSquared>
FSKNN_HD inline bool differences_may_be_near(float s, float n, float threshold,
                                             float error, float shrink) {
  const float least = kSquared ? sqrtf(s) : s;
  const float most = threshold * (kSquared ? sqrtf(n) : n) + error;
  return !(least * shrink > most);
}

}  // namespace cuda
}  // namespace fsknn
