#pragma once

// Rows that are done again in doubles: to one place, and their lists back.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

/// Rows at these places, gathered for the float64 pass, padded with zeros to
/// num_places rows.
struct Gather {
  const double* from = nullptr;            ///< [.. x padded], by place
  const std::int32_t* places = nullptr;    ///< [num_rows]
  const std::int32_t* ids_from = nullptr;  ///< null: no ids are wanted
  double* rows = nullptr;                  ///< out: [num_places x padded]
  std::int32_t* ids = nullptr;             ///< out: [num_rows]
  std::int64_t num_rows = 0, num_places = 0, padded = 0;
};
void start_gather(const Gather& gather, cudaStream_t stream);

/// Row r of `from` becomes the row of `to` that the place's list has.
void start_scatter(const Lists& from, const std::int32_t* places,
                   const std::int32_t* list_rows, std::int64_t num_rows,
                   const Lists& to, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
