#pragma once

// Some of the points brought to one place, and their lists back.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

/// Points at some places, one after the other, and rows of zeros to num_places.
/// All pointers are device memory.
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

/// Row r of `from` becomes the row of `to` that the place's list has.
void start_scatter(const Lists& from, const std::int32_t* places,
                   const std::int32_t* list_rows, std::int64_t num_rows,
                   const Lists& to, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
