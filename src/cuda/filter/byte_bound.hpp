#pragma once

// The error bound of the filter by products of bytes, for rows of length 1: how
// far rounding a row to bytes may change a pair's similarity. Plain C++, for
// host and device.
//
// z is a prepared row, and y = Hz + r its computed rotation (rotation.hpp). q
// are its bytes: whole numbers from -127 to 127 near y / s, where s is the step
// of all rows. w = Hz - s q, N >= |z|, W >= |w|, Q = |q|.
//  * Rounding: z_i z_j = Hz_i Hz_j, and Hz_i Hz_j - s^2 q_i q_j = w_i Hz_j +
//    Hz_i w_j - w_i w_j. By Cauchy-Schwarz this is at most W_i N_j + N_i W_j +
//    W_i W_j. With N <= kLongestUnit =: L it is at most the sum of
//    L W + W^2 / 2 over both rows.
//  * Sums of products of bytes are whole numbers below 2^31 (kMostBytes), so
//    they are exact in any order.
//  * The contract's sum is within rounding_of_sums() of max(1, N_i N_j), at
//    most L^2, from z_i z_j. Clamping it to [-1, 1] moves it by at most
//    N_i N_j - 1, if that is positive: both are at most the sum over both rows
//    of half of that with N_i = N_j = N.
//  * The result is converted to a float: P is within 2^-24 |P| of it, where |P|
//    is at most the sum over both rows of Q^2 / 2 + F.
// Each term is a sum of one number for each row. F_i is the total of a row,
// over s^2 and rounded up to a whole number. It is stored in a few more
// features of the row's form, whose columns' form holds 127 (1 for the last),
// and vice versa. So P = q_i q_j + F_i + F_j is exact. As a float it is an
// upper bound of the returned similarity over s^2, and less slack_i + slack_j,
// slack = 2 F, a lower bound. Where the negative product is the similarity, F
// is subtracted instead: -P = -q_i q_j + F_i + F_j. Where it is the magnitude,
// P = q_i q_j is within twice the largest F of any row of the true value.
//
// A row is wild if its F exceeds the capacity of those features, if it is
// longer than L, or if it has a NaN entry. It becomes zeros with infinite
// slack. Its own list accepts all pairs, overflows, and the row is recomputed.
// Other rows would miss it, however: where a column is wild, the form does not
// suit the points.

#include <cmath>
#include <cstdint>

#include "core/contract/scaling.hpp"
#include "cuda/filter/rotation.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

static constexpr int kLargestByte = 127;
static constexpr double kLongestUnit = 1.0 + 0x1p-20;
/// The most features of bytes whose sum of products stays below 2^31.
static constexpr std::int64_t kMostBytes =
    INT32_MAX / (kLargestByte * kLargestByte);

/// The constants that all rows of one search share.
struct ByteRule {
  ByteRule() = default;
  /// depth: of a row in the form. contract: rounding_of_sums().
  FSKNN_HD ByteRule(std::int64_t depth, std::int64_t features, double contract,
                    double step)
      : parts(error_parts(features)),
        rotation(depth - 2 * parts),
        contract(contract),
        step(step) {}
  /// The number of features that hold the error, for each side.
  std::int64_t parts = 0;
  Rotation rotation{4};
  double contract = 0.0;
  double step = 1.0;  ///< s; at most 24 bits, so that s q is exact

  FSKNN_HD std::int64_t largest_share() const {
    return ((parts - 1) * kLargestByte + 1) * kLargestByte;
  }
  /// Returns the factor of part p of a share.
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

/// Rounds an entry of a rotated row to a byte.
FSKNN_HD inline int byte_of(double entry, double step) {
  const double q = rint(entry / step);
  return q >= kLargestByte    ? kLargestByte
         : q <= -kLargestByte ? -kLargestByte
         : q == q             ? static_cast<int>(q)
                              : 0;
}

/// Sums over the features of a rotated row.
struct ByteTerms {
  double whole = 0.0;     ///< y^2
  double bytes = 0.0;     ///< q^2
  double rounding = 0.0;  ///< (y - s q)^2
};

struct ByteBounds {
  bool wild = false;
  double share = 0.0;  ///< F, a whole number; infinity if there is none
  float slack = 0.0f;  ///< infinity: wild
  /// Returns the part of it that the row's features hold.
  FSKNN_HD std::int64_t held() const {
    return wild ? 0 : static_cast<std::int64_t>(share);
  }
};

FSKNN_HD inline ByteBounds byte_bounds(const ByteRule& rule,
                                       const ByteTerms& terms) {
  // Allows for the rounding of the sums themselves; underflow is far below the
  // 2^-400 added.
  const double up =
      1.0 + static_cast<double>(rule.rotation.size + 64) * 0x1p-51;
  const double rotated = rotation_error(rule.rotation);
  const double length =
      sqrt(terms.whole) * up * (1.0 + 2.0 * rotated) + 0x1p-400;
  const double w = sqrt(terms.rounding) * up + rotated * length + 0x1p-400;
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
