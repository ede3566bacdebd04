#pragma once

// The bounds of the filter by products of halves: what rounding rows to halves
// and adding their products up as floats may change in a pair's similarity.
// Plain C++, for host and device. half_unit_rows.cu has the bound of rows of
// length 1.
//
// Raw rows: distances by |a - b|^2 as products. With any centre m, c_i = a_i -
// m and p_i = |c_i|^2 / 2, the similarity is t_ij = c_i c_j - p_i - p_j =
// -|a_i - a_j|^2 / 2. x_i is c_i times the scale, in halves; p_i goes into
// three features of the row's form, whose columns' form holds powers of two,
// and the other way round.
//
// The bound. All in units of the scale S (lengths) and its square; w_i = c_i -
// x_i, lambda = 2^-12, C, X and W the lengths of c, x and w.
//  * Rounding: c_i c_j - x_i x_j = x_i w_j + w_i x_j + w_i w_j. By
//    Cauchy-Schwarz and 2 X_i W_j <= lambda X_i^2 + W_j^2 / lambda it is at
//    most B_i + B_j with B_i = (lambda X_i^2 + W_i^2 / lambda + W_i^2) / 2:
//    nearly tight where rows are as long as each other, which near rows are.
//  * Accumulation, as assumed in half_unit_rows.cu: tau = sums_error(depth) of
//    the sum of magnitudes, at most the sum over both rows of X^2 / 2 + M, M
//    the magnitude of the three parts.
//  * The contract's sum of squares is within rounding_of_sums() of |a_i -
//    a_j|^2 <= 2 (C_i^2 + C_j^2), and less than padded 2^-1060 where squares
//    vanish; the root and its rounding move its square by less than 2^-49 of
//    it, and taking off the matrix's power of two the distance by less than g:
//    its square's half by g (C_i + C_j) + g^2 here.
// Each is a sum of one number for each row; e_i is what a row's add up to. The
// three parts hold q_i <= p_i - e_i, so that the filtered sum is an upper bound
// of minus half the square of the returned distance, and less slack_i +
// slack_j, with slack_i = e_i + p_i - q_i, a lower bound.
//
// Inner products of rows of any length are the same with m = 0 and p = 0: t_ij
// = c_i c_j. The contract's sum is within rounding_of_sums() of C_i C_j, at
// most half of C_i^2 + C_j^2, and taking off the matrix's power of two moves a
// distance by less than g, a square here. A row that is far longer than others
// must cost these nothing. So each row has a scale S_i of its own, by its
// largest entry, and a factor f_i = S / S_i, both powers of two: all of the
// above holds of S_i c_i and S_j c_j, and the pair's similarity, in units of
// S^2, is f_i f_j times the filtered sum, its slack f_i f_j (slack_i +
// slack_j). g is less than its part in both rows' errors: f_i f_j (g S_i^2 + g
// S_j^2) is at least 2 g S^2. No factor is beyond 2^48 or below 2^-48, so that
// f_i f_j and a similarity (at most 2^31 of that) are finite floats, and f_i
// f_j times a sum is exact, or off by less than 2^-149, for which the 2^-20 tau
// f_i f_j of M leave room.
//
// Rows of length 1 that are nearly the same (core/contract/centred.hpp) are the
// same as raw ones, with t_ij = -D in the place of -D^2 / 2: p_i is |c_i|^2 / 2
// and what the row is short of length 1, and the contract's distance D is
// within UnitRounding::contract of both rows, and a part of their |c|^2, of
// what p says. D is never below 0. Were a lower bound of -D above that, rows
// that are all alike would drop each other: it is at most the sum of what
// either row is longer than 1 by, less its contract, which goes into the slack.
//
// M is at most 1.005 (p + e) + 2^-20. A part's rounding is at most 2^-11 of
// what it is to hold, or 2^-25 of its unit where halves are subnormal, and goes
// into the next ones. The first part's unit is large, so there no subnormal
// ones are taken (split_norm()): they could be twice what they are to hold.
//
// A row far longer than the sample's (one huge entry) is brought to the length
// kLongestBall, into the ball that all others are in: the nearest point of a
// ball to one is no farther from the nearest one to another than those are from
// each other, so that the upper bound stays one. Nothing is known from below:
// infinite slack. Its own list overflows, and it is done again; other rows do
// not have it as a candidate. It is where it should be but for w: the length it
// was divided by is rounded, by less than (up - 1) of itself.
//
// A row whose error is beyond all measure, or one of products that is too long
// even for its factor, is wild: zeros, and an upper bound above any threshold,
// with infinite slack. All others have it as a candidate, which the exact step
// decides. Of products its factor is infinite, and so are its similarities:
// their sums are above 0. Nothing else is infinite: x is at most 2^15, p 2^29,
// e 2^28, so a sum of products is below 2^32.

#include <cmath>
#include <cstdint>

#include "core/contract/centred.hpp"
#include "core/contract/scaling.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// At most by this part of the sum of magnitudes a filtered sum is off, where a
/// tensor core is as half_unit_rows.cu assumes: a range's sum by (features +
/// 16) 2^-22 of its own magnitudes, and each addition of two ranges' sums,
/// which rounds to the nearest float, by less than 2^-23 of all.
FSKNN_HD inline double sums_error(std::int64_t depth) {
  const std::int64_t longest = depth > kMostInOne ? kFilterFeatureRange : depth;
  const std::int64_t feature_ranges = (depth + longest - 1) / longest;
  return static_cast<double>(longest + 16) * 0x1p-22 +
         static_cast<double>(feature_ranges - 1) * 0x1p-23;
}

/// A raw row's norm, and what it is multiplied by, are so many features each.
static constexpr int kNormParts = kNormFeatures / 2;

/// What the three parts of a norm are multiplied by.
FSKNN_HD constexpr double part_unit(int part) {
  return part == 0 ? 0x1p14 : part == 1 ? 0x1p3 : 0x1p-8;
}

/// A number in parts: the sum of part[p] part_unit(p) is at most that number,
/// and each part is a half.
struct NormParts {
  double part[kNormParts] = {};
  FSKNN_HD double sum() const {
    double s = 0.0;
    for (int p = kNormParts - 1; p >= 0; --p) s += part[p] * part_unit(p);
    return s;
  }
};

/// |x| is less than 2^30.
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
    // The last downwards: what is left never makes a pair less similar.
    to.part[p] = (last ? floor(wanted / step) : rint(wanted / step)) * step;
    left -= to.part[p] * part_unit(p);
  }
  return to;
}

/// What similarities are made of.
enum class RawSum {
  squared_distance,  ///< |a - b|^2
  product,           ///< a b alone
  near_rows          ///< a b of rows of length 1, as |a - b|^2
};

/// What all raw rows of one search have in common.
struct RawRule {
  std::int64_t depth = 0;   ///< features in the filter's form
  std::int64_t padded = 0;  ///< of the prepared rows
  double scale = 1.0;       ///< S, a power of two; of products the row's own
  double contract = 0.0;    ///< of |c|^2: rounding_of_sums() and the root's
  double gap = 0.0;         ///< g in units of 1; of products, squared
  RawSum sum = RawSum::squared_distance;
};

/// Sums over a row's features, times the scale's square.
struct RawTerms {
  double whole = 0.0;     ///< c^2
  double halves = 0.0;    ///< x^2
  double rounding = 0.0;  ///< w^2
  UnitRounding unit;      ///< of near rows, in units of 1
};

struct RawBounds {
  bool wild = false;
  double apart = 0.0;  ///< e but for the parts' share of the accumulation
  double error = 0.0;  ///< e
  NormParts norm;      ///< q
  float slack = 0.0f;  ///< infinity: wild
};

// A sampled row's length after scaling is about this; the longest may be
// 2^15, whose square still fits three parts.
static constexpr int kTypicalExponent = 8;
static constexpr double kLongest = 0x1p15;
static constexpr double kLongestBall = kLongest * (1.0 - 0x1p-20);
static constexpr double kLargestError = 0x1p28;
// Of products the largest entry of any row is about this, and its factor within
// so many powers of two. 2^18 features are at most 2^15 long.
static constexpr int kLargestOfProducts = 5, kMostFactor = 48;
// No scale is beyond this: entries, which are below 2^481, times a scale are
// doubles.
static constexpr int kMostScale = 500;

/// f as a power of two, of a row of products whose largest entry is this.
FSKNN_HD inline int factor_exponent(double scale, double largest) {
  if (!(largest > 0.0)) return -kMostFactor;
  const int wanted =
      exponent_of(largest) + exponent_of(scale) - kLargestOfProducts;
  return wanted < -kMostFactor  ? -kMostFactor
         : wanted > kMostFactor ? kMostFactor
                                : wanted;
}

/// What a row's sums' own rounding may have taken is made up for by this.
FSKNN_HD inline double raw_rounding(const RawRule& rule) {
  return 1.0 + static_cast<double>(rule.depth + 64) * 0x1p-51;
}

/// Whether the row is to be brought into the ball.
FSKNN_HD inline bool beyond_ball(const RawRule& rule, const RawTerms& terms) {
  const double up = raw_rounding(rule);
  return rule.sum != RawSum::product &&
         !(sqrt(terms.whole * up) * up <= kLongestBall);
}

/// cut: the row was brought into the ball.
FSKNN_HD inline RawBounds raw_bounds(const RawRule& rule, const RawTerms& terms,
                                     bool cut = false) {
  constexpr double lambda = 0x1p-12;
  // Upper bounds: what the sums' own rounding may have taken, and that of c.
  const double up = raw_rounding(rule);
  const bool products = rule.sum == RawSum::product;
  const bool distances = rule.sum == RawSum::squared_distance;
  const double short_of_one = terms.unit.short_of_one * rule.scale * rule.scale;
  const double of_unit = terms.unit.contract * rule.scale * rule.scale;
  // To within (up - 1) of itself.
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
  to.apart = (lambda * x_square + w * w / lambda + w * w) / 2 +
             tau * x_square / 2 + rule.contract * square + gap * length +
             square_gap + of_unit + (up - 1.0) * square +
             fabs(short_of_one) * 0x1p-50 + vanished * (rule.scale * 0x1p-530);
  // tau M, where M <= 1.005 (p + e) + 2^-20 and tau < 2^-8.
  to.error =
      (to.apart + tau * (1.01 * (square / 2 + fabs(short_of_one)) + 0x1p-20)) *
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
