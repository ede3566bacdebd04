#pragma once

// The bounds of the filter by common bits: of rows of 0 and 1, what a few
// operations of floats may change in a pair's similarity. Plain C++, for host
// and device.
//
// Tensor cores count c, the features that both rows have, as a whole number,
// without any rounding, and c is the contract's sum of the smaller ones. A row
// has h, half of its own count; h and h_i + h_j are floats, exact, for there
// are less than 2^20 features. The similarity is the overlap o = 2 c / (s_i +
// s_j) = c / (h_i + h_j), and distances (Sorensen, Jaccard) fall as it rises:
// rows are 0 and 1, so that all sums are exact, and returned distances are in
// the order of the true ones and equal where those are (see the vignette).
//  * s, what is written of a pair, is a quotient within 2 ulp of o, and o is at
//    most 1: |s - o| <= 2^-22.
//  * A pair passes a threshold t where c >= t (h_i + h_j) as computed. Rounding
//    the product moves it by 2^-24 of itself, so a pair passes if o >= t +
//    2^-23, since t <= 1 (or infinite: then none does). A product that is
//    subnormal is of a t below 2^-126, which any c of 1 or more passes; and of
//    c = 0 what is rounded to 0 passes.
// So with e = kBitError = 2^-20 thresholds, which are 2 e below what k pairs
// have, let those pass that count, with room for the order of distances.
//  * Of s the exact step has c again: s (h_i + h_j) is within 2^-22 c < 1/2 of
//    it.
// Padding's rows have h = 0: their c is 0, and so is s.
//
// Of rows of small whole numbers up to L, thermometer codes of L bits a feature
// (the first a of them set for a value a), c is how many bits both have, the
// sum of the smaller ones again, and a row's sums are no more than kMostCommon
// (of a column L times its features): all of the above holds. A row may have
// larger values than the columns' L, for what is smaller is not they.
// Manhattan's distance is D = s_i + s_j - 2 c; s = c - (h_i + h_j) = -D / 2 is
// a float without rounding, as all three terms are halves of whole numbers
// below 2^23.
//
// A row with values that are no whole numbers from 0 on, or with a larger sum,
// is wild, as queries' rows may be: it has all bits of all features, so that c
// is the column's whole sum s_j = 2 h_j. By overlap its h is 0: a pair passes a
// threshold t where 2 h_j >= t h_j as computed, always, since t is at most 1
// (or infinite: then none does) and h_j above 0. By differences its h is
// -kWildHalf, and s above every threshold: those are minus half of a distance,
// or of what was found. Its slack is infinite, so that no threshold is made of
// its similarities; its own list overflows, and is done again.

#include <cmath>

#include "core/arithmetic.hpp"

namespace fsknn {
namespace cuda {

static constexpr double kBitError = 0x1p-20;
static constexpr float kWildHalf = 0x1p100f;

FSKNN_HD inline float overlap_of(float common, float half_sums) {
#ifdef __CUDA_ARCH__
  const float quotient = __fdividef(common, half_sums);
#else
  const float quotient = common / half_sums;
#endif
  return common > 0.0f ? quotient : 0.0f;
}

FSKNN_HD inline bool reaches_overlap(float common, float half_sums,
                                     float threshold) {
  return common >= threshold * half_sums;
}

}  // namespace cuda
}  // namespace fsknn
