#pragma once

// Rows are padded to whole lanes, and their entries are scaled by a power of
// two, as are distances and their bounds. For host and device.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base/compiler.hpp"
#include "core/base/kinds.hpp"

namespace fsknn {

static constexpr int kLanes = 8;

/// Features after padding: 8 * ceil(d / 8) (Arefin 2012, Eq. 2, b = 8).
FSKNN_HD static inline std::int64_t padded_features(std::int64_t d) {
  return (d + kLanes - 1) / kLanes * kLanes;
}

/// Sets the padding of a row, features d .. padded - 1, to zero.
static inline void clear_padding(double* x, std::int64_t d,
                                 std::int64_t padded) {
  for (std::int64_t f = d; f < padded; ++f) x[f] = 0.0;
}

FSKNN_HD static inline double two_to(int e) {  // e in [-1022, 1023]
  const std::uint64_t bits = static_cast<std::uint64_t>(e + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/// floor(log2(x)) of a positive finite double, subnormals included.
FSKNN_HD static inline int exponent_of(double x) {
  std::uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const int biased = static_cast<int>(bits >> 52) & 0x7ff;
  if (biased > 0) return biased - 1023;
  int e = -1075;  // subnormal: count the bits of the fraction
  for (; bits > 0; bits >>= 1) ++e;
  return e;
}

FSKNN_HD static inline PowerOfTwo no_scaling() { return {1.0, 1.0}; }

/// 2^e for e in [-2044, 2046].
FSKNN_HD static inline PowerOfTwo power_of_two(int e) {
  const int half = e / 2;
  PowerOfTwo p;
  p.first = two_to(half);
  p.second = two_to(e - half);
  return p;
}

/// A distance times a power of two. The result of an underflow is 0, never -0,
/// which would have other bits with the same place in the order.
FSKNN_HD static inline double scaled(double distance, PowerOfTwo by) {
  const double y = (distance * by.first) * by.second;
  return y == 0.0 ? 0.0 : y;
}

/// An upper bound of x, whatever its sign, and of all numbers that round to it.
FSKNN_HD static inline double a_little_more(double x) {
  return x * (x < 0.0 ? 1.0 - 0x1p-50 : 1.0 + 0x1p-50);
}

/// The largest distance, before the matrix's power of two is undone, of any
/// pair whose returned distance is at most `distance`. redo: the inverse of
/// that power.
FSKNN_HD static inline double before_scaling(double distance, PowerOfTwo redo) {
  // The next double is above every number that rounds to `distance`.
  const double above = nextafter(distance, HUGE_VAL);
  return a_little_more((above * redo.first) * redo.second);
}

/// A sum of nonnegative numbers may leave double's range. Then this part of
/// each number is summed instead, and the sum is negated. The rounding of such
/// a part is negligible relative to the sum.
static constexpr double kPartOfSum = 0x1p-64;

/// The sum times kPartOfSum, from either form.
FSKNN_HD static inline double part_of_sum(double sum) {
  return sum < 0.0 ? -sum : sum * kPartOfSum;
}

}  // namespace fsknn
