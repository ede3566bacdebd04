#include "core/contract/weights.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/contract/arithmetic.hpp"
#include "core/contract/scaling.hpp"

namespace fsknn {
namespace {

// A centred row has its largest entry in [1, 2), and if it varies some entry
// differs from the mean by at least 2^-55. Times the root of a weight of 2^-52,
// its square is at least 2^-162: far above the underflow of a sum.
constexpr double kLargestRatio = 0x1p52;

/// Returns the largest.
double checked(const std::vector<double>& weights) {
  if (weights.empty()) throw std::invalid_argument("there are no weights");
  double least = HUGE_VAL, most = 0.0;
  for (const double w : weights) {
    if (!(w > 0.0 && w < HUGE_VAL))
      throw std::invalid_argument("a weight is not positive and finite");
    least = std::min(least, w);
    most = std::max(most, w);
  }
  if (!(most / least <= kLargestRatio))
    throw std::invalid_argument("a weight is more than 2^52 times another");
  return most;
}

}  // namespace

SampleWeights::SampleWeights(const std::vector<double>& weights)
    : num_features_(static_cast<std::int64_t>(weights.size())),
      weight_(padded_features(num_features_)),
      root_(padded_features(num_features_)) {
  // Scaling by a power of two is exact, so any unit gives the same bits.
  const PowerOfTwo scale = power_of_two(-exponent_of(checked(weights)));
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
