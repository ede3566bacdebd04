#pragma once

// Points for which a metric is undefined on a subset of the features.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

class Vanishing {
 public:
  /// The values of such a point on the subset: all equal, or all 0.
  enum class Rule { none, constant, zero };

  /// values: unprepared rows, which must outlive this; NaN is missing, and
  /// equals all others. fewest: the least number of different features in any
  /// call of by(). One pass finds the points that can vanish at all. If values
  /// seldom repeat there are none, and later calls read nothing.
  Vanishing(const RowSource& values, Rule rule, std::int64_t fewest,
            int num_threads, Progress* progress);

  /// The points that vanish on these features, from 0, ascending.
  std::vector<std::int64_t> by(const std::vector<std::int32_t>& features,
                               int num_threads, Progress* progress) const;

 private:
  const RowSource& values_;
  const Rule rule_;
  std::vector<std::int32_t> candidates_;  ///< ascending
};

}  // namespace fsknn
