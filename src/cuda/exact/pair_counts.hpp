#pragma once

// Counts the pairs of a chunk whose value is in each of several bins.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "core/contract/metric.hpp"
#include "cuda/exact/distance.hpp"

namespace fsknn {
namespace cuda {

/// Counts pairs with row < column, by places. All pointers are device memory.
struct PairsToCount {
  /// Holds products for rows of length 1, otherwise the counted values.
  Chunk chunk;
  std::int64_t row0 = 0, column0 = 0;  ///< places of the chunk's first
  const double* breaks = nullptr;      ///< [num_breaks], as PairBins has them
  std::int64_t num_breaks = 0;
  bool similarity = false;               ///< the value counted, for products
  unsigned long long* counts = nullptr;  ///< [num_breaks + 1], added to
  /// [2] the least and the largest value, as order_key_of() encodes them;
  /// updated.
  unsigned long long* extremes = nullptr;
  /// Set if a distance is out of range.
  std::int32_t* beyond = nullptr;
};
void start_counting_pairs(const MetricEntry& metric, const PairsToCount& step,
                          cudaStream_t stream);

/// Maps doubles to whole numbers in the same order.
FSKNN_HD inline unsigned long long order_key_of(double x) {
  unsigned long long bits;
  memcpy(&bits, &x, sizeof bits);
  constexpr unsigned long long sign = 1ull << 63;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}
FSKNN_HD inline double value_of_key(unsigned long long key) {
  constexpr unsigned long long sign = 1ull << 63;
  const unsigned long long bits = (key & sign) != 0 ? key ^ sign : ~key;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace cuda
}  // namespace fsknn
