#pragma once

// Bins of pairs' values (distances or similarities), and the number of pairs in
// each, for a histogram of all pairs.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/contract/metric.hpp"

namespace fsknn {

/// The value to count, and the breaks between the bins.
struct PairBins {
  /// At least two, ascending; the first and the last may be infinite.
  std::vector<double> breaks;
  /// Count similarities instead of distances: r itself for rows of length 1
  /// (its magnitude, or -r, depending on the sign), else
  /// MetricEntry::similarity.
  bool similarity = false;
  /// All pairs go through the exact step, to find the least and the largest
  /// value.
  bool extremes = false;

  /// Bins: below the breaks, [b_0, b_1), ..., [b_last-1, b_last], and above.
  std::size_t num_slots() const { return breaks.size() + 1; }
  std::size_t slot(double value) const {
    if (value == breaks.back()) return breaks.size() - 1;
    return static_cast<std::size_t>(
        std::upper_bound(breaks.begin(), breaks.end(), value) - breaks.begin());
  }
};

struct PairCounts {
  std::vector<std::int64_t> count;  ///< [num_slots()]
  std::int64_t num_points = 0;      ///< the points of these pairs
  /// Extremes over the pairs of the exact step.
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
};

/// Converts the result of a pass for a pair (the signed r, a similarity of
/// sums, or the distance) to the value that is counted. Throws RangeFailure.
class PairValue {
 public:
  PairValue(const MetricEntry& metric, bool similarity)
      : metric_(metric), similarity_(similarity) {}
  double of_product(double r) const;
  double operator()(double found) const;
  /// Whether the pass must compute MetricEntry::similarity.
  bool of_sums() const { return similarity_ && metric_.rounds_similarity(); }

 private:
  const MetricEntry& metric_;
  const bool similarity_;
};

}  // namespace fsknn
