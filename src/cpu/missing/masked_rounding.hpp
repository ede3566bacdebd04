#pragma once

// Functions for both filters of pairs with missing values.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu/missing/masked_filter.hpp"

namespace fsknn {
namespace cpu {

// |z| <= 1 + 2^-20 ensures that products of two rows fit in 32 bits: (32000 (1
// + 2^-20) + sqrt(d) / 2)^2 < 2^31 up to d = 10^8.
constexpr double kMaskedUnit = 32000.0;

inline float rounded_up(double x) {
  return std::nextafter(static_cast<float>(x),
                        std::numeric_limits<float>::infinity());
}
inline float rounded_down(double x) {
  return std::nextafter(static_cast<float>(x),
                        -std::numeric_limits<float>::infinity());
}

/// Puts a whole number into a row's place of a panel, whose entries must be 0.
inline void put_masked(std::int32_t* row, std::size_t feature, double whole) {
  std::int32_t& pair = row[feature / 2 * 16];
  const std::uint32_t bits =
      static_cast<std::uint16_t>(static_cast<std::int16_t>(whole));
  pair = static_cast<std::int32_t>(static_cast<std::uint32_t>(pair) |
                                   bits << (feature % 2 * 16));
}

/// Returns the number of samples that both rows have.
std::int64_t masked_common(const MaskedFilterRows& rows,
                           const MaskedFilterRows& columns,
                           const MaskedPair& pair);

/// The error of a sum of squares over a list of that length, relative to |v|^2.
double masked_difference_error(std::int64_t length);

/// The error of 2 P and all other rounding except that over lists, relative to
/// |v|^2.
double masked_difference_margin(std::int64_t num_features);

/// Packs one row at a time into its places of the arrays.
class MaskedDifferencePacker {
 public:
  MaskedDifferencePacker(MaskedFilterRows& to, const MaskedPacking& packing);
  void operator()(std::int64_t place);

 private:
  /// Packs the whole numbers of the row.
  void pack(std::int64_t place, double length);
  /// Computes lower bounds on X: one for the number of values that the other
  /// row lacks, and one for each class.
  void bounds(std::int64_t place, double square);

  MaskedFilterRows& to_;
  const MissingClasses& classes_;
  const MaskedUnits& units_;
  std::vector<double> v_;
};

}  // namespace cpu
}  // namespace fsknn
