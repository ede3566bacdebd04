#pragma once

// Points for which a metric has no value where only some features count.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

class Vanishing {
 public:
  /// What such a point's values are there: all equal, or all 0.
  enum class Rule { none, constant, zero };

  /// values: as they were read, which must stay; NaN is missing, and equals
  /// all others. fewest: by() will be asked of no fewer different features.
  /// One pass finds the points that can vanish at all: of values that seldom
  /// repeat there are none, and no pass follows.
  Vanishing(const RowSource& values, Rule rule, std::int64_t fewest,
            int num_threads, Progress* progress);

  /// Those that vanish by these features, from 0, ascending.
  std::vector<std::int64_t> by(const std::vector<std::int32_t>& features,
                               int num_threads, Progress* progress) const;

 private:
  const RowSource& values_;
  const Rule rule_;
  std::vector<std::int32_t> candidates_;  ///< ascending
};

}  // namespace fsknn
