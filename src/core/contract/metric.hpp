#pragma once

// A metric as its entry in the table, which most of the code knows it by; how
// it is computed is in metrics.hpp.

#include <cmath>
#include <string>
#include <vector>

#include "core/base/compiler.hpp"
#include "core/base/kinds.hpp"

namespace fsknn {

FSKNN_HD static inline double clamp_to_one(double r) {
  return r > 1.0 ? 1.0 : (r < -1.0 ? -1.0 : r);
}

/// A metric's wide_from: no data are wide data (metrics.hpp).
static constexpr int kNeverWide = 1024;

/// Of two rows' sum of products: of rows of length 1, which have sums of 0, or
/// of whole ranks, whose sums are those of their squares.
FSKNN_HD static inline double unit_similarity(double s, double sum_a,
                                              double sum_b) {
  const double squares = sum_a * sum_b;
  return squares > 0.0 ? s / sqrt(squares) : s;
}

/// The overlap of rows that are `distance` away from each other, by a distance
/// of 1 - overlap.
FSKNN_HD static inline double overlap_at(double distance) {
  return 1.0 - distance;
}

/// A metric chosen at run time.
struct MetricEntry {
  const char* name;
  Sign sign;
  RowForm row_form;
  Accumulation accumulation;
  FilterKind filter;
  MatrixScale matrix_scale;
  int wide_from;  ///< kNeverWide: metric_for() is always the metric itself
  /// Accumulated sum and the two rows' sums to distance, before the matrix's
  /// power of two is taken off again.
  double (*finish)(double sum, double sum_a, double sum_b);
  /// From what finish() takes, the similarity. Of products of rows of length 1
  /// it is not clamped, and finish(similarity, 0, 0) is the distance. Null:
  /// there is none.
  double (*similarity)(double sum, double sum_a, double sum_b);
  /// Metrics of sum min(a, b) only; else null.
  double (*least_overlap)(double distance);

  /// Products of rows of length 1, or of whole ranks, which filters bring to
  /// it.
  bool is_unit_dot() const {
    return similarity != nullptr && accumulation == Accumulation::dot;
  }
  /// Of sum min(a, b).
  bool is_overlap() const { return least_overlap != nullptr; }
};

/// The exponent e: a matrix whose largest magnitude is `largest` is multiplied
/// by 2^-e before.
int matrix_exponent(const MetricEntry& metric, double largest);

/// And distances by 2 to the power of this after.
int distance_exponent(const MetricEntry& metric, int matrix_exponent);

/// The entry of that name and sign. Throws std::invalid_argument.
const MetricEntry& find_metric(const std::string& name,
                               const std::string& sign);

/// The metric, or its entry for wide data if `largest` is the largest
/// magnitude.
const MetricEntry& metric_for(const MetricEntry& metric, double largest);

/// Every entry but those for wide data, in the order of AllMetrics.
const std::vector<MetricEntry>& all_metrics();

const char* sign_name(Sign sign);

}  // namespace fsknn
