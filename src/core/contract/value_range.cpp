#include "core/contract/value_range.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fsknn {
namespace {

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

ValueRange value_range(std::vector<double>& values, int largest) {
  ValueRange found;
  if (values.empty()) return found;
  // An entry within the range is a quarter of a unit off, on average, and one
  // beyond by how far it is beyond. Their sum is least where one in so many
  // entries is beyond either end.
  const double steps = 2.0 * largest;
  Range range =
      range_of(values, static_cast<std::size_t>(
                           static_cast<double>(values.size()) / (4.0 * steps)));
  if (!(range.low < range.high)) range = range_of(values, 0);
  const double width = range.high - range.low;
  if (!(width > 0.0)) return found;
  // Whole numbers, or halves or hundreds of 64, stay what they are.
  const double grain = grain_of(values);
  found.middle = 0.5 * range.low + 0.5 * range.high;
  if (width <= steps * grain) {
    found.unit = grain;
    found.middle = range.low + grain * std::floor(0.5 * width / grain);
  } else {
    found.unit = width / steps;
  }
  return found;
}

}  // namespace fsknn
