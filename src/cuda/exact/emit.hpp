#pragma once

// Stage "emit" on the device: a piece of the lists, in the order in which the
// answer holds it.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/numbers.hpp"
#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

/// A piece. Turned: ranks rank0 .. of rows row0 .., each rank's entries
/// together, as a column-major matrix has them. Else entries first_entry .. of
/// the lists as they stand. All pointers are device memory.
struct Slice {
  Lists lists;
  bool turned = true;
  std::int64_t row0 = 0, num_rows = 0;
  Rank rank0 = {0};
  std::int64_t num_ranks = 0;
  std::int64_t first_entry = 0;
  std::int64_t size = 0;          ///< entries
  double* distance = nullptr;     ///< out: [size]; turned only
  std::int32_t* index = nullptr;  ///< the same
  double* correlation = nullptr;  ///< out: [size]
};

/// What the signed correlation of prepared rows is made from. All pointers are
/// device memory.
struct CorrelationOf {
  const double* rows = nullptr;      ///< [.. x padded]
  const double* row_sums = nullptr;  ///< [..], what prepare_row() returned
  /// Which of `rows` each list's is; null: in their order.
  const std::int32_t* row_places = nullptr;
  const double* columns = nullptr;       ///< [.. x padded], by place
  const double* column_sums = nullptr;   ///< [..]
  const std::int32_t* places = nullptr;  ///< where point i stands; null: at i
  std::int64_t padded = 0;
  /// [lists' rows x k] correlations that were made with the lists; null: they
  /// are made now.
  const double* given = nullptr;
};

/// Turned slices only.
void start_slice(const Slice& slice, cudaStream_t stream);

/// After start_slice(), where the slice is turned. Places that are empty get 0.
void start_correlations(const Slice& slice, const CorrelationOf& from,
                        cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
