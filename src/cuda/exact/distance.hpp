#pragma once

// The distance kernel: one chunk of the distance matrix, each entry the
// contract's double (Arefin 2012, "distance kernel").

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/kinds.hpp"
#include "core/contract/metric.hpp"

namespace fsknn {
namespace cuda {

/// All pointers are device memory. `rows` and `columns` may be read up to the
/// next multiple of kChunkUnit points: padding is rows of zeros.
struct Chunk {
  const double* rows = nullptr;         ///< [num_rows x padded], row-major
  const double* row_sums = nullptr;     ///< [num_rows]
  const double* columns = nullptr;      ///< [num_columns x padded], row-major
  const double* column_sums = nullptr;  ///< [num_columns]
  std::int64_t num_rows = 0, num_columns = 0;
  std::int64_t padded = 0;      ///< features, a multiple of 8
  LastStep undo;                ///< takes off the matrix's scaling
  double* distances = nullptr;  ///< out: [num_rows x stride], row-major
  std::int64_t stride = 0;
  /// out: the transpose, [num_columns x transposed_stride], row-major; null:
  /// not requested.
  double* transposed = nullptr;
  std::int64_t transposed_stride = 0;
  /// Rows and columns are the same: each pair is computed once, and
  /// `transposed` is `distances`. Tiles on the diagonal write some entries
  /// twice, with the same bits.
  bool same = false;

#ifdef __CUDACC__
  __device__ void put(std::int64_t row, std::int64_t column,
                      double distance) const {
    distances[row * stride + column] = distance;
    if (transposed != nullptr)
      transposed[column * transposed_stride + row] = distance;
  }
#endif
};

/// Starts the kernel of a metric on the current device. It writes all entries
/// of the chunk, including the diagonal, and nothing else.
void start_distances(const MetricEntry& metric, const Chunk& chunk,
                     cudaStream_t stream);

/// For metrics of sum min(a, b): each entry is the pair's similarity.
void start_similarities(const MetricEntry& metric, const Chunk& chunk,
                        cudaStream_t stream);

/// For rows of length 1: each entry is the pair's similarity, not its distance.
void start_products(const Chunk& chunk, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
