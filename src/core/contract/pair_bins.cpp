#include "core/contract/pair_bins.hpp"

#include <cmath>

#include "core/base/errors.hpp"

namespace fsknn {

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

double PairValue::operator()(double found) const {
  if (metric_.is_unit_dot()) return of_product(found);
  if (!is_in_range(found)) throw RangeFailure();
  return found;
}

}  // namespace fsknn
