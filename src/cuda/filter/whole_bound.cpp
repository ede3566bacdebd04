#include "cuda/filter/whole_bound.hpp"

#include <algorithm>

#include "core/contract/value_range.hpp"

namespace fsknn {
namespace cuda {
namespace {

// For 16-bit numbers: the factor by which a row may exceed most of the
// sample's.
constexpr double kSpare = 4.0;
// One in this many of the sample's rows is ignored as an outlier.
constexpr std::int64_t kOutlying = 50;

/// Returns a unit that covers most rows, with some spare range: clamping an
/// entry costs a row far more than rounding all of its entries.
double wide_unit(const std::vector<double>& values, std::int64_t num_rows,
                 std::int64_t num_features, int most) {
  std::vector<double> largest;
  for (std::int64_t i = 0; i < num_rows; ++i) {
    double own = 0.0;
    for (std::int64_t f = 0; f < num_features; ++f)
      own = std::max(
          own,
          std::fabs(values[static_cast<std::size_t>(i * num_features + f)]));
    largest.push_back(own);
  }
  const auto at =
      largest.end() - 1 - static_cast<std::ptrdiff_t>(num_rows / kOutlying);
  std::nth_element(largest.begin(), at, largest.end());
  return *at * (kSpare / most);
}

}  // namespace

ElementwiseRule whole_rule(const MetricEntry& metric, std::int64_t padded,
                           double inverse_unit) {
  ElementwiseRule rule = elementwise_rule(metric, padded, inverse_unit);
  rule.float_error = is_proportion(rule.kind) ? 0x1p-19 : 0x1p-21;
  return rule;
}

ElementwiseScale whole_scale(const double* rows, std::int64_t num_rows,
                             std::int64_t padded, std::int64_t num_features,
                             NumberForm form, FilterKind kind) {
  ElementwiseScale scale = elementwise_scale(rows, num_rows, padded);
  scale.inverse_unit = 0.0;
  if (num_rows == 0) return scale;
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(num_rows * num_features));
  for (std::int64_t i = 0; i < num_rows; ++i)
    for (std::int64_t f = 0; f < num_features; ++f)
      values.push_back(rows[i * padded + f] -
                       scale.centre[static_cast<std::size_t>(f)]);
  const int most = most_whole(form, kind);
  double unit = 0.0;
  if (form == NumberForm::byte_difference) {
    const ValueRange range = value_range(values, most);
    unit = range.unit;
    for (std::int64_t f = 0; f < num_features; ++f)
      scale.centre[static_cast<std::size_t>(f)] += range.middle;
  } else {
    unit = wide_unit(values, num_rows, num_features, most);
  }
  // The unit and sums in units must stay far from the ends of the range of
  // doubles.
  if (unit > 1e-290 && unit < 1e290) scale.inverse_unit = 1.0 / unit;
  return scale;
}

}  // namespace cuda
}  // namespace fsknn
