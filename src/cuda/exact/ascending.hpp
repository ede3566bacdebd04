#pragma once

// Searches in strictly ascending numbers. Plain C++, for host and device.

#include <cstdint>

#include "core/contract/scaling.hpp"

namespace fsknn {
namespace cuda {

/// Returns the position of `wanted` among `count` >= 1 numbers, or -1.
/// `estimate` is a position; numbers near it are found fastest.
FSKNN_HD inline int position_of(const std::int32_t* sorted, int count,
                                std::int32_t wanted, int estimate) {
  int low = 0, high = count;  // the range that remains
  int gap = 16;
  const std::int32_t there = sorted[estimate];
  if (there == wanted) return estimate;
  if (there < wanted) {
    low = estimate + 1;
    for (int at = low + gap; at < count; at = low + gap, gap *= 2) {
      if (sorted[at] >= wanted) {
        high = at + 1;
        break;
      }
      low = at + 1;
    }
  } else {
    high = estimate;
    for (int at = high - gap; at >= 0; at = high - gap, gap *= 2) {
      if (sorted[at] <= wanted) {
        low = at;
        break;
      }
      high = at;
    }
  }
  const int end = high;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sorted[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && sorted[low] == wanted ? low : -1;
}

/// Returns how many of the ascending numbers are below `bound`.
FSKNN_HD inline int count_below(const std::int32_t* sorted, int count,
                                std::int64_t bound) {
  int low = 0;
  while (low < count) {
    const int middle = (low + count) / 2;
    if (sorted[middle] < bound)
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

}  // namespace cuda
}  // namespace fsknn
