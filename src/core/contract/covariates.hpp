#pragma once

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/kinds.hpp"
#include "core/contract/weights.hpp"

namespace fsknn {

/// Covariates of features (samples) in the form that rows are rid of them: an
/// orthonormal basis of what they and the constant span, by Householder's
/// reflections. Part of the contract's arithmetic (arithmetic.hpp), in scalar
/// code: a basis of the same space by another way has other last bits.
class SampleCovariates {
 public:
  /// values: [num_features x count], column by column, finite. weights: of the
  /// features (the basis is of their roots then); null: all weigh alike.
  ///
  /// Columns are taken in their order. One that says nothing new is dropped:
  /// which is constant, or of which what the constant and the columns before it
  /// leave is no more than 2^-23 of its length without its mean, or 2^-40 of
  /// its largest magnitude, root mean square.
  SampleCovariates(const double* values, std::int64_t num_features,
                   std::int64_t count, const SampleWeights* weights);

  std::int64_t num_features() const { return num_features_; }
  /// Columns that are kept: the rank beyond the constant.
  std::int64_t rank() const { return static_cast<std::int64_t>(kept_.size()); }
  /// Their numbers, ascending.
  const std::vector<std::int64_t>& kept() const { return kept_; }
  /// Whether rows can have anything left.
  bool leave_something() const { return rank() + 1 < num_features_; }
  double bytes() const { return 8.0 * static_cast<double>(basis_.size()); }
  /// None are given where all columns were dropped.
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
