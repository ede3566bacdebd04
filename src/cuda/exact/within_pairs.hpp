#pragma once

// The exact step of a search for all pairs within a distance: selects them from
// the candidates.

#include <cuda_runtime.h>

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
  PowerOfTwo undo = {1.0, 1.0};    ///< takes off the matrix's scaling
  const double* limits = nullptr;  ///< by row place
  /// By column place: a pair within the limit of either point counts. Null:
  /// only the rows' limits count.
  const double* column_limits = nullptr;
  FoundPair* found = nullptr;         ///< out: room for all, in any order
  std::int32_t* num_found = nullptr;  ///< in: 0; out
};
void start_reranking_pairs(const MetricEntry& metric, const PairsToRerank& step,
                           cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
