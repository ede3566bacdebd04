#pragma once

// A second look at what a filter of bytes lets pass, before the exact step: the
// same differences in whole numbers of 16 bits, pair by pair. It reads a
// quarter of the exact step's bytes, and most of what bytes are too coarse for
// stays behind.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/filter/form.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// Words are in a 16th of the bytes' unit: what that leaves of the rounding is
/// little beside distances, and what is beyond the bytes' range is within the
/// words', which is eight times as wide (of up to 65,536 features).
constexpr double kPartsOfUnit = 16.0;

/// No word is beyond: two have a difference of 15 bits, and all of two rows'
/// together 31.
inline double largest_word(std::int64_t padded) {
  constexpr std::int64_t kMostWords = (1 << 30) - 1;
  return static_cast<double>(
      std::min<std::int64_t>(16383, kMostWords / padded));
}

class SecondLook {
 public:
  /// All must stay. Rows that have no words are not looked at.
  SecondLook(const Kernels& kernels, const FilterRows& rows,
             const FilterRows& columns)
      : kernels_(kernels), rows_(rows), columns_(columns) {}

  /// Takes out those hits that pass no more. row0, column0: where the chunk is
  /// that they, and the thresholds, are numbered in.
  void drop(std::int64_t row0, std::int64_t column0,
            const std::int32_t* row_threshold,
            const std::int32_t* column_threshold, std::vector<Pair>& hits);

 private:
  const Kernels& kernels_;
  const FilterRows& rows_;
  const FilterRows& columns_;
  std::vector<std::int32_t> sums_;
};

}  // namespace cpu
}  // namespace fsknn
