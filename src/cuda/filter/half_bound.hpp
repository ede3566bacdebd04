#pragma once

// The error bounds of the filter by products of halves: how far rounding rows
// to halves and adding their products as floats may change a pair's similarity.
// Plain C++, for host and device. half_unit_rows.cu has the bound for rows of
// length 1.
//
// Raw rows: distances by |a - b|^2 as products. With any centre m, c_i = a_i -
// m and p_i = |c_i|^2 / 2, the similarity is t_ij = c_i c_j - p_i - p_j = -|a_i
// - a_j|^2 / 2. x_i is c_i times the scale, in halves. p_i is stored in three
// features of the row's form, whose columns' form holds powers of two, and vice
// versa.
//
// The bound. All is in units of the scale S (lengths) and its square; w_i = c_i
// - x_i, lambda = 2^-12, and C, X and W are the lengths of c, x and w.
//  * Rounding: c_i c_j - x_i x_j = x_i w_j + w_i x_j + w_i w_j. By
//    Cauchy-Schwarz and 2 X_i W_j <= lambda X_i^2 + W_j^2 / lambda it is at
//    most B_i + B_j with B_i = (lambda X_i^2 + W_i^2 / lambda + W_i^2) / 2.
//    This is nearly tight for rows of equal length, as near rows are.
//  * Accumulation, as assumed in half_unit_rows.cu: tau = sums_error(depth) of
//    the sum of magnitudes, at most the sum over both rows of X^2 / 2 + M, M
//    the magnitude of the three parts.
//  * The contract's sum of squares is within rounding_of_sums() of
//    |a_i - a_j|^2 <= 2 (C_i^2 + C_j^2), and less than padded 2^-1060 where
//    squares underflow. The root and its rounding change its square by less
//    than 2^-49 of it. Removing the matrix's power of two changes the distance
//    by less than g: half of its square by g (C_i + C_j) + g^2 here.
// Each term is a sum of one number for each row; e_i is the total of a row. The
// three parts hold q_i <= p_i - e_i. The filtered sum is therefore an upper
// bound of minus half the square of the returned distance. Less slack_i +
// slack_j, with slack_i = e_i + p_i - q_i, it is a lower bound.
//
// Inner products of rows of any length are the same with m = 0 and p = 0: t_ij
// = c_i c_j. The contract's sum is within rounding_of_sums() of C_i C_j, at
// most half of C_i^2 + C_j^2. Removing the matrix's power of two changes a
// distance by less than g, a square here. A row that is far longer than others
// must not affect these. So each row has a scale S_i of its own, by its largest
// entry, and a factor f_i = S / S_i, both powers of two. All of the above holds
// for S_i c_i and S_j c_j. The pair's similarity, in units of S^2, is f_i f_j
// times the filtered sum, its slack f_i f_j (slack_i + slack_j). g is covered
// by its share in both rows' errors: f_i f_j (g S_i^2 + g S_j^2) is at least 2
// g S^2. Factors are between 2^-48 and 2^48, so that f_i f_j and a similarity
// (at most 2^31 of that) are finite floats. f_i f_j times a sum is exact, or
// within 2^-149, which the 2^-20 tau f_i f_j of M cover.
//
// Rows of length 1 that are nearly the same (core/contract/centred.hpp) are
// treated as raw ones, with t_ij = -D in place of -D^2 / 2. p_i is |c_i|^2 / 2
// plus 1 minus the row's length. The contract's distance D is
// within UnitRounding::contract of both rows, and a part of their |c|^2, of the
// one by p. D is never negative. If a lower bound of -D exceeded that,
// identical rows would drop each other. It is at most the sum, over both rows,
// of the excess of the length over 1, less the row's contract, and this is part
// of the slack.
//
// M is at most 1.005 (p + e) + 2^-20. The rounding of a part is at most 2^-11
// of its value, or 2^-25 of its unit where halves are subnormal, and is carried
// into the next parts. The unit of the first part is large, so subnormal halves
// are not used there (split_norm()): they could be twice the intended value.
//
// A row far longer than the sample's (one huge entry) is shortened to the
// length kLongestBall, into the ball that contains all others. Projecting two
// points to a ball never increases their distance, so that the upper bound
// remains valid. There is no lower bound: the slack is infinite. Its own list
// overflows, and the row is recomputed; other rows do not have it as a
// candidate. Its position is exact but for w: the length of the division is
// rounded, by less than (up - 1) of itself.
//
// A row is wild if its error is too large to represent or, for products, if it
// is too long even for its factor. It becomes zeros, with an upper bound above
// any threshold and infinite slack. All others have it as a candidate, which
// the exact step decides. For products its factor is infinite, and so are its
// similarities, since its sums are positive. All other numbers are finite: x is
// at most 2^15, p 2^29, e 2^28, so a sum of products is below 2^32.

#include <cmath>
#include <cstdint>

#include "core/contract/centred.hpp"
#include "core/contract/scaling.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// Returns the relative error of a filtered sum, as a part of the sum of
/// magnitudes, where a tensor core is as half_unit_rows.cu assumes. The sum
/// over a range of features has an error of (features + 16) 2^-22 of its own
/// magnitudes. Each addition of two such sums, which rounds to the nearest
/// float, adds less than 2^-23 of all.
FSKNN_HD inline double sums_error(std::int64_t depth) {
  const std::int64_t longest = depth > kMostInOne ? kFilterFeatureRange : depth;
  const std::int64_t feature_ranges = (depth + longest - 1) / longest;
  return static_cast<double>(longest + 16) * 0x1p-22 +
         static_cast<double>(feature_ranges - 1) * 0x1p-23;
}

/// A raw row's norm, and its multipliers, take this many features each.
static constexpr int kNormParts = kNormFeatures / 2;

/// The multipliers of the three parts of a norm.
FSKNN_HD constexpr double part_unit(int part) {
  return part == 0 ? 0x1p14 : part == 1 ? 0x1p3 : 0x1p-8;
}

/// Splits a number into parts: the sum of part[p] part_unit(p) is at most the
/// number, and each part is a half.
struct NormParts {
  double part[kNormParts] = {};
  FSKNN_HD double sum() const {
    double s = 0.0;
    for (int p = kNormParts - 1; p >= 0; --p) s += part[p] * part_unit(p);
    return s;
  }
};

/// |x| must be less than 2^30.
FSKNN_HD inline NormParts split_norm(double x) {
  constexpr double least_whole = 0x1p-14, least = 0x1p-24;
  NormParts to;
  double left = x;
  for (int p = 0; p < kNormParts; ++p) {
    const bool last = p + 1 == kNormParts;
    const double wanted = left / part_unit(p);
    const bool whole = fabs(wanted) >= least_whole;
    if (!whole && p == 0) continue;
    const double step = whole ? two_to(exponent_of(fabs(wanted)) - 10) : least;
    // The last part is rounded down: the remainder then never makes a pair less
    // similar.
    to.part[p] = (last ? floor(wanted / step) : rint(wanted / step)) * step;
    left -= to.part[p] * part_unit(p);
  }
  return to;
}

/// The quantity from which similarities are computed.
enum class RawSum {
  squared_distance,  ///< |a - b|^2
  product,           ///< a b alone
  near_rows          ///< a b of rows of length 1, as |a - b|^2
};

/// The constants that all raw rows of one search share.
struct RawRule {
  std::int64_t depth = 0;   ///< features in the filter's form
  std::int64_t padded = 0;  ///< of the prepared rows
  double scale = 1.0;       ///< S, a power of two; for products each row's own
  double contract = 0.0;    ///< of |c|^2: rounding_of_sums() and the root's
  double gap = 0.0;         ///< g in units of 1; for products, squared
  RawSum sum = RawSum::squared_distance;
};

/// Sums over a row's features, times the scale's square.
struct RawTerms {
  double whole = 0.0;     ///< c^2
  double halves = 0.0;    ///< x^2
  double rounding = 0.0;  ///< w^2
  UnitRounding unit;      ///< for near rows, in units of 1
};

struct RawBounds {
  bool wild = false;
  double rest = 0.0;   ///< e without the parts' share of the accumulation
  double error = 0.0;  ///< e
  NormParts norm;      ///< q
  float slack = 0.0f;  ///< infinity: wild
};

// The typical length of a sampled row after scaling. The longest may be 2^15,
// whose square still fits three parts.
static constexpr int kTypicalExponent = 8;
static constexpr double kLongest = 0x1p15;
static constexpr double kLongestBall = kLongest * (1.0 - 0x1p-20);
static constexpr double kLargestError = 0x1p28;
// For products, the typical largest entry of a row, and the range of its factor
// in powers of two. 2^18 features are at most 2^15 long.
static constexpr int kLargestOfProducts = 5, kMostFactor = 48;
// No scale exceeds this, so that entries, which are below 2^481, times a scale
// are doubles.
static constexpr int kMostScale = 500;

/// Returns f as a power of two, for a row of products with this largest entry.
FSKNN_HD inline int factor_exponent(double scale, double largest) {
  if (!(largest > 0.0)) return -kMostFactor;
  const int wanted =
      exponent_of(largest) + exponent_of(scale) - kLargestOfProducts;
  return wanted < -kMostFactor  ? -kMostFactor
         : wanted > kMostFactor ? kMostFactor
                                : wanted;
}

/// A factor that covers the rounding of a row's own sums.
FSKNN_HD inline double raw_rounding(const RawRule& rule) {
  return 1.0 + static_cast<double>(rule.depth + 64) * 0x1p-51;
}

/// Returns whether the row must be shortened into the ball.
FSKNN_HD inline bool beyond_ball(const RawRule& rule, const RawTerms& terms) {
  const double up = raw_rounding(rule);
  return rule.sum != RawSum::product &&
         !(sqrt(terms.whole * up) * up <= kLongestBall);
}

/// cut: the row was shortened into the ball.
FSKNN_HD inline RawBounds raw_bounds(const RawRule& rule, const RawTerms& terms,
                                     bool cut = false) {
  constexpr double lambda = 0x1p-12;
  // Upper bounds: they include the rounding of the sums themselves, and that of
  // c.
  const double up = raw_rounding(rule);
  const bool products = rule.sum == RawSum::product;
  const bool distances = rule.sum == RawSum::squared_distance;
  const double short_of_one = terms.unit.short_of_one * rule.scale * rule.scale;
  const double of_unit = terms.unit.contract * rule.scale * rule.scale;
  // Exact to within (up - 1) of itself.
  const double p = products ? 0.0 : terms.whole / 2 + short_of_one;
  const double square = terms.whole * up;
  const double length = sqrt(square) * up;
  const double x_square = terms.halves * up;
  const double w = sqrt(terms.rounding) * up + length * 0x1p-51 +
                   (cut ? length * (up - 1.0) : 0.0) + 0x1p-400;
  const double gap = distances ? rule.gap * rule.scale : 0.0;
  const double square_gap =
      distances ? gap * gap : rule.gap * rule.scale * rule.scale;
  const double vanished =
      static_cast<double>(rule.padded) * rule.scale * 0x1p-530;
  const double tau = sums_error(rule.depth);
  RawBounds to;
  to.rest = (lambda * x_square + w * w / lambda + w * w) / 2 +
            tau * x_square / 2 + rule.contract * square + gap * length +
            square_gap + of_unit + (up - 1.0) * square +
            fabs(short_of_one) * 0x1p-50 + vanished * (rule.scale * 0x1p-530);
  // tau M, where M <= 1.005 (p + e) + 2^-20 and tau < 2^-8.
  to.error =
      (to.rest + tau * (1.01 * (square / 2 + fabs(short_of_one)) + 0x1p-20)) *
          1.02 +
      0x1p-400;
  to.wild = !(length <= kLongest) || !(to.error <= kLargestError);
  if (to.wild) {
    to.norm.part[0] = -65504.0;  // the largest half
    to.slack = HUGE_VALF;
    return to;
  }
  to.norm = split_norm(p - to.error);
  if (cut) {
    to.slack = HUGE_VALF;
    return to;
  }
  const double slack =
      (to.error + (p - to.norm.sum()) + fmax(0.0, -short_of_one - of_unit)) *
          (1 + 0x1p-40) +
      fabs(p) * 0x1p-48;
  const float rounded = static_cast<float>(slack);
  to.slack = static_cast<double>(rounded) < slack
                 ? nextafterf(rounded, HUGE_VALF)
                 : rounded;
  return to;
}

}  // namespace cuda
}  // namespace fsknn
