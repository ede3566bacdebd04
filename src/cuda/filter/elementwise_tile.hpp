#pragma once

// Rows for kernels that add differences, in 32-bit words: one float each, or
// several whole numbers.

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

#include "cuda/filter/float_bound.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads computes tiles of rows x columns pairs, `words` of each
/// row at a time. Each thread computes thread_rows x thread_columns of them, 16
/// rows and 16 columns apart.
struct ElementwiseTile {
  static constexpr int rows = 128, columns = 128, words = 32;
  static constexpr int thread_rows = 8, thread_columns = 8;
  static constexpr int across = columns / thread_columns;
  static constexpr int down = rows / thread_rows;
  static constexpr int threads = across * down;
  static constexpr int most_stages = 4;
  static constexpr int stage_bytes = (rows + columns) * words * 4;
  static constexpr int slabs = kFilterBlock / rows;
  static constexpr int column_tiles = kFilterBlock / columns;
};

/// Slots in the filter's form. All pointers are device memory.
struct ElementwiseRows {
  std::uint32_t* rows = nullptr;  ///< [num_slots x words], row-major
  float* room = nullptr;          ///< [num_slots], see RowBounds; 0: padding
  float* slack = nullptr;
  float* sum = nullptr;
  /// For 16-bit whole numbers: the sum of a row's stored ones.
  std::uint32_t* total = nullptr;
  const std::int32_t* block_of = nullptr;  ///< see FilterRows

#ifdef __CUDACC__
  __device__ std::int64_t block(std::int64_t of_slots) const {
    return block_of == nullptr ? of_slots : __ldg(block_of + of_slots);
  }
#endif
};

struct ElementwiseWork : PairJobs {
  ElementwiseRows rows, columns;
  std::int64_t words = 0;  ///< of a row, a multiple of 4
};

/// Returns the slots' arrays, whose values are room, slack, sum and, for 16-bit
/// whole numbers, the total.
inline ElementwiseRows elementwise_rows(const FilterRows& rows) {
  ElementwiseRows to;
  to.rows = static_cast<std::uint32_t*>(rows.rows);
  to.room = rows.values;
  to.slack = rows.values + rows.num_slots;
  to.sum = rows.values + 2 * rows.num_slots;
  to.total = reinterpret_cast<std::uint32_t*>(rows.values + 3 * rows.num_slots);
  to.block_of = rows.block_of;
  return to;
}

inline ElementwiseWork elementwise_work(const FilterWork& work,
                                        std::int64_t words) {
  if (work.jobs.column_blocks != nullptr)
    throw std::logic_error("these kernels compare consecutive blocks");
  ElementwiseWork to;
  static_cast<PairJobs&>(to) = work;
  to.rows = elementwise_rows(work.rows);
  to.columns = elementwise_rows(work.columns);
  to.words = words;
  return to;
}

}  // namespace cuda
}  // namespace fsknn
