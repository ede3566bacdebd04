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

/// The median of some values, and the median of their distances from it (not
/// times 1.4826). For an even number of values the median is the mean of two,
/// and rounding their sum is a large error relative to the spread of values far
/// from 0. So the median itself is never computed. It is kept as the lower
/// value and half the gap between the two (0 for an odd number), and distances
/// are (x - lower) - above.
struct MedianAndMad {
  double lower;
  double above;
  double mad;
};

/// x minus the median.
FSKNN_HD static inline double off_median(double x, const MedianAndMad& m) {
  return (x - m.lower) - m.above;
}

/// Computes the medians of rows; zeros are +0.0.
class Medians {
 public:
  /// x: [d], finite, d >= 1, no more than 2^1001 in magnitude.
  MedianAndMad operator()(const double* x, std::int64_t d);

 private:
  struct Middle {
    double lower, upper;  ///< equal for an odd number of values
  };
  Middle middle();
  std::vector<double> values_;
};

/// The memory that one thread needs to prepare a row.
struct RowScratch {
  AverageRanks ranks;
  Medians medians;
  /// Output: whether the last row has a residual after adjustment. If not, the
  /// covariates explain it completely, and it has no form.
  bool varies = true;
};

}  // namespace fsknn
