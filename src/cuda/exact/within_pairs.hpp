#pragma once

// The exact step of a search for all pairs within a distance: selects them from
// the candidates.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "core/contract/metric.hpp"
#include "cuda/exact/candidate_pairs.hpp"

namespace fsknn {
namespace cuda {

/// A pair by places. value: the product for rows of length 1, otherwise the
/// distance.
struct FoundPair {
  std::int32_t row, column;
  double value;
};

/// The limits, and the pairs found within them. All pointers are device memory.
struct PairsWithin {
  const double* limits = nullptr;  ///< by row place
  /// By column place: a pair within the limit of either point counts. Null:
  /// only the rows' limits count.
  const double* column_limits = nullptr;
  FoundPair* found = nullptr;  ///< out: [capacity], in any order
  std::int32_t capacity = 0;
  std::int32_t* count = nullptr;  ///< in: 0; out: may exceed the capacity

#ifdef __CUDACC__
  __device__ double column_limit(std::int32_t column) const {
    return column_limits == nullptr ? -HUGE_VAL : column_limits[column];
  }
  /// Appends the pairs of a warp that are within their limits. All its threads
  /// call this; there: the thread has a pair.
  __device__ void append(bool there, const FoundPair& pair, double distance,
                         double column_limit) const {
    const bool within =
        there && distance <= fmax(limits[pair.row], column_limit);
    const unsigned finders = __ballot_sync(0xffffffffu, within);
    if (finders == 0) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    std::int32_t first = 0;
    if (lane == 0) first = atomicAdd(count, __popc(finders));
    const std::int32_t at = __shfl_sync(0xffffffffu, first, 0) +
                            __popc(finders & ((1u << lane) - 1));
    if (within && at < capacity) found[at] = pair;
  }
#endif
};

/// Some candidates. All pointers are device memory.
struct PairsToRerank {
  const SlotPair* pairs = nullptr;  ///< [count]
  std::int64_t count = 0;
  const std::int32_t* row_places = nullptr;     ///< by slot
  const std::int32_t* column_places = nullptr;  ///< by slot
  const double* rows = nullptr;                 ///< [.. x padded], by row place
  const double* row_sums = nullptr;             ///< by row place
  const double* columns = nullptr;      ///< [.. x padded], by column place
  const double* column_sums = nullptr;  ///< by column place
  std::int64_t padded = 0;
  LastStep undo;       ///< takes off the matrix's scaling
  PairsWithin within;  ///< with room for all
};
void start_reranking_pairs(const MetricEntry& metric, const PairsToRerank& step,
                           cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
