#pragma once

// Stage "prepare": the transformation of one row by a metric, once, in double.
// It is part of the contract's arithmetic (see arithmetic.hpp).

#include "core/base/kinds.hpp"
#include "core/contract/arithmetic.hpp"
#include "core/contract/row_scratch.hpp"

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

template <class L>
double sum_of_squares(const double* x, std::int64_t padded) {
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes) {
    const L c = L::load(x + f);
    s = fma(c, c, s);
  }
  double v[kLanes];
  s.store(v);
  return join_sum(v);
}

/// Scales a row to length 1. The row must have a nonzero entry.
template <class L>
void scale_to_length_one(double* x, std::int64_t padded) {
  const L length = L::all(std::sqrt(sum_of_squares<L>(x, padded)));
  for (std::int64_t f = 0; f < padded; f += kLanes)
    div(L::load(x + f), length).store(x + f);
}

/// Subtracts the mean over the d features (not the padding). The same operation
/// first multiplies the row by the power of two `scale`.
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

/// Scales and centres twice. The second mean removes the rounding error of the
/// first, which is large if the row's mean is far above its spread.
template <class L>
void centre_twice(double* x, std::int64_t d, std::int64_t padded) {
  const int e = exponent_of(largest_magnitude<L>(x, padded));
  centre<L>(x, d, padded, power_of_two(-e));
  centre<L>(x, d, padded, no_scaling());
}

/// x: one row of d features padded with zeros. It becomes z with sum z = 0 and
/// sum z^2 = 1 apart from rounding. The row must not be constant.
template <class L>
void prepare_centred_unit(double* x, std::int64_t d, std::int64_t padded) {
  centre_twice<L>(x, d, padded);
  scale_to_length_one<L>(x, padded);
}

/// As centre(), with the weighted mean.
template <class L>
void centre_weighted(double* x, std::int64_t d, std::int64_t padded,
                     PowerOfTwo scale, const FeatureWeights& weights) {
  const L first = L::all(scale.first), second = L::all(scale.second);
  L s = L::all(0.0);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    s = fma(L::load(weights.weight + f),
            mul(mul(L::load(x + f), first), second), s);
  double v[kLanes];
  s.store(v);
  const L minus_mean = L::all(-(join_sum(v) / weights.total));
  for (std::int64_t f = 0; f < padded; f += kLanes)
    fma(mul(L::load(x + f), first), second, minus_mean).store(x + f);
  clear_padding(x, d, padded);
}

/// As centre_twice(), for the weighted correlation
///   sum w (a - mean a) (b - mean b) / sqrt(sum w (a - mean a)^2 sum ...),
/// which is the product of two rows whose entries were multiplied by sqrt(w).
template <class L>
void centre_weighted_twice(double* x, std::int64_t d, std::int64_t padded,
                           const FeatureWeights& weights) {
  const int e = exponent_of(largest_magnitude<L>(x, padded));
  centre_weighted<L>(x, d, padded, power_of_two(-e), weights);
  centre_weighted<L>(x, d, padded, no_scaling(), weights);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    mul(L::load(x + f), L::load(weights.root + f)).store(x + f);
}

/// As prepare_centred_unit(), with weights.
template <class L>
void prepare_weighted_unit(double* x, std::int64_t d, std::int64_t padded,
                           const FeatureWeights& weights) {
  centre_weighted_twice<L>(x, d, padded, weights);
  scale_to_length_one<L>(x, padded);
}

/// Subtracts a row's projections on a basis. It does so twice, as rows are
/// centred twice: the rounding error along the basis in the first pass is large
/// if the residual is small.
template <class L>
void take_away(double* x, std::int64_t padded,
               const FeatureCovariates& covariates) {
  constexpr int n = kVectorsAtOnce;
  for (int time = 0; time < 2; ++time)
    for (std::int64_t j = 0; j < covariates.vectors; j += n) {
      const double* const basis = covariates.basis + j * padded;
      L s[n];
      for (int q = 0; q < n; ++q) s[q] = L::all(0.0);
      for (std::int64_t f = 0; f < padded; f += kLanes) {
        const L c = L::load(x + f);
        for (int q = 0; q < n; ++q)
          s[q] = fma(L::load(basis + q * padded + f), c, s[q]);
      }
      for (int q = 0; q < n; ++q) {
        double v[kLanes];
        s[q].store(v);
        s[q] = L::all(-join_sum(v));
      }
      for (std::int64_t f = 0; f < padded; f += kLanes) {
        L c = L::load(x + f);
        for (int q = 0; q < n; ++q)
          c = fma(L::load(basis + q * padded + f), s[q], c);
        c.store(x + f);
      }
    }
}

/// The least mean square of residuals of a row whose largest magnitude is in
/// [1, 2). Less is considered rounding error, of the row's own entries (2^-53
/// of the largest) and of the operations on them.
static constexpr double kLeastLeft = 0x1p-80;

/// As prepare_centred_unit() or prepare_weighted_unit(), after removing
/// covariates. Returns false if nothing remains, so that the row has no form.
template <class L>
bool prepare_adjusted_unit(double* x, std::int64_t d, std::int64_t padded,
                           const RowRecipe& recipe) {
  const bool weighted = recipe.weights.given();
  if (weighted)
    centre_weighted_twice<L>(x, d, padded, recipe.weights);
  else
    centre_twice<L>(x, d, padded);
  take_away<L>(x, padded, recipe.covariates);
  const double total = weighted ? recipe.weights.total : static_cast<double>(d);
  if (!(sum_of_squares<L>(x, padded) > kLeastLeft * total)) return false;
  scale_to_length_one<L>(x, padded);
  return true;
}

/// Only entries of 2^1001 and more are scaled down, so that a difference and
/// the sum of two distances are doubles. Smaller ones are not scaled. Beside
/// one huge entry the others would underflow, and medians depend on them.
static constexpr int kHighestForMedians = 1000;

FSKNN_HD static inline PowerOfTwo scale_for_medians(double largest) {
  const int e = exponent_of(largest);
  return power_of_two(e > kHighestForMedians ? kHighestForMedians - e : 0);
}

/// The biweight of one entry (Langfelder and Horvath 2012, eq. 3 and 4). t is
/// the difference from the median divided by 9 MAD; entries at 9 MAD or more
/// get weight 0. The result lacks the factor 9 MAD of the whole row, which
/// scaling to length 1 cancels.
template <class L>
FSKNN_INLINE L biweight(const L& off_median, const L& nine_mads) {
  const L one = L::all(1.0), minus_one = L::all(-1.0);
  const L t = smaller(larger(div(off_median, nine_mads), minus_one), one);
  const L u = fma(mul(t, minus_one), t, one);
  return mul(t, mul(u, u));
}

/// x: one row of d features padded with zeros, for the biweight midcorrelation.
/// A row whose MAD is 0 is prepared as for Pearson's. It must not be constant.
template <class L>
void prepare_biweight_unit(double* x, std::int64_t d, std::int64_t padded,
                           Medians& medians) {
  const PowerOfTwo scale = scale_for_medians(largest_magnitude<L>(x, padded));
  const L first = L::all(scale.first), second = L::all(scale.second);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    mul(mul(L::load(x + f), first), second).store(x + f);
  const MedianAndMad m = medians(x, d);
  if (!(m.mad > 0.0)) {
    prepare_centred_unit<L>(x, d, padded);
    return;
  }
  const L lower = L::all(m.lower), above = L::all(m.above);
  const L nine_mads = L::all(9.0 * m.mad);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    biweight<L>(sub(sub(L::load(x + f), lower), above), nine_mads).store(x + f);
  clear_padding(x, d, padded);
  scale_to_length_one<L>(x, padded);
}

/// x: one row; it must have a nonzero entry.
template <class L>
void prepare_unit(double* x, std::int64_t padded) {
  const PowerOfTwo scale =
      power_of_two(-exponent_of(largest_magnitude<L>(x, padded)));
  const L first = L::all(scale.first), second = L::all(scale.second);
  for (std::int64_t f = 0; f < padded; f += kLanes)
    mul(mul(L::load(x + f), first), second).store(x + f);
  scale_to_length_one<L>(x, padded);
}

/// x: one row; multiplies it by the matrix's power of two. Returns the row's
/// sum, computed as SmallerSum of the row with itself. Only metrics of overlap
/// need it, but it is cheap, so it is always computed.
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
  return SmallerSum::checked(join_sum(v), x, x, padded);
}

/// x: the d average ranks of a row. They become c = 2 rank - (d + 1): whole
/// numbers with sum 0. No product of such rows is rounded while d^3 / 3 is
/// below 2^53. Returns sum c^2.
template <class L>
double prepare_ranks(double* x, std::int64_t d, std::int64_t padded) {
  const L two = L::all(2.0), minus = L::all(-static_cast<double>(d + 1));
  for (std::int64_t f = 0; f < padded; f += kLanes)
    fma(two, L::load(x + f), minus).store(x + f);
  clear_padding(x, d, padded);
  return sum_of_squares<L>(x, padded);
}

/// Converts one row of d features, padded with zeros, in place to the form that
/// pairs are computed from. Returns the sum of a raw row, the sum of squares of
/// whole ranks, and 0 otherwise.
template <class L>
double prepare_row(const RowRecipe& recipe, RowScratch& scratch, double* x,
                   std::int64_t d, std::int64_t padded) {
  switch (recipe.form) {
    case RowForm::ranked:
    case RowForm::centred_unit:
      if (recipe.form == RowForm::ranked) scratch.ranks(x, d);
      if (recipe.whole_ranks) return prepare_ranks<L>(x, d, padded);
      if (recipe.covariates.given())
        scratch.varies = prepare_adjusted_unit<L>(x, d, padded, recipe);
      else if (recipe.weights.given())
        prepare_weighted_unit<L>(x, d, padded, recipe.weights);
      else
        prepare_centred_unit<L>(x, d, padded);
      return 0.0;
    case RowForm::biweight_unit:
      prepare_biweight_unit<L>(x, d, padded, scratch.medians);
      return 0.0;
    case RowForm::unit: prepare_unit<L>(x, padded); return 0.0;
    case RowForm::raw: return prepare_raw<L>(x, padded, recipe.scale);
    case RowForm::ready:
      return recipe.whole_ranks ? sum_of_squares<L>(x, padded) : 0.0;
  }
  throw_unknown("form of rows", static_cast<int>(recipe.form));
}

}  // namespace fsknn
