#pragma once

// The bounds of the filter by products of halves over common samples: what
// rounding rows to halves, squaring these, and adding up on tensor cores may
// change. Plain C++, for host and device; the vignette "proofs" has the proof.
//
// v are a row's numbers in its unit, h the halves nearest to them, s the halves
// nearest to h^2; all are 0 where the row has no value.

#include <cmath>
#include <cstdint>

#include "core/base/kinds.hpp"
#include "core/contract/scaling.hpp"
#include "cuda/filter/float_bound.hpp"

namespace fsknn {
namespace cuda {

/// Rows of correlations are of this length: squares of their entries are
/// hardly ever subnormal halves.
static constexpr double kProductLength = 128.0;
/// What a row's largest may be for its squares to be halves.
static constexpr double kLargestFactor = 255.0;
/// What brings the sampled rows' largest below 2^6 leaves few rows beyond.
static constexpr int kProductHeadroom = 5;

/// Sums over what a row has.
struct ProductTerms {
  double whole = 0.0;            ///< v^2
  double halves = 0.0;           ///< h^2
  double squares = 0.0;          ///< s
  double rounding = 0.0;         ///< (v - h)^2
  double square_rounding = 0.0;  ///< |h^2 - s|
};

/// A row's share of what its pairs' test allows for. Correlations: of the
/// numerator, and of its own sum of squares; both in units of the squared
/// length. Squared differences: of the distance, and of its square.
struct ProductBounds {
  float first, second;
};

/// By at most this part of the sum of magnitudes a sum of so many products is
/// off: what half_unit_rows.cu assumes of tensor cores.
FSKNN_HD inline double products_error(std::int64_t products) {
  return static_cast<double>(products + 16) * 0x1p-22;
}

/// What the sums of ProductTerms may have lost, as a factor.
FSKNN_HD inline double terms_up(std::int64_t depth) {
  return 1.0 + static_cast<double>(depth + 64) * 0x1p-51;
}

/// contract: rounding_of_sums() of the prepared rows.
FSKNN_HD inline ProductBounds correlation_bounds(const ProductTerms& terms,
                                                 std::int64_t depth,
                                                 double contract) {
  constexpr double unit = kProductLength * kProductLength;
  constexpr double length = kProductLength * (1.0 + 0x1p-20);
  // The test's own roundings, each of numbers at most 3 units.
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
  // Three products a feature are added up in one sum.
  const double up = terms_up(depth), tau = products_error(3 * depth);
  const double w = sqrt(terms.rounding) * up + sqrt(terms.whole) * 0x1p-47 +
                   0x1p-75 * sqrt(static_cast<double>(depth));
  const double both = (terms.squares + terms.halves) * up;
  const double square =
      terms.square_rounding * up + (tau + 0x1p-20) * both + 0x1p-140;
  return {float_at_least(w * (1.0 + 1e-6)),
          float_at_least(square * (1.0 + 1e-6))};
}

/// The bounds of a row whose squares are no halves, or whose numbers are none:
/// zeros in the filter, whose pairs all stay.
FSKNN_HD inline ProductBounds wild_bounds() { return {0.0f, HUGE_VALF}; }

/// The sums of a pair of correlations, in units of the length.
struct PairProducts {
  float p, a, b, x, y;
};

/// Whether the pair's similarity may reach the threshold. n: common samples, or
/// where they are not counted, no more than those.
template <bool kCounted>
FSKNN_HD inline bool products_may_be_near(Sign sign, const PairProducts& s,
                                          float n, float threshold,
                                          const ProductBounds& row,
                                          const ProductBounds& column) {
  if (!(threshold > 0.0f)) return true;
  const float each = 1.0f / n;
  const float xx = s.x - s.a * s.a * each - row.second;
  const float yy = s.y - s.b * s.b * each - column.second;
  if (!(xx > 0.0f) || !(yy > 0.0f)) return true;  // its bound says nothing
  const float means = s.a * s.b * each;
  float similarity = kCounted ? s.p - means : s.p;
  if (sign == Sign::absolute) similarity = fabsf(similarity);
  if (sign == Sign::negative) similarity = -similarity;
  if (!kCounted) similarity += fabsf(means);
  const float most = similarity + (row.first + column.first);
  return most >= 0.0f &&
         most * most >= threshold * threshold * (1.0f - 4e-6f) * (xx * yy);
}

/// Whether a pair may be within the threshold, a root of a mean over samples.
/// half: half of the sum of squared differences; reach: the threshold times the
/// root of n or of more, plus the row's first bound.
FSKNN_HD inline bool squares_may_be_near(float half, float reach,
                                         const ProductBounds& row,
                                         const ProductBounds& column) {
  const float least = 2.0f * half - row.second - column.second;
  const float most = reach + column.first;
  return !(least > most * most * (1.0f + 2e-6f));
}

}  // namespace cuda
}  // namespace fsknn
