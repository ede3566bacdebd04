#pragma once

// The bounds of the filter by common bits: what a few operations of floats may
// change in a pair's similarity. Plain C++, for host and device.
//
// Tensor cores count c, the bits that both rows have, as a whole number,
// without any rounding. A row has s of its own; s_i + s_j is at most 2^21.
// Kernels take these numbers for floats as they are, which makes none of them
// an instruction: the float with the bits of the whole number c is c 2^-149,
// below the least normal float, or not far above it, where floats are 2^-149
// apart. Sums and differences of such are exact, and a product rounded up is
// the next whole number.
//
// Overlaps, of rows of 0 and 1: c is the contract's sum of the smaller ones.
// The similarity is o = 2 c / (s_i + s_j), and distances (Sorensen, Jaccard)
// fall as it rises: rows are 0 and 1, so that all sums are exact, and returned
// distances are in the order of the true ones and equal where those are (see
// the vignette "proofs").
//  * s, what is written of a pair, is a quotient within 2 ulp of o, and o is at
//    most 1: |s - o| <= 2^-22.
//  * A pair passes a threshold t where c >= ceil(t / 2 (s_i + s_j)), which is
//    where o >= t: the whole number is the product rounded up. Half of t is
//    rounded where it is below 2^-126; the product is below 1 then, and its
//    whole number 1, or 0 where t is rounded to 0, so that more pass.
// So with e = kBitError = 2^-20 thresholds, which are 2 e below what k pairs
// have, let those pass that count, with room for the order of distances.
//  * Of s the exact step has c again: s (s_i + s_j) / 2 is within 2^-22 c < 1/2
//    of it.
// Padding's rows have no bits: their c is 0, and so is s.
//
// Of rows of small whole numbers up to L, thermometer codes of L bits a feature
// (the first a of them set for a value a), c is how many bits both have, the
// sum of the smaller ones again, and a row's sums are no more than kMostCommon
// (of a column L times its features): all of the above holds. A row may have
// larger values than the columns' L, for what is smaller is not they.
// Manhattan's distance is D = s_i + s_j - 2 c, and the square of the Euclidean
// one is the same of rows of 0 and 1; s = -D / 2 is a float without rounding,
// half of a whole number below 2^23. A pair passes t where -D >= 2 t, rounded
// up to a whole number.
//
// A row with values that are no whole numbers from 0 on, or with a larger sum,
// is wild, as queries' rows may be (and for the Euclidean distance one with a
// value above 1): it has all bits of all features, so that c is the column's
// whole sum s_j. By overlap its own sum is 0: a pair passes a threshold t where
// s_j >= t / 2 s_j, always, since t is at most 1 (or infinite: then none does)
// and s_j above 0. By differences its sum is kWildCount, -2^101, and s = 2^100
// above every threshold: those are minus half of a distance, or of what was
// found. Its slack is infinite, so that no threshold is made of its
// similarities; its own list overflows, and is done again.
//
// Products of rows of length 1 that have two values each: of D features p have
// the one and q the other, d apart. Then, D m_i m_j being p_i p_j,
//   sum z_i z_j = d_i d_j (c - m_i m_j) + (sum z_i) (sum z_j) / D,
// where rows are centred, so that the last term is next to nothing (2^-60, as
// sums are looked at); where the lower value is 0, it is d_i d_j c. A row keeps
// y = m 2^-11.5 (or 0) and w = d 2^11.5 as floats, and the similarity is
//   s = ((c 2^-23 - y_i y_j) w_i) w_j.
// With h = 2^-24 the y are off by h of themselves, and so is what they take off
// by 2.01 h m_i m_j d_i d_j. As the squares of a row sum up to 1, d^2 = D / (p
// q) but for 2^-29, so that m_i m_j d_i d_j is the root of p_i / q_i p_j / q_j,
// at most r, the largest p / q of any row. The difference, the w and the
// products with them: 5.01 h |s|, |s| at most 1.01 and 2.01 h r more. The
// contract's sum is off by D 2^-52 < 2^-32 from the true one. Together less
// than (2.1 r + 8) h = product_error(r), whatever the signs, and a pair passes
// t where s >= t.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/contract/scaling.hpp"

namespace fsknn {
namespace cuda {

static constexpr double kBitError = 0x1p-20;
static constexpr float kWildCount = -0x1p-48f;  ///< -2^101
/// By differences, of slots without a point: as they are, they would be nearer
/// to many rows than any point is, and be looked at in vain.
static constexpr float kPaddingCount = 0x1p-48f;

/// A whole number of bits as the float that has its bits: a multiple of 2^-149.
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
  // By powers of two to where quotients are as usual.
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
  // Without rounding: as the product rounded up.
  return static_cast<double>(common) >=
         static_cast<double>(0.5f * threshold) * static_cast<double>(sums);
#endif
}

/// -D, of the same unit.
FSKNN_HD inline float less_apart(float common, float sums) {
  return fmaf(2.0f, common, -sums);
}
FSKNN_HD inline float closeness_of(float common, float sums) {
  return less_apart(common, sums) * 0x1p126f * 0x1p22f;
}
FSKNN_HD inline bool reaches_closeness(float common, float sums,
                                       float threshold) {
#ifdef __CUDA_ARCH__
  return less_apart(common, sums) >= __fmul_ru(threshold, 0x1p-148f);
#else
  return static_cast<double>(less_apart(common, sums)) >=
         static_cast<double>(threshold) * 0x1p-148;
#endif
}

/// What is kept of a row of two values: w and y.
struct TwoValues {
  float apart = 0.0f, mean = 0.0f;
};
/// p of `features` bits are set, of values this much apart.
FSKNN_HD inline TwoValues two_values(double apart, bool centred, double p,
                                     double features) {
  constexpr double root = 1.4142135623730951;
  TwoValues row;
  row.apart = static_cast<float>(apart * (0x1p11 * root));
  row.mean = centred ? static_cast<float>(p / sqrt(features) * (0x1p-12 * root))
                     : 0.0f;
  return row;
}
FSKNN_HD inline float product_of(TwoValues row, TwoValues column,
                                 float common) {
  return fmaf(-row.mean, column.mean, common * 0x1p126f) * row.apart *
         column.apart;
}
FSKNN_HD inline double product_error(double largest_ratio) {
  return (2.1 * largest_ratio + 8.0) * 0x1p-24;
}

}  // namespace cuda
}  // namespace fsknn
