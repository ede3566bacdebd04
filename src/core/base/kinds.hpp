#pragma once

// Enumerations and structs without code: kernels include this before they
// switch the instruction set.

#include <cstdint>

namespace fsknn {

// A switch over one of these enumerations lists every value and has no default.
// So the compiler reports each switch that lacks a new value. After the switch,
// this function handles invalid values:

/// Throws std::logic_error.
[[noreturn]] void throw_unknown(const char* what, int value);

/// The form of a row that pairs are computed from.
enum class RowForm {
  centred_unit,  ///< scaled, centred, then of length 1 (Pearson)
  ranked,        ///< average ranks as whole numbers (Spearman); with weights or
                 ///< covariates the ranks as centred_unit
  biweight_unit,  ///< minus the median, weighted, of length 1 (bicor)
  unit,           ///< scaled, then of length 1 (cosine)
  raw,            ///< the matrix's values times the matrix's power of two
  ready           ///< already of length 1: no preparation is needed
};

/// The accumulation over the features of a pair (arithmetic.hpp).
enum class Accumulation {
  dot,
  wide_dot,  ///< the same for rows whose products may leave double's range
  squared_difference,
  absolute_difference,
  largest_difference,
  smaller_sum,
  relative_difference
};

/// The low-precision test that may drop pairs of a metric before the exact
/// step. The metric's entry declares it; it is never inferred.
enum class FilterKind {
  none,     ///< no filter: the exact step computes all pairs, on every path
  product,  ///< sum a b of low-precision rows (correlations, cosine, |a - b|^2)
  difference,  ///< sum |a - b|
  largest,     ///< max |a - b|
  overlap,     ///< sum min(a, b) relative to the rows' sums
  bits,        ///< the same for rows of 0 and 1: the features that both have
  table        ///< entries of a table of alleles, from sum a b
};

/// The correlations that count as near.
enum class Sign { signed_value, absolute, negative };

/// The power of two that a matrix of raw rows is multiplied by.
enum class MatrixScale {
  none,    ///< rows have length 1, or the metric is scale-free for each pair of
           ///< entries
  to_one,  ///< largest entry to [1, 2), but divided by 2^8 at most, so that
           ///< small entries keep their digits
  products,  ///< largest entry to [2^480, 2^481): sums of products stay in
             ///< range, and products of small entries do not underflow
  sums,      ///< only entries of 2^980 and more are scaled down, for the sums
  overlap    ///< as sums, but the distance is scale-free: nothing to undo
};

/// A power of two as two factors, so that any double can be scaled to [1, 2):
/// 2^1074 itself is not a double. y = (x * first) * second.
struct PowerOfTwo {
  double first;
  double second;
};

/// The constants of metrics of allele tables (allele_table.hpp).
struct TableTerms {
  double copies = 0.0;      ///< alleles that a sample has at a locus: 1 or 2
  double samples = 0.0;     ///< the number of features
  double multiplier = 0.0;  ///< of the entries of a table
  double parameter = 0.0;   ///< of the frequencies of alleles
};

/// The numbers of an apex and a row that make tables of alleles with a third
/// point. They are in the order 00, 01, 10, 11 of the two points' alleles.
struct TripleTableRow {
  float pair[4];    ///< C times the entries of the two points' table
  float weight[4];  ///< products of their alleles' weights
};

/// The last step from an accumulated sum to the distance: the power of two that
/// takes off the matrix's scaling, and the constants of the metric.
struct LastStep {
  PowerOfTwo scale = {1.0, 1.0};
  TableTerms table;
};

/// Weights of features (samples), padded with zeros to a multiple of 8; null:
/// all are equal. SampleWeights (weights.hpp) owns them.
struct FeatureWeights {
  const double* weight = nullptr;  ///< the largest is in [1, 2)
  const double* root = nullptr;    ///< their square roots
  double total = 0.0;              ///< their sum

  bool given() const { return weight != nullptr; }
};

/// Covariates to remove from rows: an orthonormal basis of the span of the
/// covariates of the features (samples) and the constant. Vectors are padded
/// with zeros as rows are. SampleCovariates (covariates.hpp) owns the basis.
struct FeatureCovariates {
  const double* basis = nullptr;  ///< [vectors x padded features]
  std::int64_t vectors = 0;       ///< a multiple of kVectorsAtOnce; 0: none

  bool given() const { return vectors > 0; }
};

/// The number of basis vectors that are subtracted from a row at a time.
static constexpr int kVectorsAtOnce = 4;

/// The preparation of the rows of a search.
struct RowRecipe {
  RowForm form = RowForm::raw;
  PowerOfTwo scale = {1.0, 1.0};  ///< of the matrix; raw rows only
  FeatureWeights weights;         ///< centred and ranked rows only
  FeatureCovariates covariates;   ///< the same
  bool needs_sums = false;        ///< a sum of 0 is a RangeFailure
  /// Rows are, or become, whole ranks, and their sums are sums of squares.
  bool whole_ranks = false;
};

struct RowScratch;

/// prepare_row<L>() (prepare.hpp) for one instruction set.
using RowKernel = double (*)(const RowRecipe& recipe, RowScratch& scratch,
                             double* x, std::int64_t d, std::int64_t padded);

}  // namespace fsknn
