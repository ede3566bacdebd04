#pragma once

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/kinds.hpp"

namespace fsknn {

/// Weights of features (samples) in the form that rows are prepared by.
class SampleWeights {
 public:
  /// weights: positive and finite, one for each feature; the largest no more
  /// than 2^52 times the smallest, or a row that varies where weights are small
  /// could have squares that vanish, and no length. Throws
  /// std::invalid_argument where they are not. Only their proportions matter.
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
