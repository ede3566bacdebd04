#pragma once

// Rows that are nearly the same beside their length: cosines of data far from
// 0, say. A filter rounds entries by a part of themselves, and what holds such
// rows apart is less than that. So it rounds what is left of rows of length 1
// when a centre c is taken off, v = z - c: with any c
//
//   1 - z_i . z_j = |v_i - v_j|^2 / 2 + (1 - |z_i|^2) / 2 + (1 - |z_j|^2) / 2,
//
// whose last terms are what length 1 was rounded by. An error that is a part of
// |v|^2 is small beside what is to be told apart, whatever c is. Nothing of
// this goes into an answer: the contract's sums are of z.

#include <cstdint>

#include "core/arithmetic.hpp"

namespace fsknn {

/// The contract's distance of two rows of length 1 (1 - r) is within this of
/// |v_i - v_j|^2 / 2, and 1 + r of 2 less that: more than 2 gamma_(padded / 8 +
/// 8), which the lengths, the sum and clamping r to [-1, 1] take, by what
/// underflow, taking r off 1 and a few operations of a filter's own round. It
/// is not rounding_of_sums(), as it may be seen: at offsets of 10^6 rows'
/// distances are some 100 times as much.
inline double rounding_once_centred(std::int64_t padded) {
  return static_cast<double>(padded / kLanes + 32) * 0x1p-52;
}

}  // namespace fsknn
