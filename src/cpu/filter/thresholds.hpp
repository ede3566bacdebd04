#pragma once

// Thresholds at which the test never drops a row's pair with one of its k
// nearest, from returned distances.

#include <cmath>
#include <cstdint>

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

class Thresholds {
 public:
  Thresholds(const FilterScale& scale, const MetricEntry& metric,
             const DistanceRule& rule)
      : terms_{scale, metric, rule} {}
  /// The threshold at which no pair within `distance` fails the test.
  std::int32_t keep_up_to(double distance) const {
    if (!form().usable(terms_.scale) || !(distance < HUGE_VAL))
      return keep_all();
    return form().keep_up_to(terms_, distance);
  }
  /// The thresholds at which every pair passes, and at which this side lets no
  /// pair pass.
  std::int32_t keep_all() const { return form().keep_all; }
  std::int32_t keep_none() const { return form().keep_none; }
  /// An upper bound on the returned distance of pairs whose upper_key was at
  /// most `key`, for the row with these numbers. Infinity if there is no bound.
  double upper_distance(float key, const Side& row) const {
    if (!form().usable(terms_.scale) || !(key < HUGE_VALF)) return HUGE_VAL;
    return form().upper_distance(terms_, static_cast<double>(key), row);
  }

 private:
  const FilterForm& form() const { return *terms_.scale.form; }
  FilterTerms terms_;
};

}  // namespace cpu
}  // namespace fsknn
