#pragma once

// The error bounds of the filter by products of halves over common samples: the
// effect of rounding rows to halves, squaring these, and adding on tensor
// cores. Plain C++, for host and device; the vignette "proofs" has the proof.
//
// v are a row's numbers in its unit, h the nearest halves, s the halves nearest
// to h^2; all are 0 where a value is missing.

#include <cmath>
#include <cstdint>

#include "core/base/kinds.hpp"
#include "core/contract/scaling.hpp"
#include "cuda/filter/float_bound.hpp"

namespace fsknn {
namespace cuda {

/// Rows of correlations have this length, so that squares of their entries are
/// rarely subnormal halves.
static constexpr double kProductLength = 128.0;
/// A row's squares are halves if its largest value is at most this.
static constexpr double kLargestFactor = 255.0;
/// The sampled rows' largest value is brought below 2^6, so that few rows
/// exceed the limit.
static constexpr int kProductHeadroom = 5;

/// Sums over the values that a row has.
struct ProductTerms {
  double whole = 0.0;            ///< v^2
  double halves = 0.0;           ///< h^2
  double squares = 0.0;          ///< s
  double rounding = 0.0;         ///< (v - h)^2
  double square_rounding = 0.0;  ///< |h^2 - s|
};

/// A row's share of the tolerance in its pairs' test. Correlations: for the
/// numerator, and for its own sum of squares, both in units of the squared
/// length. Squared differences: for the distance, and for its square.
struct ProductBounds {
  float first, second;
};

/// Returns the relative error of a sum of this many products, as a part of the
/// sum of magnitudes. half_unit_rows.cu states the assumptions on tensor cores.
FSKNN_HD inline double products_error(std::int64_t products) {
  return static_cast<double>(products + 16) * 0x1p-22;
}

/// Returns a factor that covers the rounding of the sums of ProductTerms.
FSKNN_HD inline double terms_up(std::int64_t depth) {
  return 1.0 + static_cast<double>(depth + 64) * 0x1p-51;
}

/// contract: rounding_of_sums() of the prepared rows.
FSKNN_HD inline ProductBounds correlation_bounds(const ProductTerms& terms,
                                                 std::int64_t depth,
                                                 double contract) {
  constexpr double unit = kProductLength * kProductLength;
  constexpr double length = kProductLength * (1.0 + 0x1p-20);
  // The rounding of the test itself, each of numbers at most 3 units.
  constexpr double slack = 4e-6 * unit;
  const double up = terms_up(depth), tau = products_error(depth);
  const double w =
      sqrt(terms.rounding) * up + sqrt(terms.whole) * 0x1p-50 + 0x1p-400;
  const double h2 = terms.halves * up, h = sqrt(h2) * up;
  const double numerator = length * w + w * w / 2 + tau * (3.0 + tau) * h2 / 2 +
                           contract * unit * (1.0 + 0x1p-10) + slack / 2;
  const double square = terms.square_rounding * up + tau * terms.squares * up +
                        tau * (2.0 + tau) * h2 + 2.0 * w * h + slack;
  return {float_at_least(numerator * (1.0 + 1e-6)),
          float_at_least(square * (1.0 + 1e-6))};
}

FSKNN_HD inline ProductBounds squared_difference_bounds(
    const ProductTerms& terms, std::int64_t depth) {
  // One sum adds three products a feature.
  const double up = terms_up(depth), tau = products_error(3 * depth);
  const double w = sqrt(terms.rounding) * up + sqrt(terms.whole) * 0x1p-47 +
                   0x1p-75 * sqrt(static_cast<double>(depth));
  const double both = (terms.squares + terms.halves) * up;
  const double square =
      terms.square_rounding * up + (tau + 0x1p-20) * both + 0x1p-140;
  return {float_at_least(w * (1.0 + 1e-6)),
          float_at_least(square * (1.0 + 1e-6))};
}

/// The bounds of a row whose squares are no halves, or that has NaN. It is
/// zeros in the filter, and all its pairs pass.
FSKNN_HD inline ProductBounds wild_bounds() { return {0.0f, HUGE_VALF}; }

/// The sums of a pair of correlations, in units of the length.
struct PairProducts {
  float p, a, b, x, y;
};

/// Returns whether the pair's similarity may reach the threshold. n: common
/// samples or, where they are not counted, a lower bound.
template <bool kCounted>
FSKNN_HD inline bool products_may_be_near(Sign sign, const PairProducts& s,
                                          float n, float threshold,
                                          const ProductBounds& row,
                                          const ProductBounds& column) {
  if (!(threshold > 0.0f)) return true;
  const float each = 1.0f / n;
  const float xx = s.x - s.a * s.a * each - row.second;
  const float yy = s.y - s.b * s.b * each - column.second;
  if (!(xx > 0.0f) || !(yy > 0.0f)) return true;  // there is no bound
  const float means = s.a * s.b * each;
  float similarity = kCounted ? s.p - means : s.p;
  if (sign == Sign::absolute) similarity = fabsf(similarity);
  if (sign == Sign::negative) similarity = -similarity;
  if (!kCounted) similarity += fabsf(means);
  const float most = similarity + (row.first + column.first);
  return most >= 0.0f &&
         most * most >= threshold * threshold * (1.0f - 4e-6f) * (xx * yy);
}

/// Returns whether a pair may be within the threshold, a root of a mean over
/// samples. half: half of the sum of squared differences; reach: the threshold
/// times the root of at least n, plus the row's first bound.
FSKNN_HD inline bool squares_may_be_near(float half, float reach,
                                         const ProductBounds& row,
                                         const ProductBounds& column) {
  const float least = 2.0f * half - row.second - column.second;
  const float most = reach + column.first;
  return !(least > most * most * (1.0f + 2e-6f));
}

}  // namespace cuda
}  // namespace fsknn
