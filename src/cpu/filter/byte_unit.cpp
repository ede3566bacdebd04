#include "cpu/filter/byte_unit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/sample.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr std::int64_t kSampledRows = 63;
// All bytes of a row together stay below 2^29 apart.
constexpr std::int64_t kMostBytes = 1 << 28;

/// Entries of a sample, less their column's centre.
void add_entries(const PreparedPoints& points, const Buffer<double>& centre,
                 std::vector<double>& to) {
  const std::int64_t count = std::min(points.size(), kSampledRows);
  const Buffer<double> rows = sample_rows(points, count);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t f = 0; f < points.num_features; ++f)
      to.push_back(rows[i * points.padded + f] - centre[f]);
}

struct Range {
  double low, high;
};

/// All of them but for `out` at either end.
Range range_of(std::vector<double>& values, std::size_t out) {
  const auto nth = [&](std::size_t at) {
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(at),
                     values.end());
    return values[at];
  };
  return {nth(out), nth(values.size() - 1 - out)};
}

/// The largest power of two of which all values are multiples; 0: all are 0.
double grain_of(const std::vector<double>& values) {
  double grain = HUGE_VAL;
  for (const double v : values) {
    if (v == 0.0) continue;
    int exponent;
    const std::int64_t digits =
        static_cast<std::int64_t>(std::ldexp(std::frexp(v, &exponent), 53));
    grain = std::min(grain,
                     std::ldexp(1.0, exponent - 53 + __builtin_ctzll(digits)));
  }
  return grain < HUGE_VAL ? grain : 0.0;
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
  // An entry within the range is a quarter of a unit off, on average, and one
  // beyond by how far it is beyond. Their sum is least where one in so many
  // entries is beyond either end.
  const double steps = 2.0 * scale.largest;
  Range range =
      range_of(values, static_cast<std::size_t>(
                           static_cast<double>(values.size()) / (4.0 * steps)));
  if (!(range.low < range.high)) range = range_of(values, 0);
  const double width = range.high - range.low;
  if (!(width > 0.0)) return;
  // Whole numbers, or halves or hundreds of 64, stay what they are.
  const double grain = grain_of(values);
  double middle = 0.5 * range.low + 0.5 * range.high;
  if (width <= steps * grain) {
    scale.unit = grain;
    middle = range.low + grain * std::floor(0.5 * width / grain);
  } else {
    scale.unit = width / steps;
  }
  for (std::int64_t f = 0; f < points.num_features; ++f)
    scale.centre[f] += middle;
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
