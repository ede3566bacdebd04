#pragma once

// Values to choose by, with no code: kernels include this before they switch
// the instruction set.

#include <cstdint>

namespace fsknn {

// A switch over one of these lists every value and has no default, so that the
// compiler names whatever a new value is missing from. What follows such a
// switch is for a value that is none:

/// Throws std::logic_error.
[[noreturn]] void throw_unknown(const char* what, int value);

/// How a row becomes the form that pairs are computed from.
enum class RowForm {
  centred_unit,  ///< scaled, centred, brought to length 1 (Pearson)
  ranked,        ///< average ranks as whole numbers (Spearman); with weights or
                 ///< covariates the ranks as centred_unit
  biweight_unit,  ///< off the median, by weights, brought to length 1 (bicor)
  unit,           ///< scaled, brought to length 1 (cosine)
  raw,            ///< the matrix's values times the matrix's power of two
  ready           ///< of length 1 already: nothing is left to do
};

/// What is accumulated over the features of a pair (arithmetic.hpp).
enum class Accumulation {
  dot,
  wide_dot,  ///< the same of rows whose products may leave double's range
  squared_difference,
  absolute_difference,
  largest_difference,
  smaller_sum,
  relative_difference
};

/// How a fast arithmetic may drop pairs of a metric before the exact step: what
/// the metric's entry declares, never inferred.
enum class FilterKind {
  none,     ///< no filter: the exact step sees all pairs, on every path
  product,  ///< sum a b of low-precision rows (correlations, cosine, |a - b|^2)
  difference,  ///< sum |a - b|
  largest,     ///< max |a - b|
  overlap,     ///< sum min(a, b) against the rows' sums
  bits         ///< the same of rows of 0 and 1: features that both have
};

/// What of a correlation counts as near.
enum class Sign { signed_value, absolute, negative };

/// The one power of two that a matrix of raw rows is multiplied by.
enum class MatrixScale {
  none,      ///< rows have length 1, or pairs of entries have no unit
  to_one,    ///< largest entry to [1, 2), of small ones so that none is lost
  products,  ///< largest entry to [2^480, 2^481): sums of products stay in
             ///< range, and those of small entries are above what underflows
  sums,      ///< only entries of 2^980 and more are brought down, for the sums
  overlap    ///< as sums, but the distance has no unit: nothing to undo
};

/// A power of two as two factors, so that any double can be brought to [1, 2):
/// 2^1074 itself is no double. y = (x * first) * second.
struct PowerOfTwo {
  double first;
  double second;
};

/// Weights of features (samples), padded with zeros to a multiple of 8; null:
/// all weigh alike. SampleWeights (weights.hpp) holds them.
struct FeatureWeights {
  const double* weight = nullptr;  ///< the largest is in [1, 2)
  const double* root = nullptr;    ///< their square roots
  double total = 0.0;              ///< their sum

  bool given() const { return weight != nullptr; }
};

/// What rows are rid of: an orthonormal basis of what covariates of the
/// features (samples) span, and the constant with them; vectors padded with
/// zeros as rows are. SampleCovariates (covariates.hpp) holds it.
struct FeatureCovariates {
  const double* basis = nullptr;  ///< [vectors x padded features]
  std::int64_t vectors = 0;       ///< a multiple of kVectorsAtOnce; 0: none

  bool given() const { return vectors > 0; }
};

/// So many vectors of a basis are taken from a row at a time.
static constexpr int kVectorsAtOnce = 4;

/// What is done to the rows of a search, but for the rows themselves.
struct RowRecipe {
  RowForm form = RowForm::raw;
  PowerOfTwo scale = {1.0, 1.0};  ///< the matrix's; raw rows only
  FeatureWeights weights;         ///< centred and ranked rows only
  FeatureCovariates covariates;   ///< the same
  bool needs_sums = false;        ///< a sum of 0 is beyond range
  /// Rows are, or become, whole ranks, and their sums those of squares.
  bool whole_ranks = false;
};

struct RowScratch;

/// prepare_row<L>() (prepare.hpp) of one instruction set.
using RowKernel = double (*)(const RowRecipe& recipe, RowScratch& scratch,
                             double* x, std::int64_t d, std::int64_t padded);

}  // namespace fsknn
