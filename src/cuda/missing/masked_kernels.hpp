#pragma once

// Points with missing values on GPUs: the kernels (product_filter.cu,
// masked_filter.cu, difference_filter.cu, masked_exact.cu), and what they are
// told.
//
// A filter makes five products of each pair of rows, over the samples that both
// have, or one sum of differences, and drops a pair whose correlation cannot
// reach its row's threshold, or whose distance is beyond it; what it keeps is
// done by core/contract/masked.hpp in double and joins the row's list. Columns
// are met in rounds, each as large as all before: a row has about k candidates
// a round.
//
// The filter is made of products of halves by tensor cores, or, where these
// keep too many or a device has none, of sums in float32.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/kinds.hpp"
#include "core/contract/masked.hpp"
#include "cuda/exact/select.hpp"
#include "cuda/missing/product_bound.hpp"

namespace fsknn {
namespace cuda {

/// Features of the filter's rows are padded to whole steps of this.
static constexpr std::int64_t kMaskedDepth = 16;
/// Those of the filter by products.
static constexpr std::int64_t kProductDepth = 64;

/// Points on the device, by place.
struct MaskedRows {
  const double* rows = nullptr;          ///< [size x padded], core's; NaN: none
  const std::uint64_t* masks = nullptr;  ///< [size x words]
  const float* z = nullptr;              ///< [size x depth], centred; NaN: none
  const float* errors = nullptr;         ///< [size], of z; differences
  const __half* halves = nullptr;        ///< [size x half_depth]; NaN: none
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
  // Differences: what a sum in float32 is multiplied by to be no larger than
  // the true one; distances to what is returned, and back; into the filter's
  // unit.
  float shrink = 1;
  PowerOfTwo undo = {1.0, 1.0}, redo = {1.0, 1.0}, unit = {1.0, 1.0};
  // From here on by row from row0 on, [num_rows ..].
  /// In similarity; -inf: none yet. Of differences: of the mean over the
  /// samples in common of |a - b|, or the root of that of (a - b)^2; inf: none.
  float* thresholds = nullptr;
  std::int32_t* counts = nullptr;      ///< candidates; above capacity: overflow
  std::int32_t* candidates = nullptr;  ///< [num_rows x capacity] places
  std::int64_t capacity = 0;
  Lists lists;
  std::int32_t* rest = nullptr;  ///< [1 + num_rows]: scratch of the exact step
  unsigned long long* pairs_exact = nullptr;  ///< one number, added to
};

/// Rows that stand at their places as they were read, the padding any: times a
/// power of two, NaN in the padding, and what they have in bits.
struct PlacedRows {
  double* rows;  ///< [count x padded]; in and out
  std::int64_t count, num_features, padded, words;
  bool own_scale;        ///< the largest in [1, 2); else:
  PowerOfTwo scale;      ///< that of all
  std::uint64_t* masks;  ///< [count x words]
};
void start_placed_rows(const PlacedRows& work, cudaStream_t stream);

/// The filter's rows: z [count x depth] of rows [count x padded].
void start_masked_rows(const double* rows, std::int64_t count,
                       std::int64_t num_features, std::int64_t padded,
                       std::int64_t depth, float* z, cudaStream_t stream);

/// The same of differences. centre: [num_features], device.
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

/// As start_masked_filter(), by products of halves: correlations and squared
/// differences.
void start_product_filter(const MaskedWork& work, cudaStream_t stream);

/// As start_masked_filter(), of differences.
void start_difference_filter(const MaskedWork& work, cudaStream_t stream);

/// Appends the pairs that may be near to their rows' candidates.
void start_masked_filter(const MaskedWork& work, cudaStream_t stream);

/// The candidates' distances, in double, to the lists; then no candidates, and
/// the new thresholds. Of a row that overflowed, all of the work's columns.
void start_masked_exact(const MaskedWork& work, cudaStream_t stream);

/// r of each entry of the lists to `correlations` [num_rows x k]. places: of
/// the columns, by id.
void start_masked_correlations(const MaskedWork& work,
                               const std::int32_t* places, double* correlations,
                               cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
