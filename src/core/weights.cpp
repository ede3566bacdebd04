#include "core/weights.hpp"

#include <algorithm>
#include <cmath>

#include "core/arithmetic.hpp"

namespace fsknn {

SampleWeights::SampleWeights(const std::vector<double>& weights)
    : num_features_(static_cast<std::int64_t>(weights.size())),
      weight_(padded_features(num_features_)),
      root_(padded_features(num_features_)) {
  // By a power of two, which is exact: any unit gives the same bits.
  const PowerOfTwo scale = power_of_two(
      -exponent_of(*std::max_element(weights.begin(), weights.end())));
  for (std::int64_t f = 0; f < weight_.size(); ++f) {
    weight_[f] = f < num_features_
                     ? (weights[static_cast<std::size_t>(f)] * scale.first) *
                           scale.second
                     : 0.0;
    root_[f] = std::sqrt(weight_[f]);
  }
  double lane[kLanes] = {};
  for (std::int64_t f = 0; f < weight_.size(); ++f)
    lane[f % kLanes] += weight_[f];
  total_ = join_sum(lane);
}

}  // namespace fsknn
