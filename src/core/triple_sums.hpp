#pragma once

// What the similarity of three rows is made of: part of the contract's
// arithmetic (arithmetic.hpp says the rules).

#include "core/arithmetic.hpp"

namespace fsknn {

/// sum max(a_f, b_f, c_f) over rows of numbers that are not negative: the same
/// bits for any order of the three.
template <class L>
double sum_of_largest(const double* a, const double* b, const double* c,
                      std::int64_t padded) {
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    s = add(s, larger(larger(L::load(a + f), L::load(b + f)), L::load(c + f)));
  double v[kLanes];
  s.store(v);
  return join_sum(v);
}

/// Three rows' sums added, the smallest first.
FSKNN_HD static inline double total_of_three(double a, double b, double c) {
  const double low = a < b ? a : b, high = a < b ? b : a;
  if (c < low) return (c + low) + high;
  return c < high ? (low + c) + high : (low + high) + c;
}

/// Three-way Proportional Similarity (Joubert et al. 2018) by the sum of the
/// largest and the total of all values, which is above 0.
FSKNN_HD static inline double similarity_of_three(double largest,
                                                  double total) {
  const double c = (1.5 * (total - largest)) / total;
  return c > 0.0 ? (c < 1.0 ? c : 1.0) : 0.0;
}

}  // namespace fsknn
