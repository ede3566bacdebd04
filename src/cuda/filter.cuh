#pragma once

// The filter for the dot metrics of rows of length 1: pairs' similarities by
// tensor cores from rows in half precision, against the thresholds of both of a
// pair's rows. Each unordered pair of blocks is met once.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include <memory>

#include "core/metrics.hpp"
#include "cuda/pair_filter.cuh"
#include "cuda/plan.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads makes tiles of rows x columns pairs, `depth` features at
/// a time.
struct FilterTile {
  static constexpr int rows = 128, columns = kFilterBlock, depth = kFilterDepth;
  static constexpr int threads = 256;
  static constexpr int most_stages = 4;
  static constexpr int stage_bytes = (rows + columns) * depth * 2;
  static constexpr int slabs = columns / rows;  ///< tiles down a block of slots
};

/// Rows of length 1 are multiplied by this before they are rounded, so that an
/// entry's rounding stays relative down to 2^-28; products by its square.
static constexpr double kHalfScale = 0x1p14;
static constexpr double kSimilarityScale = kHalfScale * kHalfScale;

/// Rows in the filter's form. All pointers are device memory.
struct HalfRows {
  __half* rows = nullptr;  ///< [num_slots x depth], row-major, zeros beyond d
  std::int64_t depth = 0;  ///< features, a multiple of FilterTile::depth
};

/// The largest length of a row, and of what rounding changed in a row, each in
/// units of 1 and not below what it is; one number, device memory.
struct RowErrors {
  double* length = nullptr;
  double* rounding = nullptr;
};

/// Rounds prepared row r to half precision, as slot slots[r]. errors must hold
/// zeros before the first rows.
void start_half_rows(const PreparedRows& from, std::int64_t count,
                     const std::int32_t* slots, const HalfRows& to,
                     const RowErrors& errors, cudaStream_t stream);

/// e, the filter's error, for rows whose errors are these: no more than
/// |filtered similarity - (1 - returned distance)|, in units of 1.
double filter_error(double length, double rounding, std::int64_t depth,
                    std::int64_t padded);

/// Whether the current device can run the filter.
bool has_half_products(int device);

std::unique_ptr<PairFilter> make_half_filter(const MetricEntry& metric,
                                             std::int64_t num_features);

}  // namespace cuda
}  // namespace fsknn
