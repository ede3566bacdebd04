#include "core/pair_bins.hpp"

#include <cmath>

#include "core/errors.hpp"

namespace fsknn {
namespace {

double checked(double distance) {
  if (!is_in_range(distance)) throw RangeFailure();
  return distance;
}

}  // namespace

double PairValue::of_product(double r) const {
  if (!similarity_) return metric_.finish(r, 0.0, 0.0);
  const double similar = clamp_to_one(r);
  switch (metric_.sign) {
    case Sign::signed_value: return similar;
    case Sign::absolute: return std::fabs(similar);
    case Sign::negative: return -similar;
  }
  throw_unknown("sign", static_cast<int>(metric_.sign));
}

double PairValue::of_distance(double distance) const {
  return similarity_ ? 1.0 - checked(distance) : checked(distance);
}

}  // namespace fsknn
