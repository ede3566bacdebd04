#pragma once

// The stage "emit" on the device: arranges a piece of the lists in the order of
// the answer.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/numbers.hpp"
#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

/// One piece. Transposed: ranks rank0 .. of rows row0 .., with each rank's
/// entries together, as in a column-major matrix. Otherwise entries first_entry
/// .. of the lists in their own order. All pointers are device memory.
struct Slice {
  Lists lists;
  bool transposed = true;
  std::int64_t row0 = 0, num_rows = 0;
  Rank rank0 = {0};
  std::int64_t num_ranks = 0;
  std::int64_t first_entry = 0;
  std::int64_t size = 0;          ///< entries
  double* distance = nullptr;     ///< out: [size]; only where transposed
  std::int32_t* index = nullptr;  ///< the same
  double* correlation = nullptr;  ///< out: [size]
};

/// The inputs of the signed correlation of prepared rows. All pointers are
/// device memory.
struct CorrelationOf {
  const double* rows = nullptr;      ///< [.. x padded]
  const double* row_sums = nullptr;  ///< [..], what prepare_row() returned
  /// By list: its row of `rows`; null: in order.
  const std::int32_t* row_places = nullptr;
  const double* columns = nullptr;       ///< [.. x padded], by place
  const double* column_sums = nullptr;   ///< [..]
  const std::int32_t* places = nullptr;  ///< the row of point i; null: i
  std::int64_t padded = 0;
  /// [lists' rows x k] correlations that were computed with the lists; null:
  /// they are computed now.
  const double* given = nullptr;
};

/// Writes the distances and indices of a transposed slice.
void start_slice(const Slice& slice, cudaStream_t stream);

/// Computes correlations. It must follow start_slice() if the slice is
/// transposed. Empty places get 0.
void start_correlations(const Slice& slice, const CorrelationOf& from,
                        cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
