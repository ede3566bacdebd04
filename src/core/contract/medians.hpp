#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/scaling.hpp"

namespace fsknn {

/// The median of some values, and that of their distances from it (not times
/// 1.4826). Of an even number of values it is between two, and their sum is
/// rounded: where values are far from 0 that is much beside their spread. So
/// the median is never made: it is the lower of the two, and half of how far
/// apart they are (0 of an odd number), and distances are (x - lower) - above.
struct MedianAndMad {
  double lower;
  double above;
  double mad;
};

/// x less the median.
FSKNN_HD static inline double off_median(double x, const MedianAndMad& m) {
  return (x - m.lower) - m.above;
}

/// Medians of rows, one after the other; zeros are +0.0.
class Medians {
 public:
  /// x: [d], finite, d >= 1, no more than 2^1001 in magnitude.
  MedianAndMad operator()(const double* x, std::int64_t d);

 private:
  struct Middle {
    double lower, upper;  ///< the same, of an odd number
  };
  Middle middle();
  std::vector<double> values_;
};

}  // namespace fsknn
