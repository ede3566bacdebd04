#pragma once

// The candidates of a search for all pairs within a distance, in one list. The
// filter cannot prove that such a pair is farther apart than the limits of both
// its points.

#include <cstdint>

namespace fsknn {
namespace cuda {

struct SlotPair {
  std::int32_t row, column;
};

/// All pointers are device memory.
struct CandidatePairs {
  /// [row slots], [column slots] A pair must reach the threshold of one of its
  /// points. Infinity: the point accepts no pair; NaN: padding.
  const float* row_thresholds = nullptr;
  const float* column_thresholds = nullptr;
  /// Rows and columns are the same slots: each unordered pair counts once, and
  /// no point is paired with itself.
  bool graph = false;
  SlotPair* pairs = nullptr;  ///< out: [capacity], in no order
  std::int64_t capacity = 0;
  /// Out: may exceed the capacity. Null: there is no such search.
  unsigned long long* count = nullptr;
};

}  // namespace cuda
}  // namespace fsknn
