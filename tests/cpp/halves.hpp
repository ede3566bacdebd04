#pragma once

// Half-precision numbers (IEEE 754) in doubles.

#include <algorithm>
#include <cmath>

#include "core/contract/arithmetic.hpp"

/// Rounds to the nearest one.
inline double to_half(double x) {
  if (x == 0.0) return x;
  if (std::fabs(x) >= 65520.0) return std::copysign(HUGE_VAL, x);
  const int e = std::max(fsknn::exponent_of(std::fabs(x)), -14);
  const double step = std::ldexp(1.0, e - 10);
  return std::rint(x / step) * step;
}
