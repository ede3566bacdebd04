#pragma once

// Distances and the matrix's power of two, as bounds. For host and device.

#include <cmath>

#include "core/contract/arithmetic.hpp"

namespace fsknn {

/// Not below x, whatever its sign, nor below what rounds to it.
FSKNN_HD inline double a_little_more(double x) {
  return x * (x < 0.0 ? 1.0 - 0x1p-50 : 1.0 + 0x1p-50);
}

/// No pair whose returned distance is at most `distance` has a distance above
/// this one before the matrix's power of two was taken off. redo: its inverse.
FSKNN_HD inline double before_scaling(double distance, PowerOfTwo redo) {
  // The next double lies above every number that rounds to `distance`.
  const double above = nextafter(distance, HUGE_VAL);
  return a_little_more((above * redo.first) * redo.second);
}

}  // namespace fsknn
