#include "core/contract/value_range.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fsknn {
namespace {

struct Range {
  double low, high;
};

/// The range of all values except `out` at either end.
Range range_of(std::vector<double>& values, std::size_t out) {
  const auto nth = [&](std::size_t at) {
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(at),
                     values.end());
    return values[at];
  };
  return {nth(out), nth(values.size() - 1 - out)};
}

/// The largest power of two that divides all values; 0: all are 0.
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
  // The error of an entry within the range is a quarter of a unit on average;
  // beyond the range it is the distance to it. The sum of errors is least if
  // one in 4 * steps entries is beyond either end.
  const double steps = 2.0 * largest;
  Range range =
      range_of(values, static_cast<std::size_t>(
                           static_cast<double>(values.size()) / (4.0 * steps)));
  if (!(range.low < range.high)) range = range_of(values, 0);
  const double width = range.high - range.low;
  if (!(width > 0.0)) return found;
  // Integers, or multiples of 1/2 or 1/64, are represented exactly.
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
