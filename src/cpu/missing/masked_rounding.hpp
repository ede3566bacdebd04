#pragma once

// What both filters of pairs with missing values are made with.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu/missing/masked_filter.hpp"

namespace fsknn {
namespace cpu {

// |z| <= 1 + 2^-20, so that no product of two rows leaves 32 bits: each is
// (32000 (1 + 2^-20) + sqrt(d) / 2)^2 < 2^31 up to d = 10^8.
constexpr double kMaskedUnit = 32000.0;

inline float rounded_up(double x) {
  return std::nextafter(static_cast<float>(x),
                        std::numeric_limits<float>::infinity());
}
inline float rounded_down(double x) {
  return std::nextafter(static_cast<float>(x),
                        -std::numeric_limits<float>::infinity());
}

/// A whole number into a row's place of a panel, whose entries are 0 so far.
inline void put_masked(std::int32_t* row, std::size_t feature, double whole) {
  std::int32_t& pair = row[feature / 2 * 16];
  const std::uint32_t bits =
      static_cast<std::uint16_t>(static_cast<std::int16_t>(whole));
  pair = static_cast<std::int32_t>(static_cast<std::uint32_t>(pair) |
                                   bits << (feature % 2 * 16));
}

/// Samples that both have.
std::int64_t masked_common(const MaskedFilterRows& rows,
                           const MaskedFilterRows& columns,
                           const MaskedPair& pair);

/// Of a sum of squares over a list of that length, as a part of |v|^2.
double masked_difference_error(std::int64_t length);

/// Of |v|^2: what 2 P may err by, and all other rounding but that over lists.
double masked_difference_margin(std::int64_t num_features);

/// One row at a time into its places of the arrays.
class MaskedDifferencePacker {
 public:
  MaskedDifferencePacker(MaskedFilterRows& to, const MaskedPacking& packing);
  void operator()(std::int64_t place);

 private:
  /// In whole numbers.
  void pack(std::int64_t place, double length);
  /// Of X, from below: by one number of the other row, and for each class.
  void bounds(std::int64_t place, double square);

  MaskedFilterRows& to_;
  const MissingClasses& classes_;
  const MaskedUnits& units_;
  std::vector<double> v_;
};

}  // namespace cpu
}  // namespace fsknn
