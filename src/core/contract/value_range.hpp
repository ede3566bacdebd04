#pragma once

// The unit of rows in whole numbers of few bits: what of the values' range
// those numbers are spread over. A filter's bound is made of what each row
// loses, so any unit gives the same answers.

#include <vector>

namespace fsknn {

struct ValueRange {
  double unit = 0.0;    ///< 0: there is no spread
  double middle = 0.0;  ///< whose number is 0
};

/// Of some values, which are reordered: numbers from -largest to largest.
ValueRange value_range(std::vector<double>& values, int largest);

}  // namespace fsknn
