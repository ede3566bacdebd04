#pragma once

// The similarity of three rows from their sums: part of the contract's
// arithmetic (see arithmetic.hpp).

#include "core/contract/scaling.hpp"

namespace fsknn {

/// The total of three rows' sums, the smallest added first.
FSKNN_HD static inline double total_of_three(double a, double b, double c) {
  const double low = a < b ? a : b, high = a < b ? b : a;
  if (c < low) return (c + low) + high;
  return c < high ? (low + c) + high : (low + high) + c;
}

/// Three-way Proportional Similarity (Joubert et al. 2018), from the sum of the
/// largest values and the total of all values, which is positive. Small sums
/// are scaled up, which is exact: 1.5 times a subnormal number would be
/// rounded.
FSKNN_HD static inline double similarity_of_three(double largest,
                                                  double total) {
  const double scale = total < 0x1p-960 ? 0x1p64 : 1.0;
  const double c = (1.5 * (scale * (total - largest))) / (scale * total);
  return c > 0.0 ? (c < 1.0 ? c : 1.0) : 0.0;
}

/// The same from the rows' sums, if part_of_sum() may be needed.
static inline double similarity_of_three(double largest, double a, double b,
                                         double c) {
  const double total = total_of_three(a, b, c);
  if (a >= 0.0 && b >= 0.0 && c >= 0.0 && total < 0x1p1023)
    return similarity_of_three(largest, total);
  return similarity_of_three(
      part_of_sum(largest),
      total_of_three(part_of_sum(a), part_of_sum(b), part_of_sum(c)));
}

}  // namespace fsknn
