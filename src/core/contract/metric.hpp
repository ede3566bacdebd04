#pragma once

// A metric as its entry in the table, which is all that most of the code needs;
// metrics.hpp computes it.

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/compiler.hpp"
#include "core/base/kinds.hpp"

namespace fsknn {

FSKNN_HD static inline double clamp_to_one(double r) {
  return r > 1.0 ? 1.0 : (r < -1.0 ? -1.0 : r);
}

/// The wide_from of a metric for which no data are wide (metrics.hpp).
static constexpr int kNeverWide = 1024;

/// The similarity from two rows' sum of products. Rows of length 1 have sums of
/// 0; the sums of whole ranks are sums of squares.
FSKNN_HD static inline double unit_similarity(double s, double sum_a,
                                              double sum_b) {
  const double squares = sum_a * sum_b;
  return squares > 0.0 ? s / sqrt(squares) : s;
}

/// The distance from the similarity of rows of length 1.
FSKNN_HD static inline double unit_distance(Sign sign, double r) {
  r = clamp_to_one(r);
  if (sign == Sign::absolute) return 1.0 - fabs(r);
  if (sign == Sign::negative) return 1.0 + r;
  return 1.0 - r;
}

/// The overlap of rows at this `distance`, if the distance is 1 - overlap.
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
  double (*finish_by)(double sum, double sum_a, double sum_b,
                      const TableTerms& table);
  /// Null: the metric has no similarity.
  double (*similarity_by)(double sum, double sum_a, double sum_b,
                          const TableTerms& table);
  /// Metrics of sum min(a, b) only; null for others.
  double (*least_overlap)(double distance);
  /// Metrics of allele tables only: `samples` is 0 in the table of metrics, and
  /// each request has an entry of its own (for_samples()).
  TableTerms table;

  /// Converts the accumulated sum and the two rows' sums to the distance,
  /// before the matrix's power of two is undone.
  double finish(double sum, double sum_a, double sum_b) const {
    return finish_by(sum, sum_a, sum_b, table);
  }
  /// The similarity, from the arguments of finish(). For products of rows of
  /// length 1 it is not clamped, and finish(similarity, 0, 0) is the distance.
  double similarity(double sum, double sum_a, double sum_b) const {
    return similarity_by(sum, sum_a, sum_b, table);
  }
  /// Products of rows of length 1, or of whole ranks, which filters scale to
  /// length 1.
  bool is_unit_dot() const {
    return similarity_by != nullptr && accumulation == Accumulation::dot &&
           !is_table();
  }
  /// Whether the metric is made from sum min(a, b).
  bool is_overlap() const { return least_overlap != nullptr; }
  /// Whether it is the largest entry of a table of alleles.
  bool is_table() const { return table.copies > 0.0; }
  /// Whether the distance is 1 - similarity, so that a small similarity has
  /// digits that the distance lacks.
  bool rounds_similarity() const { return is_overlap() || is_table(); }
};

/// Whether they are the same metric with the same constants, for any samples.
/// A metric's entry for wide data, which has no filter, is another.
inline bool is_same_metric(const MetricEntry& a, const MetricEntry& b) {
  return std::string_view(a.name) == b.name && a.sign == b.sign &&
         a.filter == b.filter && a.table.multiplier == b.table.multiplier &&
         a.table.parameter == b.table.parameter;
}

/// The entry of a metric of allele tables for that many samples.
inline MetricEntry for_samples(MetricEntry metric, std::int64_t samples) {
  metric.table.samples = static_cast<double>(samples);
  return metric;
}

/// The exponent e such that a matrix whose largest magnitude is `largest` is
/// multiplied by 2^-e.
int matrix_exponent(const MetricEntry& metric, double largest);

/// The exponent of the power of two that distances are multiplied by
/// afterwards.
int distance_exponent(const MetricEntry& metric, int matrix_exponent);

/// The entry with that name and sign. Throws std::invalid_argument.
const MetricEntry& find_metric(std::string_view name, std::string_view sign);

/// The metric, or its entry for wide data if that suits data whose largest
/// magnitude is `largest`.
const MetricEntry& metric_for(const MetricEntry& metric, double largest);

/// Every entry except those for wide data, in the order of AllMetrics.
const std::vector<MetricEntry>& all_metrics();

const char* sign_name(Sign sign);

}  // namespace fsknn
