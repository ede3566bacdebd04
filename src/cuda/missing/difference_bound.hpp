#pragma once

// The bound of the filter of differences over common samples: what rounding
// rows to floats and adding up in floats may change. Plain C++, for host and
// device; the vignette "proofs" has the proof.

#include <cmath>
#include <cstdint>

#include "core/contract/scaling.hpp"
#include "cuda/filter/float_bound.hpp"

namespace fsknn {
namespace cuda {

/// A row longer than this takes no part: squares are no floats beyond.
static constexpr double kLongestDifferences = 0x1p60;

/// What a sum over `depth` features in float32 is multiplied by to be no larger
/// than the true one, but for underflow: each difference is rounded once, and
/// their sum once a feature; the rest is for the comparison itself.
inline float difference_shrink(std::int64_t depth) {
  const double v = static_cast<double>(depth + 8) * 0x1p-24;
  return v < 0.5 ? static_cast<float>((1.0 - v / (1.0 - v)) * (1.0 - 4e-6))
                 : 0.0f;
}

/// A row's share of a distance's error; `lost`: what its rounding to floats
/// took from it, and `length`, both norms as the distance's. A row that is too
/// long, or no number: infinity.
///
/// Underflow: a square that is no normal float is rounded by up to 2^-150, also
/// upwards, and the root of the sum of depth such is 2^-75 times that of depth.
/// Sums of differences are exact there.
template <bool kSquared>
FSKNN_HD inline float difference_error(double lost, double length,
                                       std::int64_t depth) {
  if (!(length <= kLongestDifferences)) return HUGE_VALF;
  const double vanished =
      kSquared ? 0x1p-75 * sqrt(static_cast<double>(depth)) : 1e-30;
  return float_at_least((lost + 0x1p-48 * length) * (1.0 + 1e-6) + vanished);
}

/// Whether a pair with a sum s over n samples may be within the threshold, a
/// mean over samples (or its root); error: of both rows.
template <bool kSquared>
FSKNN_HD inline bool differences_may_be_near(float s, float n, float threshold,
                                             float error, float shrink) {
  const float least = kSquared ? sqrtf(s) : s;
  const float most = threshold * (kSquared ? sqrtf(n) : n) + error;
  return !(least * shrink > most);
}

}  // namespace cuda
}  // namespace fsknn
