#pragma once

// A second test, before the exact step, of pairs that passed a filter of bytes.
// It computes the same differences in whole numbers of 16 bits, pair by pair.
// It reads a quarter of the exact step's bytes, and drops most pairs for which
// bytes were too coarse.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/filter/form.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// Words are in a 16th of the bytes' unit, which leaves little rounding
/// compared with distances. Their range is eight times that of bytes (for up to
/// 65,536 features), so that it contains most entries that bytes clip.
constexpr double kPartsOfUnit = 16.0;

/// A bound on words: the difference of two has 15 bits, and the sum of two
/// rows' differences has 31.
inline double largest_word(std::int64_t padded) {
  constexpr std::int64_t kMostWords = (1 << 30) - 1;
  return static_cast<double>(
      std::min<std::int64_t>(16383, kMostWords / padded));
}

class SecondTest {
 public:
  /// All arguments must outlive this object. Rows without words are not tested.
  SecondTest(const Kernels& kernels, const FilterRows& rows,
             const FilterRows& columns)
      : kernels_(kernels), rows_(rows), columns_(columns) {}

  /// Removes hits that fail the test. row0, column0: the start of the chunk in
  /// which hits and thresholds are numbered.
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
