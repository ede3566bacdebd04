#include "cpu/filter/byte_unit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/contract/value_range.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/sample.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr std::int64_t kSampledRows = 63;
// The differences of all bytes of two rows sum to less than 2^29.
constexpr std::int64_t kMostBytes = 1 << 28;

/// Adds the entries of a sample, less the centre of their column.
void add_entries(const PreparedPoints& points, const Buffer<double>& centre,
                 std::vector<double>& to) {
  const std::int64_t count = std::min(points.size(), kSampledRows);
  const Buffer<double> rows = sample_rows(points, count);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t f = 0; f < points.num_features; ++f)
      to.push_back(rows[i * points.padded + f] - centre[f]);
}

}  // namespace

void fit_bytes(FilterScale& scale, const PreparedPoints& points,
               const PreparedPoints* queries) {
  scale.largest = static_cast<std::int32_t>(std::min<std::int64_t>(
      static_cast<std::int64_t>(kLargestByte), kMostBytes / points.padded));
  scale.unit = 0.0;
  scale.centre = column_medians(points);
  if (scale.largest == 0) return;
  std::vector<double> values;
  add_entries(points, scale.centre, values);
  if (queries != nullptr) add_entries(*queries, scale.centre, values);
  const ValueRange range = value_range(values, scale.largest);
  scale.unit = range.unit;
  for (std::int64_t f = 0; f < points.num_features; ++f)
    scale.centre[f] += range.middle;
}

bool bytes_fit(const FilterScale& scale, const PreparedPoints& queries) {
  std::vector<double> values;
  add_entries(queries, scale.centre, values);
  const double most = scale.unit * (scale.largest + 1.0);
  std::int64_t beyond = 0;
  for (const double v : values) beyond += !(std::fabs(v) <= most);
  return 50 * beyond <= static_cast<std::int64_t>(values.size());
}

}  // namespace cpu
}  // namespace fsknn
