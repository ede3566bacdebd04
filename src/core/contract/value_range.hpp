#pragma once

// The unit for rows in small integers, and the range of values that those
// integers cover. A filter's bound uses each row's rounding error, so any unit
// gives the same answers.

#include <vector>

namespace fsknn {

struct ValueRange {
  double unit = 0.0;    ///< 0: all values are equal
  double middle = 0.0;  ///< the value of number 0
};

/// The range for integers from -largest to largest. Reorders the values.
ValueRange value_range(std::vector<double>& values, int largest);

}  // namespace fsknn
