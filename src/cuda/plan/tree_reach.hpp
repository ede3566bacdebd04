#pragma once

// When two blocks of points may be pruned by their boxes. Plain C++, for host
// and device.
//
// The bound. D is a returned distance before the matrix's power of two was
// removed, S the filter's scale, and T a point's threshold. T is at most
// -(D S)^2 / 2 of k pairs of the point (half_bound.hpp), so their D is at most
// R = sqrt(max(0, -2 T)) / S. Another point whose D exceeds R is farther than
// these k. Let |a - b|^2 be its real squared distance, in the units of prepared
// rows, and q the sum that the contract computes of it.
//  * The root of q and its rounding change D by less than 2^-52 of it, and
//    removing the matrix's power of two by less than g. So D <= R only if
//    q <= (R + g)^2 (1 + 2^-50).
//  * q is within rho = rounding_of_sums() of |a - b|^2, and less than padded
//    2^-1060 where squares underflow. So D <= R only if |a - b|^2 <= reach(T),
//    see reach_of(): rho is below 1/4.
//  * The sum G of squared gaps between two boxes, or a point and a box, rounded
//    down, is at most |a - b|^2 for all pairs of their points. Boxes hold the
//    real differences from one centre, and a gap is at most the difference of
//    the pair in this feature. A sum over some features is smaller still.
// If G exceeds reach(T), no point of the box is among the k nearest of the
// point. Equal numbers do not prune. A reach is infinite where T is minus
// infinity: the list has fewer than k entries with a bound. A point whose T is
// infinity accepts no pairs, and has no reach. Comparisons with
// NaN do not prune. G is finite, since additions and products that round down
// do not overflow.

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/contract/scaling.hpp"
#include "core/rows/prepared.hpp"

namespace fsknn {
namespace cuda {

/// The constants of reach_of().
struct ReachRule {
  double scale = 1.0;   ///< S
  double gap = 0.0;     ///< g
  double rho = 0.0;     ///< of the contract's sum
  double vanished = 0;  ///< where squares underflow

  /// undo: takes off the matrix's power of two.
  static ReachRule of(std::int64_t padded, PowerOfTwo undo, double scale) {
    ReachRule rule;
    rule.scale = scale;
    rule.gap = 0x1p-1072 / undo.first / undo.second;
    rule.rho = rounding_of_sums(padded);
    rule.vanished = static_cast<double>(padded) * 0x1p-1060;
    return rule;
  }
};

/// Returns what squared gaps must exceed, for a threshold.
FSKNN_HD inline float reach_of(const ReachRule& rule, float threshold) {
  constexpr double up = 1.0 + 0x1p-40;
  const double square = -2.0 * static_cast<double>(threshold);
  const double length =
      (square > 0.0 ? sqrt(square) : 0.0) / rule.scale * up + rule.gap;
  const double reach =
      (length * length * up + rule.vanished) * (1.0 + 2.0 * rule.rho) * up;
  // Infinite also if the square overflows.
  if (!(reach < static_cast<double>(FLT_MAX))) return HUGE_VALF;
  const float rounded = static_cast<float>(reach);
  return static_cast<double>(rounded) < reach ? nextafterf(rounded, HUGE_VALF)
                                              : rounded;
}

}  // namespace cuda
}  // namespace fsknn
