#pragma once

// The error bounds of the filter by common bits: how far a few float operations
// may change a pair's similarity. Plain C++, for host and device.
//
// Tensor cores count c, the bits that both rows have, as an exact whole number.
// Each row has its own sum s; s_i + s_j is at most 2^21. Kernels reinterpret
// the bits of these numbers as floats, which needs no instruction: the float
// with the bits of the whole number c is c 2^-149. It is below the least normal
// float, or slightly above it, where floats are still 2^-149 apart. Sums and
// differences of such floats are exact, and a product rounded up is the next
// whole number.
//
// Overlaps, of rows of 0 and 1: c is the contract's sum of the minima. The
// similarity is o = 2 c / (s_i + s_j), and distances (Sorensen, Jaccard)
// decrease as it grows. Rows are 0 and 1, so that all sums are exact. Returned
// distances are in the order of the true ones, and equal where those are (see
// the vignette "proofs").
//  * s, the similarity that is stored for a pair, is a quotient within 2 ulp of
//    o, and o is at most 1: |s - o| <= 2^-22.
//  * A pair passes a threshold t where c >= ceil(t / 2 (s_i + s_j)), which is
//    equivalent to o >= t: the whole number is the product rounded up. Half of
//    t is rounded where it is below 2^-126. Then the product is below 1, and
//    its whole number 1, or 0 where t is rounded to 0, so that more pass.
// With e = kBitError = 2^-20, thresholds are 2 e below the similarities of k
// pairs. All neighbours therefore pass, with a margin for the order of
// distances.
//  * From s the exact step recovers c: s (s_i + s_j) / 2 is within
//    2^-22 c < 1/2 of it.
// The rows of padding have no bits: c is 0, and so is s.
//
// Rows of small whole numbers up to L become thermometer codes of L bits a
// feature (the first a of them are set for a value a). c is then the number of
// common bits, which is again the sum of minima. A row's sum is at most
// kMostCommon (a column's at most L times its features), so all of the above
// holds. A row may have values above the columns' L, because the minima are
// unaffected. Manhattan's distance is D = s_i + s_j - 2 c, and so is the
// squared Euclidean one for rows of 0 and 1. s = -D / 2 is an exact float, half
// of a whole number below 2^23. A pair passes t where -D >= 2 t, rounded up to
// a whole number.
//
// A row is wild if it has values that are not whole numbers >= 0, or a larger
// sum, as queries' rows may (for the Euclidean distance also a value above 1).
// It has all bits of all features, so that c is the column's whole sum s_j. For
// overlaps its own sum is 0: a pair passes a threshold t where s_j >= t / 2
// s_j. This always holds, since t is at most 1 (or infinite: then no pair
// passes) and s_j is positive. For differences its sum is kWildCount, -2^101,
// and s = 2^100 is above every threshold, because those are minus half of a
// distance or similarities found. Its slack is infinite, so that its
// similarities set no threshold. Its own list overflows, and the row is
// recomputed.
//
// Products of rows of length 1 with two values each: of D features, p have the
// one and q the other value, and d is their difference. Since D m_i m_j = p_i
// p_j,
//   sum z_i z_j = d_i d_j (c - m_i m_j) + (sum z_i) (sum z_j) / D,
// where rows are centred, so that the last term is negligible (2^-60, as sums
// are checked). Where the lower value is 0, it is d_i d_j c. A row keeps y = m
// 2^-11.5 (or 0) and w = d 2^11.5 as floats, and the similarity is
//   s = ((c 2^-23 - y_i y_j) w_i) w_j.
// With h = 2^-24, the y have a relative error of h, and so their product
// changes the result by 2.01 h m_i m_j d_i d_j. As the squares of a row sum to
// 1, d^2 = D / (p q) up to 2^-29, so that m_i m_j d_i d_j is the root of p_i /
// q_i p_j / q_j. That is at most r, the largest p / q of any row. The
// difference, the w and the products with them add 5.01 h |s|, where |s| is at
// most 1.01 plus 2.01 h r. The contract's sum is within D 2^-52 < 2^-32 of the
// true one. The total is less than (2.1 r + 8) h = product_error(r), for any
// signs, and a pair passes t where s >= t.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/contract/scaling.hpp"

namespace fsknn {
namespace cuda {

static constexpr double kBitError = 0x1p-20;
static constexpr float kWildCount = -0x1p-48f;  ///< -2^101
/// For differences, the count of slots without a point. With their true count
/// they would be nearer to many rows than any point is, and be examined in
/// vain.
static constexpr float kPaddingCount = 0x1p-48f;

/// Reinterprets a whole number of bits as a float: a multiple of 2^-149.
FSKNN_HD inline float as_count(int bits) {
#ifdef __CUDA_ARCH__
  return __int_as_float(bits);
#else
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

FSKNN_HD inline float overlap_of(float common, float sums) {
  // Powers of two bring the operands to the normal range of quotients.
#ifdef __CUDA_ARCH__
  const float quotient = __fdividef(common * 0x1p126f, sums * 0x1p125f);
#else
  const float quotient = (common * 0x1p126f) / (sums * 0x1p125f);
#endif
  return common > 0.0f ? quotient : 0.0f;
}

FSKNN_HD inline bool reaches_overlap(float common, float sums,
                                     float threshold) {
#ifdef __CUDA_ARCH__
  return common >= __fmul_ru(0.5f * threshold, sums);
#else
  // This is exact, and equals a comparison with the product rounded up.
  return static_cast<double>(common) >=
         static_cast<double>(0.5f * threshold) * static_cast<double>(sums);
#endif
}

/// Returns -D, in the same unit.
FSKNN_HD inline float negative_difference(float common, float sums) {
  return fmaf(2.0f, common, -sums);
}
FSKNN_HD inline float closeness_of(float common, float sums) {
  return negative_difference(common, sums) * 0x1p126f * 0x1p22f;
}
FSKNN_HD inline bool reaches_closeness(float common, float sums,
                                       float threshold) {
#ifdef __CUDA_ARCH__
  return negative_difference(common, sums) >= __fmul_ru(threshold, 0x1p-148f);
#else
  return static_cast<double>(negative_difference(common, sums)) >=
         static_cast<double>(threshold) * 0x1p-148;
#endif
}

/// The two numbers kept of a row of two values: w and y.
struct TwoValues {
  float difference = 0.0f, mean = 0.0f;
};
/// p of `features` bits are set; `difference` is the difference of the values.
FSKNN_HD inline TwoValues two_values(double difference, bool centred, double p,
                                     double features) {
  constexpr double root = 1.4142135623730951;
  TwoValues row;
  row.difference = static_cast<float>(difference * (0x1p11 * root));
  row.mean = centred ? static_cast<float>(p / sqrt(features) * (0x1p-12 * root))
                     : 0.0f;
  return row;
}
FSKNN_HD inline float product_of(TwoValues row, TwoValues column,
                                 float common) {
  return fmaf(-row.mean, column.mean, common * 0x1p126f) * row.difference *
         column.difference;
}
FSKNN_HD inline double product_error(double largest_ratio) {
  return (2.1 * largest_ratio + 8.0) * 0x1p-24;
}

}  // namespace cuda
}  // namespace fsknn
