#pragma once

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/kinds.hpp"

namespace fsknn {

/// Weights of features (samples) in the form for preparing rows.
class SampleWeights {
 public:
  /// weights: positive and finite, one for each feature, the largest at most
  /// 2^52 times the smallest. With a larger ratio, the squares of a row that
  /// varies only where weights are small could underflow, and the row would
  /// have no length. Throws std::invalid_argument if they are invalid. Only
  /// their proportions matter.
  explicit SampleWeights(const std::vector<double>& weights);

  std::int64_t num_features() const { return num_features_; }
  FeatureWeights view() const {
    FeatureWeights v;
    v.weight = weight_.data();
    v.root = root_.data();
    v.total = total_;
    return v;
  }

 private:
  std::int64_t num_features_;
  Buffer<double> weight_, root_;  ///< [padded features]
  double total_;
};

}  // namespace fsknn
