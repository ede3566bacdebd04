#pragma once

#include <cstdint>
#include <vector>

namespace fsknn {

/// The median of some values, and that of their distances from it (not times
/// 1.4826).
struct MedianAndMad {
  double median;
  double mad;
};

/// Medians of rows, one after the other. Of an even number of values the median
/// is half the sum of the two in the middle; a median of zero is +0.0.
class Medians {
 public:
  /// x: [d], finite, d >= 1, no more than 2^1001 in magnitude.
  MedianAndMad operator()(const double* x, std::int64_t d);

 private:
  double median();
  std::vector<double> values_;
};

}  // namespace fsknn
