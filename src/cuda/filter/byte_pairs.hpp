#pragma once

// The filter for rows of length 1 by products of bytes on tensor cores.
// byte_filter.cpp has the filter itself, byte_rows.cu its rows, byte_bound.hpp
// their bound, byte_pairs.cu the pairs.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "core/contract/metric.hpp"
#include "cuda/filter/byte_bound.hpp"
#include "cuda/filter/byte_tile.hpp"
#include "cuda/filter/pair_filter.hpp"

namespace fsknn {
namespace cuda {

std::unique_ptr<PairFilter> make_byte_filter(const MetricEntry& metric,
                                             const RowsInForm& rows);

/// Computes the largest magnitude of each of the sample's first rows after
/// rotation: [rows], device memory.
void start_largest_entries(const PreparedRows& sample, std::int64_t rows,
                           const Rotation& rotation, double* largest,
                           cudaStream_t stream);
/// Computes the products of its first rows with its first points: [rows x
/// points], device memory.
void start_sample_products(const PreparedRows& sample, std::int64_t rows,
                           std::int64_t points, double* products,
                           cudaStream_t stream);

/// Rotates prepared rows of length 1 and rounds them to bytes, row r as slot
/// slots[r] (-1: none).
struct ByteForms {
  ByteRule rule;
  Sign sign = Sign::signed_value;
  ByteRows rows, columns;
  float* slack = nullptr;           ///< [slots]
  float* there = nullptr;           ///< [slots]
  double* largest_share = nullptr;  ///< one number, over all rows so far
};
void start_byte_rows(const PreparedRows& from, std::int64_t count,
                     const std::int32_t* slots, const ByteForms& to,
                     cudaStream_t stream);

void start_byte_filter(Sign sign, const ByteWork& work, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
