#pragma once

// Stage "filter" for metrics that no matrix product gives: Manhattan, Chebyshev
// and Proportional Similarity by a matrix product's tiles whose multiply is
// another operation ("mGEMM", Joubert et al. 2018), in float32, against the
// thresholds of both of a pair's rows. Runs on any device. float_filter.cu has
// the filter itself and its rows, float_pairs.cu the pairs.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "core/metrics.hpp"
#include "cuda/filter/float_bound.hpp"
#include "cuda/filter/pair_filter.cuh"
#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads makes tiles of rows x columns pairs, `depth` features at
/// a time; each thread thread_rows x thread_columns of them, 16 rows and 16
/// columns apart.
struct ElementwiseTile {
  static constexpr int rows = 128, columns = 128, depth = 32;
  static constexpr int thread_rows = 8, thread_columns = 8;
  static constexpr int across = columns / thread_columns;
  static constexpr int down = rows / thread_rows;
  static constexpr int threads = across * down;
  static constexpr int most_stages = 4;
  static constexpr int stage_bytes = (rows + columns) * depth * 4;
  static constexpr int slabs = kFilterBlock / rows;
  static constexpr int column_tiles = kFilterBlock / columns;
};

/// Slots in the filter's form. All pointers are device memory.
struct ElementwiseRows {
  float* rows = nullptr;  ///< [num_slots x depth], row-major
  float* room = nullptr;  ///< [num_slots], see RowBounds; 0: padding
  float* slack = nullptr;
  float* sum = nullptr;
  const std::int32_t* block_of = nullptr;  ///< see FilterRows

  __device__ std::int64_t block(std::int64_t of_slots) const {
    return block_of == nullptr ? of_slots : __ldg(block_of + of_slots);
  }
};

struct ElementwiseWork {
  ElementwiseRows rows, columns;
  std::int64_t depth = 0;  ///< features, a multiple of 8
  CandidateLists lists;
  CandidatePairs pairs;  ///< see FilterWork
  FilterJobs jobs;
};

/// Row r of `from` becomes slot slots[r] of `to` (-1: of none).
void start_elementwise_rows(const ElementwiseRule& rule, const double* centre,
                            const PreparedRows& from, std::int64_t count,
                            const std::int32_t* slots,
                            const ElementwiseRows& to, cudaStream_t stream);

void start_elementwise_pairs(const ElementwiseRule& rule,
                             const ElementwiseWork& work, cudaStream_t stream);

std::unique_ptr<PairFilter> make_elementwise_filter(const MetricEntry& metric,
                                                    const RowsInForm& rows);

}  // namespace cuda
}  // namespace fsknn
