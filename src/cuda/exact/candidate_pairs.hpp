#pragma once

// Candidates of a search for all pairs within a distance: pairs that a filter
// cannot tell to be farther than the limits of both their points, in one list.

#include <cstdint>

namespace fsknn {
namespace cuda {

struct SlotPair {
  std::int32_t row, column;
};

/// All pointers are device memory.
struct CandidatePairs {
  /// [row slots], [column slots] what a pair's similarity must reach, of either
  /// of its points. Infinity: this one lets none in; not a number: padding.
  const float* row_thresholds = nullptr;
  const float* column_thresholds = nullptr;
  /// Rows and columns are the same slots: two points are one pair, and none is
  /// a pair with itself.
  bool graph = false;
  SlotPair* pairs = nullptr;  ///< out: [capacity], in no order
  std::int64_t capacity = 0;
  /// Out: may pass the capacity. Null: no such search.
  unsigned long long* count = nullptr;
};

}  // namespace cuda
}  // namespace fsknn
