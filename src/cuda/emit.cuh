#pragma once

// Stage "emit" on the device: some ranks of a split's lists, turned so that each
// rank's entries stand together, as the answer's columns do.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/select.cuh"

namespace fsknn {
namespace cuda {

/// All pointers are device memory.
struct Slice {
  Lists lists;
  std::int64_t num_rows = 0;
  std::int64_t rank0 = 0, num_ranks = 0;
  double* distance = nullptr;     ///< out: [num_ranks x num_rows], row-major
  std::int32_t* index = nullptr;  ///< out: the same
};

/// What the signed correlation of rows that are prepared to length 1 is made
/// from. All pointers are device memory.
struct CorrelationOf {
  const double* rows = nullptr;          ///< [num_rows x padded], the split's
  /// [num_rows] which of `rows` each list's is; null: in their order.
  const std::int32_t* row_places = nullptr;
  const double* columns = nullptr;       ///< [.. x padded], by place
  const std::int32_t* places = nullptr;  ///< where point i stands
  std::int64_t padded = 0;
  /// [lists' rows x k] correlations that were made with the lists; null: they
  /// are made now.
  const double* given = nullptr;
  double* correlation = nullptr;         ///< out: as Slice's
};

void start_slice(const Slice& slice, cudaStream_t stream);

/// After start_slice() of the same slice. Every list must be full.
void start_correlations(const Slice& slice, const CorrelationOf& from,
                        cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
