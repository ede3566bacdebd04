#pragma once

// Bins of pairs' values (distances, or similarities), and how many pairs are in
// each: what a histogram of all pairs asks of a backend.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/contract/metric.hpp"

namespace fsknn {

/// What is counted, and where one slot ends and the next begins.
struct PairBins {
  /// At least two, ascending; the first and the last may be infinite.
  std::vector<double> breaks;
  /// Similarities: of rows of length 1 r itself (its magnitude, or -r, as the
  /// sign has it), else MetricEntry::similarity. Or distances.
  bool similarity = false;
  /// All pairs by the exact step, which tells the least and the largest value.
  bool extremes = false;

  /// Below the breaks, [b_0, b_1), ..., [b_last-1, b_last], and above.
  std::size_t num_slots() const { return breaks.size() + 1; }
  std::size_t slot(double value) const {
    if (value == breaks.back()) return breaks.size() - 1;
    return static_cast<std::size_t>(
        std::upper_bound(breaks.begin(), breaks.end(), value) - breaks.begin());
  }
};

struct PairCounts {
  std::vector<std::int64_t> count;  ///< [num_slots()]
  std::int64_t num_points = 0;      ///< whose pairs they are
  /// Of the pairs that the exact step saw.
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
};

/// From what a pass has of a pair, the signed r, a similarity of sums or the
/// distance, to what is counted. Throws RangeFailure.
class PairValue {
 public:
  PairValue(const MetricEntry& metric, bool similarity)
      : metric_(metric), similarity_(similarity) {}
  double of_product(double r) const;
  double operator()(double found) const;
  /// Whether the pass brings what MetricEntry::similarity gives.
  bool of_sums() const { return similarity_ && metric_.is_overlap(); }

 private:
  const MetricEntry& metric_;
  const bool similarity_;
};

}  // namespace fsknn
