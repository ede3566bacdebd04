#include <math_constants.h>

#include "core/contract/masked.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/missing/difference_bound.hpp"
#include "cuda/missing/masked_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// A block computes a tile of rows x columns pairs, a thread 8 x 8 of them:
/// four rows, and four more at a distance of `half`; columns alike.
struct DifferenceTile {
  static constexpr int rows = 128, columns = 128, depth = 16;
  static constexpr int each = 8, half = rows / 2;
  static constexpr int threads = rows / each * (columns / each);
  // With this stride, four features of a point are written to different banks.
  static constexpr int stride = rows + 4;
};
static_assert(DifferenceTile::depth == kMaskedDepth, "whole steps");
static_assert(DifferenceTile::rows == DifferenceTile::columns, "staged alike");
static_assert(DifferenceTile::rows * DifferenceTile::depth ==
                  DifferenceTile::threads * 8,
              "each thread stages eight features of a row and of a column");

using Staged = float[DifferenceTile::depth][DifferenceTile::stride];

/// Eight features of a point, in transfer.
struct Eight {
  float4 first, second;
  __device__ void load(const float* from) {
    first = reinterpret_cast<const float4*>(from)[0];
    second = reinterpret_cast<const float4*>(from)[1];
  }
  __device__ void put(Staged& to, int point, int feature) const {
    to[feature][point] = first.x;
    to[feature + 1][point] = first.y;
    to[feature + 2][point] = first.z;
    to[feature + 3][point] = first.w;
    to[feature + 4][point] = second.x;
    to[feature + 5][point] = second.y;
    to[feature + 6][point] = second.z;
    to[feature + 7][point] = second.w;
  }
};

__device__ inline void take(const float (&from)[DifferenceTile::stride], int at,
                            float (&to)[DifferenceTile::each]) {
  const float4 a = *reinterpret_cast<const float4*>(&from[at]);
  const float4 b =
      *reinterpret_cast<const float4*>(&from[at + DifferenceTile::half]);
  to[0] = a.x;
  to[1] = a.y;
  to[2] = a.z;
  to[3] = a.w;
  to[4] = b.x;
  to[5] = b.y;
  to[6] = b.z;
  to[7] = b.w;
}

/// Returns which of the tile's points is a thread's e-th; `at` is the first.
__device__ inline int point_of(int at, int e) {
  return at + e % 4 + e / 4 * DifferenceTile::half;
}

// The filter of differences: sums in float32 over the common samples, by tiles.
// A missing value is NaN, and so is its difference from any other, which
// fmaxf() turns into 0.
// In and out: see MaskedWork; z and masks of rows and columns, row-major,
// device. Grid: x over tiles of columns, y over tiles of rows. Block:
// DifferenceTile::threads. Shared: 17 KiB, static. The caller guarantees that
// depth is a multiple of kMaskedDepth, and counts below 2^31.
template <bool kSquared>
__global__ void __launch_bounds__(DifferenceTile::threads, 2)
    difference_filter(const MaskedWork w) {
  using T = DifferenceTile;
  __shared__ __align__(16) Staged rows, columns;
  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.y) * T::rows;
  const std::int64_t column0 =
      static_cast<std::int64_t>(blockIdx.x) * T::columns;

  // This thread stages eight features of one row, and of one column.
  const int point = tid % T::rows, feature = tid / T::rows * 8;
  const bool row_there = row0 + point < w.num_rows;
  const bool column_there = column0 + point < w.num_columns;
  const float* from_row =
      w.rows.z + (w.row0 + (row_there ? row0 + point : 0)) * w.depth + feature;
  const float* from_column =
      w.columns.z +
      (w.column0 + (column_there ? column0 + point : 0)) * w.depth + feature;

  const int row = tid / (T::columns / T::each) * 4;
  const int column = tid % (T::columns / T::each) * 4;
  float s[T::each][T::each] = {};
  Eight next_row, next_column;
  next_row.load(from_row);
  next_column.load(from_column);
  for (std::int64_t f = 0; f < w.depth; f += T::depth) {
    __syncthreads();
    next_row.put(rows, point, feature);
    next_column.put(columns, point, feature);
    __syncthreads();
    if (f + T::depth < w.depth) {
      next_row.load(from_row + f + T::depth);
      next_column.load(from_column + f + T::depth);
    }
#pragma unroll 4
    for (int g = 0; g < T::depth; ++g) {
      float x[T::each], y[T::each];
      take(rows[g], row, x);
      take(columns[g], column, y);
#pragma unroll
      for (int i = 0; i < T::each; ++i)
#pragma unroll
        for (int j = 0; j < T::each; ++j) {
          const float t = fmaxf(fabsf(x[i] - y[j]), 0.0f);
          s[i][j] = kSquared ? fmaf(t, t, s[i][j]) : s[i][j] + t;
        }
    }
  }

#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    const std::int64_t at_row = row0 + point_of(row, i);
    if (at_row >= w.num_rows) continue;
    const std::uint64_t* own = w.rows.masks + (w.row0 + at_row) * w.words;
    int known = 0;
    for (std::int64_t word = 0; word < w.words; ++word)
      known += __popcll(own[word]);
    const float threshold = w.thresholds[at_row];
    const float row_error = w.rows.errors[w.row0 + at_row];
#pragma unroll
    for (int j = 0; j < T::each; ++j) {
      const std::int64_t at_column = column0 + point_of(column, j);
      if (at_column >= w.num_columns) continue;
      const float error = row_error + w.columns.errors[w.column0 + at_column];
      // The row's number of values bounds the number of common samples.
      if (!differences_may_be_near<kSquared>(s[i][j], static_cast<float>(known),
                                             threshold, error, w.shrink))
        continue;
      const std::uint64_t* other =
          w.columns.masks + (w.column0 + at_column) * w.words;
      int common = 0;
      for (std::int64_t word = 0; word < w.words; ++word)
        common += __popcll(own[word] & other[word]);
      const float n = static_cast<float>(common);
      if (n < static_cast<float>(w.terms.min_pairs) ||
          !differences_may_be_near<kSquared>(s[i][j], n, threshold, error,
                                             w.shrink))
        continue;
      const std::int32_t at = atomicAdd(&w.counts[at_row], 1);
      if (at < w.capacity)
        w.candidates[at_row * w.capacity + at] =
            static_cast<std::int32_t>(w.column0 + at_column);
    }
  }
}

// Makes the filter's rows: a warp subtracts the columns' centres from a row and
// scales it to the unit, in double (v), then converts it to float (z).
// errors[i] is at least |v - z| plus all other rounding. A row too long for the
// filter becomes zeros with an infinite error. rows: [count x padded], centre:
// [num_features], z: [count x depth], row-major, errors: [count], device. Grid:
// any; block: 256. Shared: none.
template <bool kSquared>
__global__ void difference_rows(const double* rows, std::int64_t count,
                                std::int64_t num_features, std::int64_t padded,
                                std::int64_t depth, const double* centre,
                                PowerOfTwo by, float* z, float* errors) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * 8;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
       i < count; i += step) {
    const double* x = rows + i * padded;
    double length = 0.0, lost = 0.0;
    for (std::int64_t f = lane; f < num_features; f += 32) {
      if (!has_value(x[f])) continue;
      const double v = ((x[f] - centre[f]) * by.first) * by.second;
      const double off = v - static_cast<double>(static_cast<float>(v));
      length += kSquared ? v * v : fabs(v);
      lost += kSquared ? off * off : fabs(off);
    }
    length = warp_sum(length);
    lost = warp_sum(lost);
    if (kSquared) {
      length = sqrt(length);
      lost = sqrt(lost);
    }
    // This is false for NaN.
    const bool is_short = length <= kLongestDifferences;
    for (std::int64_t f = lane; f < depth; f += 32) {
      const bool there = f < num_features && has_value(x[f]);
      z[i * depth + f] =
          !there ? CUDART_NAN_F
                 : (is_short ? static_cast<float>(
                                   ((x[f] - centre[f]) * by.first) * by.second)
                             : 0.0f);
    }
    if (lane == 0) errors[i] = difference_error<kSquared>(lost, length, depth);
  }
}

}  // namespace

void start_difference_rows(const DifferenceRows& work, cudaStream_t stream) {
  const auto start = [&](auto kernel) {
    kernel<<<1024, 256, 0, stream>>>(work.rows, work.count, work.num_features,
                                     work.padded, work.depth, work.centre,
                                     work.by, work.z, work.errors);
  };
  if (work.squared)
    start(difference_rows<true>);
  else
    start(difference_rows<false>);
  CUDA_CHECK(cudaGetLastError());
}

void start_difference_filter(const MaskedWork& work, cudaStream_t stream) {
  using T = DifferenceTile;
  const dim3 grid(
      static_cast<unsigned>((work.num_columns + T::columns - 1) / T::columns),
      static_cast<unsigned>((work.num_rows + T::rows - 1) / T::rows));
  if (work.terms.accumulation == Accumulation::squared_difference)
    difference_filter<true><<<grid, T::threads, 0, stream>>>(work);
  else
    difference_filter<false><<<grid, T::threads, 0, stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
