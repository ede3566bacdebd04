#pragma once

// Stage "prepare": what a metric does to one row, once, in double. Part of the
// contract's arithmetic (arithmetic.hpp says the rules).

#include "core/arithmetic.hpp"
#include "core/kinds.hpp"
#include "core/ranks.hpp"

namespace fsknn {

/// Largest |x_f|; rows are padded with zeros.
template <class L>
double largest_magnitude(const double* x, std::int64_t padded) {
  L m = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    m = larger(m, magnitude(L::load(x + f)));
  double v[kLanes];
  m.store(v);
  return join_largest(v);
}

/// Sets features d .. padded - 1 of a row to zero again.
static inline void clear_padding(double* x, std::int64_t d,
                                 std::int64_t padded) {
  for (std::int64_t f = d; f < padded; ++f) x[f] = 0.0;
}

/// Brings a row to length 1. The row must have an entry other than zero.
template <class L>
void scale_to_length_one(double* x, std::int64_t padded) {
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes) {
    const L c = L::load(x + f);
    s = fma(c, c, s);
  }
  double v[kLanes];
  s.store(v);
  const L length = L::all(std::sqrt(join_sum(v)));
  for (std::int64_t f = 0; f < padded; f += kLanes)
    div(L::load(x + f), length).store(x + f);
}

/// Subtracts the mean over the d features (not the padding). With `scale`, the
/// row is taken times that power of two first, in the same operation.
template <class L>
void centre(double* x, std::int64_t d, std::int64_t padded, PowerOfTwo scale) {
  const L first = L::all(scale.first), second = L::all(scale.second);
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    s = fma(mul(L::load(x + f), first), second, s);
  double v[kLanes];
  s.store(v);
  const double mean = join_sum(v) / static_cast<double>(d);
  const L minus_mean = L::all(-mean);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    fma(mul(L::load(x + f), first), second, minus_mean).store(x + f);
  clear_padding(x, d, padded);
}

/// x: one row of d features padded with zeros; becomes z with sum z = 0 and
/// sum z^2 = 1 but for rounding. The row must not be constant. Centred twice:
/// the second mean takes away what the first one's rounding left, which is
/// much where the row's mean is far above its spread.
template <class L>
void prepare_centred_unit(double* x, std::int64_t d, std::int64_t padded) {
  const int e = exponent_of(largest_magnitude<L>(x, padded));
  centre<L>(x, d, padded, power_of_two(-e));
  centre<L>(x, d, padded, no_scaling());
  scale_to_length_one<L>(x, padded);
}

/// x: one row; the row must have an entry other than zero.
template <class L>
void prepare_unit(double* x, std::int64_t padded) {
  const PowerOfTwo scale =
      power_of_two(-exponent_of(largest_magnitude<L>(x, padded)));
  const L first = L::all(scale.first), second = L::all(scale.second);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    mul(mul(L::load(x + f), first), second).store(x + f);
  scale_to_length_one<L>(x, padded);
}

/// x: one row; multiplied by the matrix's power of two. Returns the row's sum
/// (Proportional Similarity needs it; cheap, so always made).
template <class L>
double prepare_raw(double* x, std::int64_t padded, PowerOfTwo scale) {
  const L first = L::all(scale.first), second = L::all(scale.second);
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes) {
    const L half = mul(L::load(x + f), first);
    s = fma(half, second, s);
    mul(half, second).store(x + f);
  }
  double v[kLanes];
  s.store(v);
  return join_sum(v);
}

/// One row of d features, padded with zeros, into the form that pairs are
/// computed from, in place. `scale` is the matrix's power of two (raw rows
/// only). Returns the row's sum for raw rows, 0 otherwise.
template <class L>
double prepare_row(RowForm form, PowerOfTwo scale, AverageRanks& ranks,
                   double* x, std::int64_t d, std::int64_t padded) {
  switch (form) {
    case RowForm::ranked_unit:
      ranks(x, d);
      prepare_centred_unit<L>(x, d, padded);
      return 0.0;
    case RowForm::centred_unit:
      prepare_centred_unit<L>(x, d, padded);
      return 0.0;
    case RowForm::unit:
      prepare_unit<L>(x, padded);
      return 0.0;
    case RowForm::ready: return 0.0;
    default: return prepare_raw<L>(x, padded, scale);
  }
}

}  // namespace fsknn
