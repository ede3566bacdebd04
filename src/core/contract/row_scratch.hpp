#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/scaling.hpp"

namespace fsknn {

/// Replaces d values by their ranks from 1; equal values share the average of
/// their ranks. -0.0 equals 0.0.
class AverageRanks {
 public:
  void operator()(double* x, std::int64_t d);

 private:
  struct Entry {
    double value;
    std::int64_t at;
  };
  std::vector<Entry> sorted_, spare_;
};

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

/// What one thread needs besides a row to prepare it.
struct RowScratch {
  AverageRanks ranks;
  Medians medians;
  /// Out: whether covariates left the last row anything. If not, the row is
  /// constant but for them, and has no form.
  bool varies = true;
};

}  // namespace fsknn
