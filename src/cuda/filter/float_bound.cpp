#include "cuda/filter/float_bound.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/rows/prepared.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {
namespace {

double middle(std::vector<double>& values) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// F, including the test's own operations.
double error_of_floats(FilterKind kind, std::int64_t padded) {
  const double added = (static_cast<double>(padded) + 2.0) * 0x1p-24 * 1.1;
  switch (kind) {
    case FilterKind::difference: return added + 0x1p-22;
    case FilterKind::largest: return 0x1p-23 + 0x1p-22;
    case FilterKind::overlap: return added + 0x1p-19;
    case FilterKind::none:
    case FilterKind::product:
    case FilterKind::table:
    case FilterKind::bits:
      throw std::logic_error("the metric's filter is not of differences");
  }
  throw_unknown("filter", static_cast<int>(kind));
}

}  // namespace

// Medians, so that one huge entry moves none of them and costs no other row its
// resolution.
ElementwiseScale elementwise_scale(const double* rows, std::int64_t num_rows,
                                   std::int64_t padded) {
  ElementwiseScale scale;
  scale.centre.assign(static_cast<std::size_t>(padded), 0.0);
  if (num_rows == 0) return scale;
  std::vector<double> values(static_cast<std::size_t>(num_rows));
  for (std::int64_t f = 0; f < padded; ++f) {
    for (std::int64_t i = 0; i < num_rows; ++i)
      values[static_cast<std::size_t>(i)] = rows[i * padded + f];
    scale.centre[static_cast<std::size_t>(f)] = middle(values);
  }
  values.clear();
  for (std::int64_t i = 0; i < num_rows; ++i) {
    double size = 0.0;
    for (std::int64_t f = 0; f < padded; ++f)
      size += std::fabs(rows[i * padded + f] -
                        scale.centre[static_cast<std::size_t>(f)]) /
              static_cast<double>(padded);
    if (size > 0.0) values.push_back(size);
  }
  if (values.empty()) return scale;
  // The limits keep both the unit and its inverse doubles.
  const int e = std::max(-1000, std::min(1000, exponent_of(middle(values))));
  scale.inverse_unit = two_to(-e);
  return scale;
}

ElementwiseRule elementwise_rule(const MetricEntry& metric, std::int64_t padded,
                                 double inverse_unit) {
  check_metric(metric);
  ElementwiseRule rule;
  rule.kind =
      metric.filter == FilterKind::bits ? FilterKind::overlap : metric.filter;
  rule.inverse_unit = inverse_unit;
  const double sums = rounding_of_sums(padded);
  rule.float_error = error_of_floats(rule.kind, padded);
  rule.double_error = 4.0 * sums;
  // Counts the sum of minima, the two rows' sums, the quotient and the
  // difference.
  rule.sums_error = 6.0 * sums;
  return rule;
}

}  // namespace cuda
}  // namespace fsknn
