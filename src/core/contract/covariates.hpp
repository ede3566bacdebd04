#pragma once

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/kinds.hpp"
#include "core/contract/weights.hpp"

namespace fsknn {

/// Covariates of features (samples) in the form for removing them from rows: an
/// orthonormal basis of their span and the constant, by Householder
/// reflections. It is part of the contract's arithmetic (arithmetic.hpp) and in
/// scalar code, because another method for the same space gives other last
/// bits.
class SampleCovariates {
 public:
  /// values: [num_features x count], column by column, finite. weights: those
  /// of the features (the basis is then of their roots); null: all are equal.
  ///
  /// Columns are processed in order. A column that adds no information is
  /// dropped. Either it is constant: the root mean square of the centred column
  /// is at most 2^-40 of the column's largest magnitude. Or the columns before
  /// it explain it: the residual is at most 2^-23 of the length of the centred
  /// column.
  SampleCovariates(const double* values, std::int64_t num_features,
                   std::int64_t count, const SampleWeights* weights);

  std::int64_t num_features() const { return num_features_; }
  /// The number of kept columns: the rank beyond the constant.
  std::int64_t rank() const { return static_cast<std::int64_t>(kept_.size()); }
  /// Their numbers, ascending.
  const std::vector<std::int64_t>& kept() const { return kept_; }
  /// Whether the residuals of rows can differ from 0.
  bool leave_something() const { return rank() + 1 < num_features_; }
  double bytes() const { return 8.0 * static_cast<double>(basis_.size()); }
  /// If all columns were dropped, given() is false.
  FeatureCovariates view() const {
    FeatureCovariates v;
    v.basis = basis_.data();
    v.vectors = vectors_;
    return v;
  }

 private:
  std::int64_t num_features_;
  std::vector<std::int64_t> kept_;
  std::int64_t vectors_ = 0;
  Buffer<double> basis_;  ///< [vectors x padded features]
};

}  // namespace fsknn
