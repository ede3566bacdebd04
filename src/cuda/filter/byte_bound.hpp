#pragma once

// The bound of the filter by products of bytes, of rows of length 1: what
// rounding a row to bytes may change in a pair's similarity. Plain C++, for
// host and device.
//
// z is a prepared row, y = Hz + r the turned one as it was computed
// (rotation.hpp), q its bytes: whole numbers from -127 to 127, near y / s, s
// the step of all rows. w = Hz - s q, N >= |z|, W >= |w|, Q = |q|.
//  * Rounding: z_i z_j = Hz_i Hz_j, and Hz_i Hz_j - s^2 q_i q_j = w_i Hz_j +
//    Hz_i w_j - w_i w_j, by Cauchy-Schwarz at most W_i N_j + N_i W_j + W_i W_j,
//    and with N <= kLongestUnit =: L at most the sum of L W + W^2 / 2 over
//    both.
//  * Sums of products of bytes are whole numbers below 2^31 (kMostBytes), so
//    exact in any order.
//  * The contract's sum is within rounding_of_sums() of max(1, N_i N_j), at
//    most L^2, from z_i z_j, and clamping it to [-1, 1] moves it by at most
//    N_i N_j - 1, if that is above 0: both are at most the sum over both rows
//    of half of that with N_i = N_j = N.
//  * What comes out is taken as a float: P is within 2^-24 |P| of that, |P| at
//    most the sum over both rows of Q^2 / 2 + F.
// Each is a sum of one number for each row; F_i is what a row's add up to, over
// s^2 and rounded up to a whole number. It goes into some features more of the
// row's form, whose columns' form holds 127 (of the last one 1), and the other
// way round. So P = q_i q_j + F_i + F_j is exact, and as a float an upper bound
// of the returned similarity over s^2, and less slack_i + slack_j, slack = 2 F,
// a lower bound. Where the opposite of a product is what is similar, F is taken
// off instead: -P = -q_i q_j + F_i + F_j. Where it is the magnitude, P = q_i
// q_j is within twice the largest F of any row of what it stands for.
//
// A row whose F is more than those features hold, or that is longer than L, or
// has an entry that is no number, is wild: zeros with infinite slack. Its own
// list has all pairs, overflows, and the row is done again. Others would not
// know of it: where a column is wild, the form does not suit the points.

#include <cmath>
#include <cstdint>

#include "core/contract/scaling.hpp"
#include "cuda/filter/rotation.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

static constexpr int kLargestByte = 127;
static constexpr double kLongestUnit = 1.0 + 0x1p-20;
/// Features of bytes that are added up: their products' sum is below 2^31.
static constexpr std::int64_t kMostBytes =
    INT32_MAX / (kLargestByte * kLargestByte);

/// What all rows of one search have in common.
struct ByteRule {
  ByteRule() = default;
  /// depth: of a row in the form. contract: rounding_of_sums().
  FSKNN_HD ByteRule(std::int64_t depth, std::int64_t features, double contract,
                    double step)
      : parts(error_parts(features)),
        rotation(depth - 2 * parts),
        contract(contract),
        step(step) {}
  /// Of the error, features for each side.
  std::int64_t parts = 0;
  Rotation rotation{4};
  double contract = 0.0;
  double step = 1.0;  ///< s; of 24 bits at most, so that s q is exact

  FSKNN_HD std::int64_t largest_share() const {
    return ((parts - 1) * kLargestByte + 1) * kLargestByte;
  }
  /// Part p of a share: what it is multiplied by.
  FSKNN_HD int part_unit(std::int64_t p) const {
    return p + 1 == parts ? 1 : kLargestByte;
  }
  FSKNN_HD int part(std::int64_t share, std::int64_t p) const {
    if (p + 1 == parts) {
      const std::int64_t whole = (parts - 1) * kLargestByte;
      const std::int64_t left = share / kLargestByte;
      return static_cast<int>(share -
                              (left < whole ? left : whole) * kLargestByte);
    }
    const std::int64_t left = share / kLargestByte - p * kLargestByte;
    return static_cast<int>(left < 0              ? 0
                            : left > kLargestByte ? kLargestByte
                                                  : left);
  }
};

/// A turned row's entry as a byte.
FSKNN_HD inline int byte_of(double entry, double step) {
  const double q = rint(entry / step);
  return q >= kLargestByte    ? kLargestByte
         : q <= -kLargestByte ? -kLargestByte
         : q == q             ? static_cast<int>(q)
                              : 0;
}

/// Sums over a turned row's features.
struct ByteTerms {
  double whole = 0.0;     ///< y^2
  double bytes = 0.0;     ///< q^2
  double rounding = 0.0;  ///< (y - s q)^2
};

struct ByteBounds {
  bool wild = false;
  double share = 0.0;  ///< F, a whole number; infinity where there is none
  float slack = 0.0f;  ///< infinity: wild
  /// What the row's features hold of it.
  FSKNN_HD std::int64_t held() const {
    return wild ? 0 : static_cast<std::int64_t>(share);
  }
};

FSKNN_HD inline ByteBounds byte_bounds(const ByteRule& rule,
                                       const ByteTerms& terms) {
  // What the sums' own rounding may have taken; what underflow took is far
  // below the 2^-400 added.
  const double up =
      1.0 + static_cast<double>(rule.rotation.size + 64) * 0x1p-51;
  const double turned = rotation_error(rule.rotation);
  const double length =
      sqrt(terms.whole) * up * (1.0 + 2.0 * turned) + 0x1p-400;
  const double w = sqrt(terms.rounding) * up + turned * length + 0x1p-400;
  const double square = length * length * (1.0 + 0x1p-50);
  const double error = kLongestUnit * w + w * w / 2 +
                       (rule.contract * (square > 1.0 ? square : 1.0) +
                        (square > 1.0 ? square - 1.0 : 0.0)) /
                           2;
  const double share =
      ceil((error / rule.step / rule.step + terms.bytes * 0x1p-25) *
               (1.0 + 0x1p-22) +
           0x1p-20);
  ByteBounds to;
  const bool known = length <= kLongestUnit && share < 0x1p40;
  to.share = known ? share : HUGE_VAL;
  to.wild = !(to.share <= static_cast<double>(rule.largest_share()));
  to.slack = to.wild ? HUGE_VALF : static_cast<float>(2 * to.share);
  return to;
}

}  // namespace cuda
}  // namespace fsknn
