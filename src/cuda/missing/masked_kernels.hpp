#pragma once

// The kernels for points with missing values on GPUs (product_filter.cu,
// masked_filter.cu, difference_filter.cu, masked_exact.cu), and their
// arguments.
//
// A filter computes five products, or one sum of differences, of each pair of
// rows over their common samples. It drops a pair whose correlation cannot
// reach its row's threshold, or whose distance exceeds it.
// core/contract/masked.hpp computes the remaining pairs in double, and they
// join the row's list. Columns come in rounds, each as large as all before
// together: a row then has about k candidates a round.
//
// The filter uses products of halves on tensor cores. Where these keep too many
// pairs, or the device has no tensor cores, it uses sums in float32.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/kinds.hpp"
#include "core/contract/masked.hpp"
#include "cuda/exact/select.hpp"
#include "cuda/missing/product_bound.hpp"

namespace fsknn {
namespace cuda {

/// The features of the filter's rows are padded to a multiple of this.
static constexpr std::int64_t kMaskedDepth = 16;
/// The same for the filter by products.
static constexpr std::int64_t kProductDepth = 64;

/// Points on the device, by place.
struct MaskedRows {
  const double* rows = nullptr;          ///< [size x padded], core's; NaN:
                                         ///< missing
  const std::uint64_t* masks = nullptr;  ///< [size x words]
  const float* z = nullptr;              ///< [size x depth], centred; NaN:
                                         ///< missing
  const float* errors = nullptr;         ///< [size], of z; differences
  const __half* halves = nullptr;        ///< [size x half_depth]; NaN: missing
  const float4* bounds = nullptr;  ///< [size]: ProductBounds, number of values
  const std::int32_t* ids = nullptr;  ///< [size]
};

/// Some rows against some columns. All pointers are device memory.
struct MaskedWork {
  MaskedRows rows, columns;
  std::int64_t row0 = 0, num_rows = 0;        ///< rows: places row0 on
  std::int64_t column0 = 0, num_columns = 0;  ///< columns: places column0 on
  std::int64_t padded = 0, words = 0, depth = 0, half_depth = 0;
  /// [all rows] the number, from 0, of the point that the row is; -1: none.
  const std::int32_t* own_ids = nullptr;
  MaskedTerms terms;
  Sign sign = Sign::signed_value;
  // The filter's errors: of P - A B / n, and of X - A^2 / n; correlations.
  float error = 0, square_error = 0;
  // Differences: the factor that makes a float32 sum a lower bound; those that
  // convert distances to returned ones, and back; and the filter's unit.
  float shrink = 1;
  PowerOfTwo undo = {1.0, 1.0}, redo = {1.0, 1.0}, unit = {1.0, 1.0};
  // The following are by row from row0 on, [num_rows ..].
  // As a similarity; -inf: none yet. For differences, of the mean over the
  // common samples of |a - b|, or the root of that of (a - b)^2; inf: none.
  float* thresholds = nullptr;
  std::int32_t* counts = nullptr;      ///< candidates; above capacity: overflow
  std::int32_t* candidates = nullptr;  ///< [num_rows x capacity] places
  std::int64_t capacity = 0;
  Lists lists;
  std::int32_t* rest = nullptr;  ///< [1 + num_rows]: scratch of the exact step
  unsigned long long* pairs_exact = nullptr;  ///< one number, added to
};

/// Rows at their places as they were read, with arbitrary padding. They are
/// multiplied by a power of two, the padding becomes NaN, and bits mark the
/// values present.
struct PlacedRows {
  double* rows;  ///< [count x padded]; in and out
  std::int64_t count, num_features, padded, words;
  bool own_scale;        ///< the largest in [1, 2); else:
  PowerOfTwo scale;      ///< the power of two for all
  std::uint64_t* masks;  ///< [count x words]
};
void start_placed_rows(const PlacedRows& work, cudaStream_t stream);

/// Makes the filter's rows: z [count x depth] of rows [count x padded].
void start_masked_rows(const double* rows, std::int64_t count,
                       std::int64_t num_features, std::int64_t padded,
                       std::int64_t depth, float* z, cudaStream_t stream);

/// The same for differences. centre: [num_features], device.
struct DifferenceRows {
  const double* rows;
  std::int64_t count, num_features, padded, depth;
  const double* centre;
  PowerOfTwo by;
  bool squared;
  float* z;
  float* errors;
};
void start_difference_rows(const DifferenceRows& work, cudaStream_t stream);

/// The rows of the filter by products, and their bounds.
struct ProductRows {
  const double* rows;  ///< [count x padded]
  std::int64_t count, num_features, padded, depth;
  const double* centre;  ///< [num_features], device; null: correlations
  PowerOfTwo by;
  double contract;  ///< correlations: rounding_of_sums()
  __half* halves;   ///< [count x depth]
  float4* bounds;   ///< [count]
};
void start_product_rows(const ProductRows& work, cudaStream_t stream);

/// Does what start_masked_filter() does, by products of halves: correlations
/// and squared differences.
void start_product_filter(const MaskedWork& work, cudaStream_t stream);

/// Does what start_masked_filter() does, for differences.
void start_difference_filter(const MaskedWork& work, cudaStream_t stream);

/// Appends the pairs that may be near to their rows' candidates.
void start_masked_filter(const MaskedWork& work, cudaStream_t stream);

/// Computes the candidates' distances in double and merges them into the lists;
/// then clears the candidates and updates the thresholds. For a row that
/// overflowed, it uses all of the work's columns.
void start_masked_exact(const MaskedWork& work, cudaStream_t stream);

/// Writes r of each entry of the lists to `correlations` [num_rows x k].
/// places: of the columns, by id.
void start_masked_correlations(const MaskedWork& work,
                               const std::int32_t* places, double* correlations,
                               cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
