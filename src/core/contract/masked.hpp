#pragma once

// A pair of rows with missing values, over the samples that both have, in the
// contract's arithmetic (see arithmetic.hpp): Pearson's r, a sum of
// differences, or the largest entry of a table of alleles.
//
// Correlations. A row holds its values times its own power of two, so that the
// largest known one is in [1, 2). Missing values and the padding are NaN. A row
// whose smallest values would lose digits is not scaled (scale_of_known()),
// because the other row may lack the sample of the largest. The row is not
// centred, because each pair has its own means. r takes two passes:
//
//   1. n, sum x, sum y over the common samples; the means are sum / n;
//   2. dx = x - mean_x, dy = y - mean_y; sums of dx, dy, dx^2, dy^2, dx dy.
//
//   c_xx = sum dx^2 - (sum dx)^2 / n, c_yy and c_xy alike;
//   r = c_xy / (sqrt(c_xx) sqrt(c_yy)), clamped to [-1, 1].
//
// The term (sum dx)^2 / n removes the rounding error of the mean (Chan, Golub
// and LeVeque 1983). If it is not small relative to sum dx^2, or the squares
// are near a limit of double's range, careful_correlation() computes the pair
// again. It scales the rows by their magnitude on the common samples. It also
// detects that a row does not vary on these (max == min, not variance 0); such
// a pair always reaches it.
//
// Ranks. A row's ranks are multiples of a power of two u, at least 1 / (4 d),
// that all rows share; means are rounded to multiples of it. So all values in
// pass 2 are integer multiples. They are exact in any order up to about 100,000
// samples, as 2^53 u^2 exceeds all sums. Then
//
//   r = (n sum dx dy - sum dx sum dy) / sqrt(v_x v_y),
//   v_x = n sum dx^2 - (sum dx)^2, and there is no r if v_x or v_y is 0.
//
// Swapping the rows only swaps names, so r(i, j) and r(j, i) have the same
// bits.
//
// Differences (Euclidean, Manhattan). A row holds its values times the matrix's
// power of two, and NaN elsewhere. The sum over the m common samples, computed
// as without missing values, is multiplied by d / m, rounded, where d is the
// number of features. This is the mean over the common samples, scaled to d. So
// a pair without missing values has the same bits as in a complete matrix.
//
// Tables of alleles. A row holds counts of alleles, and NaN elsewhere. The
// table counts the alleles of the common samples; each row's frequencies are
// those of all its own samples, as in CoMet. All sums are whole numbers, and
// exact.

#include <cmath>
#include <cstdint>

#include "core/contract/allele_table.hpp"
#include "core/contract/arithmetic.hpp"

namespace fsknn {

/// The value of an invalid pair: too few common samples, or no variation.
FSKNN_HD static inline double no_correlation() {
  const std::uint64_t bits = 0x7ff8000000000000u;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

FSKNN_HD static inline bool has_value(double x) { return x == x; }

/// A row's power of two under a correlation, from its largest magnitude and its
/// smallest nonzero one.
FSKNN_HD static inline PowerOfTwo scale_of_known(double largest,
                                                 double smallest) {
  if (!(largest > 0.0)) return no_scaling();
  const int e = exponent_of(largest);
  const bool loses_digits = e > 0 && exponent_of(smallest) - e < -1022;
  return loses_digits ? no_scaling() : power_of_two(-e);
}

/// The parameters of a pair over common samples.
struct MaskedTerms {
  Accumulation accumulation = Accumulation::dot;  ///< dot: Pearson's r
  double min_pairs = 3;     ///< a pair with fewer in common is invalid
  double num_features = 0;  ///< d, without padding
  /// Ranks: a power of two that divides all values, and to which means are
  /// rounded; 0: values are arbitrary.
  double grid = 0;
  /// Tables of alleles; otherwise without copies.
  TableTerms table;
};

/// The mean of n values with this sum.
FSKNN_HD static inline double masked_mean(double sum, double n, double grid) {
  const double mean = sum / n;
  // Values are below 2, and doubles near `large` are multiples of grid.
  const double large = grid * 0x1.8p52;
  return grid > 0.0 ? (mean + large) - large : mean;
}

/// The sums of pass 1, after joining the lanes.
struct CommonSums {
  double n, x, y;
};

/// The sums of pass 2, after joining the lanes.
struct CommonMoments {
  double x, y, xx, yy, xy;
};

/// Whether the result of pass 2 is accurate enough.
FSKNN_HD static inline bool is_plain(const CommonMoments& m, double n) {
  const double least = two_to(-900);  // no square that counts is subnormal
  const double most = two_to(900);    // or has overflowed
  return m.xx >= least && m.yy >= least && m.xx <= most && m.yy <= most &&
         (m.x * m.x) * 1024.0 <= n * m.xx && (m.y * m.y) * 1024.0 <= n * m.yy;
}

FSKNN_HD static inline double correlation_of(const CommonMoments& m, double n) {
  const double xx = m.xx - (m.x * m.x) / n;
  const double yy = m.yy - (m.y * m.y) / n;
  if (!(xx > 0.0) || !(yy > 0.0)) return no_correlation();
  const double xy = m.xy - (m.x * m.y) / n;
  const double r = xy / (sqrt(xx) * sqrt(yy));
  return r > 1.0 ? 1.0 : (r < -1.0 ? -1.0 : r);
}

/// r of ranks. A mean is rounded by no more than any value deviates from the
/// true mean. So (sum dx)^2 is at most half of n sum dx^2, and the subtraction
/// loses little.
FSKNN_HD static inline double ranked_correlation(const CommonMoments& m,
                                                 double n) {
  const double xx = fma(n, m.xx, -(m.x * m.x));
  const double yy = fma(n, m.yy, -(m.y * m.y));
  if (!(xx > 0.0) || !(yy > 0.0)) return no_correlation();
  const double r = fma(n, m.xy, -(m.x * m.y)) / sqrt(xx * yy);
  return r > 1.0 ? 1.0 : (r < -1.0 ? -1.0 : r);
}

/// One row's part of careful_correlation(): how its values are transformed.
struct CarefulRow {
  double part;  ///< below 1 if sums could leave double's range
  double mean, second_mean;
  PowerOfTwo scale;
  FSKNN_HD FSKNN_INLINE double off_mean(double x) const {
    return fma(x, part, -mean);
  }
  FSKNN_HD FSKNN_INLINE double unscaled(double x) const {
    return off_mean(x) - second_mean;
  }
  FSKNN_HD FSKNN_INLINE double operator()(double x) const {
    return (unscaled(x) * scale.first) * scale.second;
  }
};

/// sum of x part - minus over the common samples.
FSKNN_HD static inline double careful_sum(const double* a, const double* b,
                                          std::int64_t padded, double part,
                                          double minus) {
  double lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    lanes[l] = 0.0;
    for (std::int64_t f = l; f < padded; f += kLanes)
      if (has_value(a[f]) && has_value(b[f]))
        lanes[l] = lanes[l] + fma(a[f], part, -minus);
  }
  return join_sum(lanes);
}

/// Centres twice, and finds the power of two that scales the largest deviation
/// to [1, 2). sum: that of pass 1. Returns false if the row does not vary.
FSKNN_HD static inline bool prepare_careful(const double* a, const double* b,
                                            std::int64_t padded, double n,
                                            double sum, CarefulRow& row) {
  double least = 0.0, most = 0.0;
  bool any = false;
  for (std::int64_t f = 0; f < padded; ++f) {
    if (!has_value(a[f]) || !has_value(b[f])) continue;
    least = !any || a[f] < least ? a[f] : least;
    most = !any || a[f] > most ? a[f] : most;
    any = true;
  }
  if (least == most) return false;
  const bool whole = -least < two_to(960) && most < two_to(960);
  row.part = whole ? 1.0 : two_to(-64);
  row.mean = (whole ? sum : careful_sum(a, b, padded, row.part, 0.0)) / n;
  row.second_mean = careful_sum(a, b, padded, row.part, row.mean) / n;
  // unscaled() is monotone, so its largest magnitude is at an end.
  const double low = fabs(row.unscaled(least)), high = fabs(row.unscaled(most));
  const double largest = low > high ? low : high;
  if (!(largest > 0.0)) return false;
  row.scale = power_of_two(-exponent_of(largest));
  return true;
}

/// r of the rows a and b if is_plain() is false; sums are those of pass 1.
FSKNN_HD static inline double careful_correlation(const double* a,
                                                  const double* b,
                                                  std::int64_t padded,
                                                  const CommonSums& sums) {
  CarefulRow x, y;
  if (!prepare_careful(a, b, padded, sums.n, sums.x, x) ||
      !prepare_careful(b, a, padded, sums.n, sums.y, y))
    return no_correlation();
  double tx[kLanes], ty[kLanes], xx[kLanes], yy[kLanes], xy[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    tx[l] = ty[l] = xx[l] = yy[l] = xy[l] = 0.0;
    for (std::int64_t f = l; f < padded; f += kLanes) {
      if (!has_value(a[f]) || !has_value(b[f])) continue;
      const double dx = x(a[f]), dy = y(b[f]);
      tx[l] = tx[l] + dx;
      ty[l] = ty[l] + dy;
      xx[l] = fma(dx, dx, xx[l]);
      yy[l] = fma(dy, dy, yy[l]);
      xy[l] = fma(dx, dy, xy[l]);
    }
  }
  const CommonMoments m = {join_sum(tx), join_sum(ty), join_sum(xx),
                           join_sum(yy), join_sum(xy)};
  return correlation_of(m, sums.n);
}

/// The last step of all versions: r, or no_correlation(), from both passes. `a`
/// and `b` are read again only if necessary.
FSKNN_HD static inline double masked_result(const double* a, const double* b,
                                            std::int64_t padded,
                                            const CommonSums& sums,
                                            const CommonMoments& moments,
                                            const MaskedTerms& terms) {
  if (terms.grid > 0.0) return ranked_correlation(moments, sums.n);
  return is_plain(moments, sums.n) ? correlation_of(moments, sums.n)
                                   : careful_correlation(a, b, padded, sums);
}

/// Eight features of a row in lanes: a mask that is 1 for known values, and the
/// value, or a finite number. larger(NaN, y) is y. Sums of rows near the limit
/// of double's range may be NaN, which is_plain() rejects.
template <class L>
struct KnownLanes {
  static constexpr double absent = -0x1.fffffffffffffp1023;
  L value, mask;
  explicit KnownLanes(const double* p)
      : value(larger(L::load(p), L::all(absent))),
        mask(larger(fma(L::load(p), L::all(0.0), L::all(1.0)), L::all(0.0))) {}
};

template <class L>
double joined_lanes(const L& lanes) {
  double v[kLanes];
  lanes.store(v);
  return join_sum(v);
}

/// r of two rows, or no_correlation().
template <class L>
double masked_correlation(const double* a, const double* b, std::int64_t padded,
                          const MaskedTerms& terms) {
  L n = L::all(0.0), x = n, y = n;
  for (std::int64_t f = 0; f < padded; f += kLanes) {
    const KnownLanes<L> p(a + f), q(b + f);
    const L common = mul(p.mask, q.mask);
    n = add(n, common);
    x = fma(p.value, common, x);
    y = fma(q.value, common, y);
  }
  const CommonSums sums = {joined_lanes(n), joined_lanes(x), joined_lanes(y)};
  if (sums.n < terms.min_pairs) return no_correlation();
  const L mean_x = L::all(masked_mean(sums.x, sums.n, terms.grid));
  const L mean_y = L::all(masked_mean(sums.y, sums.n, terms.grid));
  L tx = L::all(0.0), ty = tx, xx = tx, yy = tx, xy = tx;
  for (std::int64_t f = 0; f < padded; f += kLanes) {
    const KnownLanes<L> p(a + f), q(b + f);
    const L common = mul(p.mask, q.mask);
    const L dx = mul(sub(p.value, mean_x), common);
    const L dy = mul(sub(q.value, mean_y), common);
    tx = add(tx, dx);
    ty = add(ty, dy);
    xx = fma(dx, dx, xx);
    yy = fma(dy, dy, yy);
    xy = fma(dx, dy, xy);
  }
  const CommonMoments moments = {joined_lanes(tx), joined_lanes(ty),
                                 joined_lanes(xx), joined_lanes(yy),
                                 joined_lanes(xy)};
  return masked_result(a, b, padded, sums, moments, terms);
}

/// A sum over n common samples, scaled to all features; negative if it is a
/// distance (minus_distance()).
FSKNN_HD static inline double scaled_to_all(double sum, double n,
                                            double num_features) {
  const double by = num_features / n;
  return sum * (sum < 0.0 ? sqrt(by) : by);
}

/// The sum of differences of two rows, scaled, or no_correlation().
template <class L, class A>
double masked_difference(const double* a, const double* b, std::int64_t padded,
                         const MaskedTerms& terms) {
  const L zero = L::all(0.0), one = L::all(1.0), absent = L::all(-1.0);
  L n = zero, s = zero;
  for (std::int64_t f = 0; f < padded; f += kLanes) {
    // larger(NaN, y) is y: -1 if one of the two values is missing.
    const L t = larger(magnitude(sub(L::load(a + f), L::load(b + f))), absent);
    n = add(n, smaller(add(t, one), one));
    s = A::step(larger(t, zero), zero, s);
  }
  const double common = joined_lanes(n);
  if (common < terms.min_pairs || !(common > 0.0)) return no_correlation();
  return scaled_to_all(A::checked(joined_lanes(s), a, b, padded), common,
                       terms.num_features);
}

/// The sums of two rows of allele counts.
template <class L>
PairSums masked_sums(const double* a, const double* b, std::int64_t padded) {
  const L zero = L::all(0.0);
  L both = zero, x = zero, y = zero, n = zero;
  L own_x = zero, own_y = zero, of_x = zero, of_y = zero;
  for (std::int64_t f = 0; f < padded; f += kLanes) {
    const KnownLanes<L> p(a + f), q(b + f);
    const L own_p = mul(p.value, p.mask), own_q = mul(q.value, q.mask);
    both = fma(own_p, own_q, both);
    x = fma(own_p, q.mask, x);
    y = fma(own_q, p.mask, y);
    n = fma(p.mask, q.mask, n);
    own_x = add(own_x, own_p);
    own_y = add(own_y, own_q);
    of_x = add(of_x, p.mask);
    of_y = add(of_y, q.mask);
  }
  return {joined_lanes(both),  joined_lanes(x),     joined_lanes(y),
          joined_lanes(n),     joined_lanes(own_x), joined_lanes(of_x),
          joined_lanes(own_y), joined_lanes(of_y)};
}

/// The similarity of two rows with these sums, or no_correlation().
FSKNN_HD static inline double masked_table(const PairSums& sums,
                                           const MaskedTerms& terms,
                                           int& which) {
  if (sums.samples < terms.min_pairs || !(sums.samples > 0.0))
    return no_correlation();
  return AlleleTable::largest_entry(sums, terms.table, which);
}

/// r of two rows, their scaled sum of differences, or the largest entry of
/// their table; or no_correlation().
template <class L>
double masked_pair(const MaskedTerms& terms, const double* a, const double* b,
                   std::int64_t padded) {
  if (terms.table.copies > 0.0) {
    int which;
    return masked_table(masked_sums<L>(a, b, padded), terms, which);
  }
  if (terms.accumulation == Accumulation::dot)
    return masked_correlation<L>(a, b, padded, terms);
  if (terms.accumulation == Accumulation::squared_difference)
    return masked_difference<L, SquaredDifference>(a, b, padded, terms);
  if (terms.accumulation == Accumulation::absolute_difference)
    return masked_difference<L, AbsoluteDifference>(a, b, padded, terms);
  // Any other accumulation, including future ones, is an error.
  throw_unknown("accumulation over common samples",
                static_cast<int>(terms.accumulation));
}

}  // namespace fsknn
