#pragma once

// How many pairs of a chunk have a value in each of some bins.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "core/contract/metric.hpp"
#include "cuda/exact/distance.hpp"

namespace fsknn {
namespace cuda {

/// Pairs of row < column, by places, are counted. All pointers are device
/// memory.
struct PairsToCount {
  /// Of products of rows of length 1, else of what is counted.
  Chunk chunk;
  std::int64_t row0 = 0, column0 = 0;  ///< places of the chunk's first
  const double* breaks = nullptr;      ///< [num_breaks], as PairBins has them
  std::int64_t num_breaks = 0;
  bool similarity = false;               ///< what is counted of products
  unsigned long long* counts = nullptr;  ///< [num_breaks + 1], added to
  /// [2] the least and the largest value, as order_key_of() has them; lowered
  /// and raised.
  unsigned long long* extremes = nullptr;
  /// Set where a distance is beyond range.
  std::int32_t* beyond = nullptr;
};
void start_counting_pairs(const MetricEntry& metric, const PairsToCount& step,
                          cudaStream_t stream);

/// Whole numbers in the order of the doubles.
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
