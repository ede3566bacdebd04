#pragma once

// Matrices as a metric takes them, and the rows that it cannot take.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cases.hpp"
#include "core/contract/metric.hpp"
#include "core/rows/scan.hpp"

/// Without a sign where the metric needs that; numbers of an allele's copies.
inline Matrix fit(const fsknn::MetricEntry& metric, Matrix m) {
  if (metric.is_table())
    for (double& x : m.values)
      x = x > 0.0 ? (x > 1.0 ? metric.table.copies : 1.0) : 0.0;
  if (metric.least_overlap != nullptr)
    for (double& x : m.values) x = std::fabs(x);
  return m;
}

/// Constant rows of correlations; rows of zeros of cosine and of overlaps.
inline std::vector<std::int64_t> unfit(const fsknn::MetricEntry& metric,
                                       const Matrix& m) {
  const fsknn::MatrixFacts facts = fsknn::scan(m.source(), 1);
  if (metric.least_overlap != nullptr ||
      metric.row_form == fsknn::RowForm::unit)
    return facts.zero;
  return metric.is_unit_dot() ? facts.constant : std::vector<std::int64_t>();
}

inline std::string label(const fsknn::MetricEntry& metric, const Matrix& m) {
  return std::string(metric.name) + " " + fsknn::sign_name(metric.sign) + ", " +
         m.name + ", " + std::to_string(m.n) + " x " + std::to_string(m.d);
}
