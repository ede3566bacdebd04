#pragma once

// The GPUs' filter by floats on the host: its rows (float_filter.cu), and the
// arithmetic of a pair (float_pairs.cu), one float after the other.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rows/prepared.hpp"
#include "cuda/filter/float_bound.hpp"

/// Whether the metric's filter compares rows entry by entry.
inline bool is_elementwise(const fsknn::MetricEntry& metric) {
  return metric.filter != fsknn::FilterKind::none &&
         metric.filter != fsknn::FilterKind::product;
}

struct FloatRows {
  fsknn::cuda::ElementwiseRule rule;
  std::vector<float> entries;  ///< [rows x depth]
  std::vector<fsknn::cuda::RowBounds> bounds;
  std::int64_t depth;

  /// The scale comes from a sample of the first rows.
  FloatRows(const fsknn::MetricEntry& metric,
            const fsknn::PreparedPoints& points, std::int64_t in_sample)
      : depth(points.padded) {
    using namespace fsknn::cuda;
    const ElementwiseScale scale =
        elementwise_scale(points.rows.data(), in_sample, depth);
    rule = elementwise_rule(metric, depth, scale.inverse_unit);
    for (std::int64_t i = 0; i < points.size(); ++i) {
      RowTerms terms;
      for (std::int64_t f = 0; f < depth; ++f)
        entries.push_back(
            filter_entry(rule, points.row(fsknn::Place{i})[f],
                         scale.centre[static_cast<std::size_t>(f)], terms));
      bounds.push_back(row_bounds(rule, terms, points.sums[i]));
    }
  }

  float differences(std::int64_t i, std::int64_t j) const {
    const float *const a = entries.data() + i * depth, *const b =
                                                           entries.data() +
                                                           j * depth;
    float s = 0.0f;
    for (std::int64_t f = 0; f < depth; ++f) {
      const float t = std::fabs(a[f] - b[f]);
      s = rule.kind == fsknn::FilterKind::largest ? std::max(s, t) : s + t;
    }
    return s;
  }
};
