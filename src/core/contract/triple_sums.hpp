#pragma once

// What the similarity of three rows is made of: part of the contract's
// arithmetic (arithmetic.hpp says the rules).

#include "core/contract/arithmetic.hpp"

namespace fsknn {

/// sum max(a_f, b_f, c_f) where it leaves double's range: see part_of_sum().
static inline FSKNN_RARE double minus_part_of_largest(const double* a,
                                                      const double* b,
                                                      const double* c,
                                                      std::int64_t padded) {
  double v[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    v[l] = 0.0;
    for (std::int64_t f = l; f < padded; f += kLanes) {
      const double most = a[f] > b[f] ? a[f] : b[f];
      v[l] = fma(most > c[f] ? most : c[f], kPartOfSum, v[l]);
    }
  }
  return -join_sum(v);
}

/// sum max(a_f, b_f, c_f) over rows of numbers that are not negative: the same
/// bits for any order of the three. Below 0 as part_of_sum() takes it.
template <class L>
double sum_of_largest(const double* a, const double* b, const double* c,
                      std::int64_t padded) {
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    s = add(s, larger(larger(L::load(a + f), L::load(b + f)), L::load(c + f)));
  double v[kLanes];
  s.store(v);
  const double sum = join_sum(v);
  return sum < HUGE_VAL ? sum : minus_part_of_largest(a, b, c, padded);
}

/// Three rows' sums added, the smallest first.
FSKNN_HD static inline double total_of_three(double a, double b, double c) {
  const double low = a < b ? a : b, high = a < b ? b : a;
  if (c < low) return (c + low) + high;
  return c < high ? (low + c) + high : (low + high) + c;
}

/// Three-way Proportional Similarity (Joubert et al. 2018) by the sum of the
/// largest and the total of all values, which is above 0. Small sums are scaled
/// up, which is exact: 1.5 times a subnormal number would be rounded.
FSKNN_HD static inline double similarity_of_three(double largest,
                                                  double total) {
  const double scale = total < 0x1p-960 ? 0x1p64 : 1.0;
  const double c = (1.5 * (scale * (total - largest))) / (scale * total);
  return c > 0.0 ? (c < 1.0 ? c : 1.0) : 0.0;
}

/// The same by the rows' sums, any of which part_of_sum() may have to take.
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
