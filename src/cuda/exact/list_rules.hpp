#pragma once

// The comparisons of candidates and lists, for numbers that may be infinite or
// NaN. Lemma 6 of the vignette "proofs" relies on them. Plain C++, for host and
// device.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/contract/scaling.hpp"

namespace fsknn {
namespace cuda {

/// The count of a list that overflowed: its row is recomputed. The number is so
/// negative that erroneous additions cannot make it positive.
static constexpr std::int32_t kOverflowed = INT32_MIN;

FSKNN_HD constexpr bool is_overflowed(std::int32_t count) { return count < 0; }

/// Returns whether a list of this capacity has the place `at`. A negative one
/// does not exist.
FSKNN_HD constexpr bool has_place(std::int32_t at, std::int32_t capacity) {
  return static_cast<std::uint32_t>(at) < static_cast<std::uint32_t>(capacity);
}

/// Returns a lower bound of a candidate's similarity, rounded down. It is minus
/// infinity where an error or the similarity is infinite or NaN. It is never
/// plus infinity or NaN.
FSKNN_HD inline float least_similarity(float similarity, double row_error,
                                       double column_error) {
#ifdef __CUDA_ARCH__
  const double least =
      __dsub_rd(similarity, __dadd_ru(row_error, column_error));
  return least < HUGE_VAL ? __double2float_rd(least) : -HUGE_VALF;
#else
  const double error = nextafter(row_error + column_error, HUGE_VAL);
  const double difference = static_cast<double>(similarity) - error;
  constexpr double most = static_cast<double>(FLT_MAX);
  if (!(difference < HUGE_VAL) || difference < -most) return -HUGE_VALF;
  const double least = nextafter(difference, -HUGE_VAL);
  const float rounded = static_cast<float>(least);
  return static_cast<double>(rounded) > least ? nextafterf(rounded, -HUGE_VALF)
                                              : rounded;
#endif
}

/// Converts slacks that are relative to the sums of both rows, which are
/// floats, to an error.
FSKNN_HD inline double slack_over_sums(double slacks, double sums) {
  return slacks / sums * (1.0 + 0x1p-20);
}

/// Returns the sum of minima of two rows of 0 and 1 from their row sums and
/// their similarity. That is their overlap up to an error
/// (filter/bit_bound.hpp) small enough for rounding to the nearest whole
/// number.
FSKNN_HD inline double given_sum(float similarity, double row_sum,
                                 double column_sum) {
  return rint(static_cast<double>(similarity) * (0.5 * (row_sum + column_sum)));
}

/// Maps floats to whole numbers in the same order; none is 0.
FSKNN_HD inline std::uint32_t order_key(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
FSKNN_HD inline float key_value(std::uint32_t key) {
  const std::uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace cuda
}  // namespace fsknn
