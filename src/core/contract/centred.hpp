#pragma once

// Some rows are nearly equal except for their length, for example cosines of
// data far from 0. A filter rounds each entry relative to its size, and the
// distances between such rows are smaller than this error. So a filter rounds v
// = z - c instead, the difference between a row z of length 1 and a centre c.
// With any c,
//
//   1 - z_i . z_j = |v_i - v_j|^2 / 2 + (1 - |z_i|^2) / 2 + (1 - |z_j|^2) / 2,
//
// where the last terms are the rounding errors of length 1. An error relative
// to |v|^2 is small beside the distances, whatever c is. No answer uses this:
// the contract's sums are of z.

#include <cmath>
#include <cstdint>

#include "core/contract/scaling.hpp"

namespace fsknn {

/// The contract's distance of two rows of length 1 (1 - r) is within this of
/// |v_i - v_j|^2 / 2, and 1 + r within this of 2 - |v_i - v_j|^2 / 2. The bound
/// exceeds 2 gamma_(padded / 8 + 8), which covers the lengths, the sum and
/// clamping r to [-1, 1]. The excess covers underflow, 1 - r and a filter's own
/// few operations. The bound is tighter than rounding_of_sums(), because it
/// counts here: at offsets of 10^6, distances are only about 100 times as
/// large.
FSKNN_HD inline double rounding_once_centred(std::int64_t padded) {
  return static_cast<double>(padded / kLanes + 32) * 0x1p-52;
}

/// The same for two rows that are near each other even on that scale. Their
/// distance 1 - r is within contract_i + contract_j of
///
///   |v_i - v_j|^2 / 2 + short_i + short_j,
///
/// plus the part rounding_of_near_rows() of |v_i|^2 + |v_j|^2.
struct UnitRounding {
  double short_of_one = 0.0;  ///< (1 - |z|^2) / 2
  double contract = 0.0;
};

/// The same for whole ranks that a filter scaled to length 1. Their r is not
/// the sum of z_i z_j but s / sqrt(Q_i Q_j), with s exact. The rounding of z's
/// entries and of r, up to 8.5 2^-53 for both rows, does not show in a row's
/// own sum.
FSKNN_HD inline UnitRounding rounding_of_ranks(std::int64_t padded) {
  return {0.0, rounding_once_centred(padded) / 2};
}

// The bound. The contract's sum rounds each partial sum of z_i z_j once, to
// nearest. The error is at most half a unit in the last place of the largest
// value that the partial sum s_ij of |z_i z_j| can have. This half unit is
// h(s_ij), where h is a power of two that grows with s. Products that are 0 are
// added without rounding.
//  * s_ij is at most the larger of s_ii and s_jj, the partial sums of z_i^2 and
//    z_j^2, by Cauchy-Schwarz. Each is multiplied by 1 + 2^-10, which covers
//    the rounding of any of them. If both then reach the power of two that s_ij
//    has reached, half of h(s_ii) + h(s_jj) is at least h(s_ij). So a row's
//    `contract` is half of the sum of its h.
//  * If one of them does not, the lengths of the two rows' parts summed so far
//    differ by 2^-10 of their size. So h(s_ij), at most 2^-53 s_ij, is less
//    than 2^-32 |v_i - v_j|^2, which is at most 2^-31 (|v_i|^2 + |v_j|^2).
//    There are at most padded + 8 partial sums.
//  * The last partial sum is r. From 1 on it is clamped to 1, so that only half
//    a unit of values below 1 counts. The distance is then 0, and the true one
//    is not negative, apart from the rounding of the other sums.
//  * 1 - r is exact from r = 1/2 on. Below, |v_i|^2 + |v_j|^2 is at least 1/2,
//    and rounding_once_centred() of that is enough. It also covers r clamped to
//    -1.
//
// The code that computes a row's two numbers rounds, too. Let u be 2^-53 and N
// the padded features. The partial sums of z^2 are below 1 + 2^-9, and |1 -
// |z|^2| is at most 1.01 (N / 8 + 8) u.
//  * LongSum. A square is `square` and a remainder of at most u z^2, which fma
//    gives exactly. Adding it leaves a remainder of at most u (1 + 2^-9), also
//    exact. So after m squares |rest| is at most (m + 1) u (1 + 2^-8), and the
//    two additions to it round by 2 (m + 1) u^2 (1 + 2^-8). For all N the total
//    is (N^2 + 3 N) u^2 (1 + 2^-8). A warp's threads have N / 32 squares each,
//    and join by five times two additions: (N^2 / 32 + 13 N + 640) u^2 (1 +
//    2^-8). Neither exceeds (N + 32)^2 u^2 (1 + 2^-8).
//  * 1 - sum is exact, and subtracting the rest rounds by at most (N / 8 + 9)
//    u^2. Half of all this counts.
//  * At most N + 7 half units of at most u each are added up. This rounds by at
//    most (N + 8)^2 u^2 / 2 (1 + 2^-8), half of which counts. Adding what this
//    bound allows rounds by at most (N + 8) u^2.
// Together this is less than 0.8 (N + 32)^2 u^2. The code allows twice (N +
// 32)^2 u^2, and 2^-80 for underflow, which is at most 2^-1040.
FSKNN_HD inline double half_ulp_of_sum(double sum_of_squares) {
  return sum_of_squares > 0x1p-900
             ? two_to(exponent_of(sum_of_squares * (1.0 + 0x1p-10)) - 53)
             : 0x1p-900;
}
static constexpr double kLastHalfUlp = 0x1p-54;

/// The rounding and the underflow of unit_rounding() itself.
FSKNN_HD inline double unit_rounding_left(std::int64_t padded) {
  const double n = static_cast<double>(padded + 32);
  return n * n * 0x1p-105 + 0x1p-80;
}

/// A sum of doubles, and the sum of its rounding errors.
struct LongSum {
  double sum = 0.0, rest = 0.0;
  FSKNN_HD void add(double x) {
    const double all = sum + x, there = all - sum;
    rest += (sum - (all - there)) + (x - there);
    sum = all;
  }
  FSKNN_HD void add_square(double x) {
    const double square = x * x;
    rest += fma(x, x, -square);
    add(square);
  }
};

FSKNN_HD inline UnitRounding unit_rounding(const LongSum& squares,
                                           double half_ulps,
                                           std::int64_t padded) {
  return {((1.0 - squares.sum) - squares.rest) / 2,
          half_ulps / 2 + unit_rounding_left(padded)};
}

/// For a prepared row of length 1.
inline UnitRounding unit_rounding(const double* z, std::int64_t padded) {
  double lane[kLanes] = {};
  double half_ulps = 0.0;
  LongSum squares;
  for (std::int64_t f = 0; f < padded; ++f) {
    if (z[f] == 0.0) continue;
    double& sum = lane[f % kLanes];
    sum = fma(z[f], z[f], sum);
    half_ulps += half_ulp_of_sum(sum);
    squares.add_square(z[f]);
  }
  for (int gap = kLanes / 2; gap > 0; gap /= 2)
    for (int l = 0; l < gap; ++l) {
      lane[l] += lane[l + gap];
      half_ulps += gap == 1 ? kLastHalfUlp : half_ulp_of_sum(lane[l]);
    }
  return unit_rounding(squares, half_ulps, padded);
}

/// The part of |v|^2 that UnitRounding describes.
inline double rounding_of_near_rows(std::int64_t padded) {
  return rounding_once_centred(padded) +
         static_cast<double>(padded + 8) * 0x1p-31;
}

}  // namespace fsknn
