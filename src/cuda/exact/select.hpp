#pragma once

// The selection kernel: keeps the k nearest of each row of a split over its
// chunks (Arefin 2012, "kNN kernel"), by (distance, index).

#include <cuda_runtime.h>

#include <cstdint>

namespace fsknn {
namespace cuda {

/// The neighbours of a split's rows so far, each row's k places sorted by
/// (distance, index). Empty places at the end hold infinity and kNoPoint.
struct Lists {
  double* distance = nullptr;  ///< device, [num_rows x k], row-major
  std::int32_t* index =
      nullptr;  ///< device, the same; the user's numbers from 0
  std::int64_t k = 0;
};

/// An index that no point can have.
static constexpr std::int32_t kNoPoint = 0x7fffffff;

/// A chunk of distances to select from. All pointers are device memory.
struct Selection {
  const double* distances = nullptr;  ///< [num_rows x stride], row-major
  std::int64_t stride = 0;
  std::int64_t num_rows = 0, num_columns = 0;
  const std::int32_t* column_ids = nullptr;  ///< [num_columns], from 0
  /// Row r and column r + self are the same point, which is not its own
  /// neighbour. A number below -num_rows means that there are no such pairs.
  std::int64_t self = 0;
  /// [num_rows] the rows' own numbers, excluded from their neighbours, where
  /// rows and columns are in different orders; otherwise null.
  const std::int32_t* own_ids = nullptr;
  Lists lists;
};

/// Empties lists of num_rows rows.
void start_clear(const Lists& lists, std::int64_t num_rows,
                 cudaStream_t stream);

/// Offers every pair of the chunk to its row's list. The result is the same for
/// any order of chunks.
void start_selection(const Selection& selection, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
