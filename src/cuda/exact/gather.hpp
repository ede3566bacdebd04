#pragma once

// Gathers some of the points in one array, and scatters their lists back.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

/// Points at some places, in sequence, then rows of zeros up to num_places. All
/// pointers are device memory.
struct GatheredPoints {
  const double* from = nullptr;            ///< [.. x padded], by place
  const double* from_sums = nullptr;       ///< by place
  const std::int32_t* from_ids = nullptr;  ///< by place
  const std::int32_t* places = nullptr;    ///< [num_rows]
  double* rows = nullptr;                  ///< out: [num_places x padded]
  double* sums = nullptr;                  ///< out: [num_rows]
  std::int32_t* ids = nullptr;  ///< out: [num_rows]; null: not wanted
  std::int64_t num_rows = 0, num_places = 0, padded = 0;
};
void start_gathering(const GatheredPoints& points, cudaStream_t stream);

/// Copies row r of `from` to the row of `to` that belongs to the place's list.
void start_scatter(const Lists& from, const std::int32_t* places,
                   const std::int32_t* list_rows, std::int64_t num_rows,
                   const Lists& to, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
