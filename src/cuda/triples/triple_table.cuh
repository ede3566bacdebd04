#pragma once

// Tables of three loci on a device.

#include <cstdint>

#include "cuda/triples/triple_kernels.hpp"

namespace fsknn {
namespace cuda {

/// The sum of products of two points.
__device__ inline float sum_of_pair(const TriplePoints& points, std::int64_t a,
                                    std::int64_t b) {
  return __ldg(points.pair_sums + a * points.count + b);
}

/// The contract's similarity of three points (AlleleTable). sum: of the
/// products of all three.
__device__ inline double similarity_of_table(const TriplePoints& points,
                                             int sum, std::int64_t a,
                                             std::int64_t b, std::int64_t c) {
  const auto pair = [&](std::int64_t x, std::int64_t y) {
    return static_cast<double>(sum_of_pair(points, x, y));
  };
  const ThreeSums sums = {
      static_cast<double>(sum), pair(a, b),     pair(a, c),    pair(b, c),
      points.sums[a],           points.sums[b], points.sums[c]};
  int which;
  return AlleleTable::similarity_of_three(sums, points.table, which);
}

/// The largest entry in floats, as the CPU's kernels compute it. with_row: of
/// row and column, as TripleTableColumn::with_apex.
__device__ inline float entry_of_three(const TripleTableRow& row,
                                       const TripleTableColumn& column,
                                       float with_row, float sum) {
  const float counted_row = with_row - sum;
  const float with[4] = {column.without - counted_row, counted_row,
                         column.with_apex - sum, sum};
  float counted = 0.0f, other = 0.0f;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    counted = fmaxf(counted, with[q] * row.weight[q]);
    other = fmaxf(other, (row.pair[q] - with[q]) * row.weight[q]);
  }
  return fmaxf(counted * column.weight, other * (2.0f - column.weight));
}

}  // namespace cuda
}  // namespace fsknn
