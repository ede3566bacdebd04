#pragma once

// Makes the rule of limits (exact/limit_rule.hpp) for a filter's similarities.
// Plain C++, for the host.

#include "core/rows/prepared.hpp"
#include "cuda/exact/limit_rule.hpp"

namespace fsknn {
namespace cuda {

/// The relation of a filter's similarities to distances.
struct SimilarityUnits {
  double scale = 1.0;  ///< S
  double error = 0.0;  ///< e, in the filter's units
  /// Proportions: this is subtracted from an overlap.
  double less = 1.0;
  bool near_rows = false;  ///< of length 1, centred
  /// For these pairs, moreover, the error is as large as distances are.
  bool wide = false;
};

inline LimitOf limits_are_of(const MetricEntry& metric,
                             const SimilarityUnits& units) {
  if (units.near_rows) return LimitOf::near_rows;
  if (metric.is_unit_dot() || metric.is_table()) return LimitOf::unit;
  switch (metric.filter) {
    case FilterKind::product:
      return metric.accumulation == Accumulation::dot
                 ? LimitOf::product
                 : LimitOf::squared_distance;
    case FilterKind::difference:
    case FilterKind::largest: return LimitOf::difference;
    case FilterKind::overlap: return LimitOf::overlap;
    // Bits are handled on the host alone: threshold_of_limit().
    case FilterKind::bits:
    case FilterKind::table:
    case FilterKind::none: break;
  }
  return LimitOf::nothing;
}

/// redo: DistanceRule::redo().
inline LimitRule limit_rule(const MetricEntry& metric, PowerOfTwo redo,
                            const SimilarityUnits& units) {
  LimitRule rule;
  rule.of = limits_are_of(metric, units);
  rule.scale = units.scale;
  rule.error = units.error;
  rule.less = units.less;
  rule.redo = redo;
  return rule;
}

inline float threshold_of_limit(const MetricEntry& metric,
                                const DistanceRule& distances,
                                const SimilarityUnits& units, double limit) {
  const LimitRule rule = limit_rule(metric, distances.redo(), units);
  // Distances are between 0 and 1.
  if (metric.filter == FilterKind::bits && limit > -HUGE_VAL && limit < 1.0)
    return threshold_of_overlap(
        rule, metric.least_overlap(limit < 0.0 ? 0.0 : limit));
  return threshold_at(rule, limit);
}

}  // namespace cuda
}  // namespace fsknn
