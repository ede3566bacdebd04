#include <math_constants.h>

#include "core/contract/masked.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/missing/masked_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// A block computes a tile of rows x columns pairs, a thread 4 x 4 of them.
struct MaskedTile {
  static constexpr int rows = 64, columns = 64, depth = 16;
  static constexpr int each = 4;
  static constexpr int threads = rows / each * (columns / each);
  // With this stride, four features of a point are written to different banks.
  static constexpr int stride = rows + 4;
};
static_assert(MaskedTile::depth == kMaskedDepth, "whole steps");
static_assert(MaskedTile::rows == MaskedTile::columns, "staged alike");
static_assert(MaskedTile::rows * MaskedTile::depth == MaskedTile::threads * 4,
              "each thread stages four features of a row and of a column");

/// The staged features of one side: values (0 where missing), and whether they
/// are present.
struct Staged {
  float value[MaskedTile::depth][MaskedTile::stride];
  float mask[MaskedTile::depth][MaskedTile::stride];
};

__device__ inline void put(Staged& to, int point, int feature,
                           const float4& z) {
  const float values[4] = {z.x, z.y, z.z, z.w};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const bool there = values[e] == values[e];
    to.value[feature + e][point] = there ? values[e] : 0.0f;
    to.mask[feature + e][point] = there ? 1.0f : 0.0f;
  }
}

__device__ inline void take(const float (&from)[MaskedTile::stride], int at,
                            float (&to)[MaskedTile::each]) {
  const float4 v = *reinterpret_cast<const float4*>(&from[at]);
  to[0] = v.x;
  to[1] = v.y;
  to[2] = v.z;
  to[3] = v.w;
}

/// The five sums of a thread's pairs (cpu/missing/masked_filter.hpp has the
/// formula).
struct Products {
  float p[MaskedTile::each][MaskedTile::each];
  float a[MaskedTile::each][MaskedTile::each];
  float b[MaskedTile::each][MaskedTile::each];
  float x[MaskedTile::each][MaskedTile::each];
  float y[MaskedTile::each][MaskedTile::each];
};

__device__ inline void add_features(const Staged& rows, const Staged& columns,
                                    int row, int column, Products& s) {
  using T = MaskedTile;
#pragma unroll 4
  for (int f = 0; f < T::depth; ++f) {
    float x[T::each], mx[T::each], y[T::each], my[T::each];
    take(rows.value[f], row, x);
    take(rows.mask[f], row, mx);
    take(columns.value[f], column, y);
    take(columns.mask[f], column, my);
    float xx[T::each], yy[T::each];
#pragma unroll
    for (int i = 0; i < T::each; ++i) {
      xx[i] = x[i] * x[i];
      yy[i] = y[i] * y[i];
    }
#pragma unroll
    for (int i = 0; i < T::each; ++i)
#pragma unroll
      for (int j = 0; j < T::each; ++j) {
        s.p[i][j] = fmaf(x[i], y[j], s.p[i][j]);
        s.a[i][j] = fmaf(x[i], my[j], s.a[i][j]);
        s.x[i][j] = fmaf(xx[i], my[j], s.x[i][j]);
        s.b[i][j] = fmaf(y[j], mx[i], s.b[i][j]);
        s.y[i][j] = fmaf(yy[j], mx[i], s.y[i][j]);
      }
  }
}

/// Returns whether the pair's similarity may reach the threshold. n: common
/// samples.
__device__ inline bool may_be_near(const MaskedWork& w, float p, float a,
                                   float b, float x, float y, float n,
                                   float threshold) {
  if (!(threshold > 0.0f)) return true;
  const float xx = x - a * a / n - w.square_error;
  const float yy = y - b * b / n - w.square_error;
  if (!(xx > 0.0f) || !(yy > 0.0f)) return true;  // there is no bound
  float similarity = p - a * b / n;
  if (w.sign == Sign::absolute) similarity = fabsf(similarity);
  if (w.sign == Sign::negative) similarity = -similarity;
  return similarity + w.error >= threshold * sqrtf(xx * yy) * (1.0f - 1e-6f);
}

// The filter: five float32 products over the common samples, by tiles. In and
// out: see MaskedWork; z and masks of rows and columns, row-major, device.
// Grid: x over tiles of columns, y over tiles of rows. Block:
// MaskedTile::threads. Shared: 17 KiB, static. The caller guarantees that depth
// is a multiple of kMaskedDepth, and counts below 2^31.
__global__ void __launch_bounds__(MaskedTile::threads)
    masked_filter(const MaskedWork w) {
  using T = MaskedTile;
  __shared__ __align__(16) Staged rows, columns;
  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.y) * T::rows;
  const std::int64_t column0 =
      static_cast<std::int64_t>(blockIdx.x) * T::columns;

  // This thread stages four features of one row, and of one column.
  const int point = tid / 4, feature = tid % 4 * 4;
  const bool row_there = row0 + point < w.num_rows;
  const bool column_there = column0 + point < w.num_columns;
  const float* from_row =
      w.rows.z + (w.row0 + (row_there ? row0 + point : 0)) * w.depth + feature;
  const float* from_column =
      w.columns.z +
      (w.column0 + (column_there ? column0 + point : 0)) * w.depth + feature;

  const int row = tid / (T::columns / T::each) * T::each;
  const int column = tid % (T::columns / T::each) * T::each;
  Products s = {};
  float4 next_row = *reinterpret_cast<const float4*>(from_row);
  float4 next_column = *reinterpret_cast<const float4*>(from_column);
  for (std::int64_t f = 0; f < w.depth; f += T::depth) {
    __syncthreads();
    put(rows, point, feature, next_row);
    put(columns, point, feature, next_column);
    __syncthreads();
    if (f + T::depth < w.depth) {
      next_row = *reinterpret_cast<const float4*>(from_row + f + T::depth);
      next_column =
          *reinterpret_cast<const float4*>(from_column + f + T::depth);
    }
    add_features(rows, columns, row, column, s);
  }

  int common[T::each][T::each] = {};
  const std::int64_t i0 = row0 + row, j0 = column0 + column;
  for (std::int64_t word = 0; word < w.words; ++word) {
    std::uint64_t a[T::each], b[T::each];
#pragma unroll
    for (int i = 0; i < T::each; ++i) {
      a[i] = i0 + i < w.num_rows
                 ? w.rows.masks[(w.row0 + i0 + i) * w.words + word]
                 : 0;
      b[i] = j0 + i < w.num_columns
                 ? w.columns.masks[(w.column0 + j0 + i) * w.words + word]
                 : 0;
    }
#pragma unroll
    for (int i = 0; i < T::each; ++i)
#pragma unroll
      for (int j = 0; j < T::each; ++j) common[i][j] += __popcll(a[i] & b[j]);
  }
#pragma unroll
  for (int i = 0; i < T::each; ++i) {
    if (i0 + i >= w.num_rows) break;
    const float threshold = w.thresholds[i0 + i];
#pragma unroll
    for (int j = 0; j < T::each; ++j) {
      // Beyond the columns' end there are no common bits.
      const float n = static_cast<float>(common[i][j]);
      if (n < static_cast<float>(w.terms.min_pairs) ||
          !may_be_near(w, s.p[i][j], s.a[i][j], s.b[i][j], s.x[i][j], s.y[i][j],
                       n, threshold))
        continue;
      const std::int32_t at = atomicAdd(&w.counts[i0 + i], 1);
      if (at < w.capacity)
        w.candidates[(i0 + i) * w.capacity + at] =
            static_cast<std::int32_t>(w.column0 + j0 + j);
    }
  }
}

// Makes the filter's rows: a warp centres a row and scales it to length about
// 1. The bound requires of z only that it is an affine image of the row up to
// two roundings, and of length at most 1 + 2^-20. A row that does not vary
// becomes zeros. rows: [count x padded], z: [count x depth], row-major, device.
// Grid: any; block: 256. Shared: none.
__global__ void masked_rows(const double* rows, std::int64_t count,
                            std::int64_t num_features, std::int64_t padded,
                            std::int64_t depth, float* z) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * 8;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
       i < count; i += step) {
    const double* x = rows + i * padded;
    double known = 0.0, sum = 0.0, square = 0.0;
    for (std::int64_t f = lane; f < num_features; f += 32)
      if (has_value(x[f])) {
        known += 1.0;
        sum += x[f];
      }
    const double mean = warp_sum(sum) / warp_sum(known);
    for (std::int64_t f = lane; f < num_features; f += 32)
      if (has_value(x[f])) square += (x[f] - mean) * (x[f] - mean);
    const double length = sqrt(warp_sum(square));
    // A row whose squares overflow becomes zeros, too, so that all its pairs
    // pass.
    const bool varies = length > 0.0 && length < HUGE_VAL;
    for (std::int64_t f = lane; f < depth; f += 32) {
      const bool there = f < num_features && has_value(x[f]);
      z[i * depth + f] =
          !there ? CUDART_NAN_F
                 : (varies ? static_cast<float>((x[f] - mean) / length) : 0.0f);
    }
  }
}

}  // namespace

void start_masked_rows(const double* rows, std::int64_t count,
                       std::int64_t num_features, std::int64_t padded,
                       std::int64_t depth, float* z, cudaStream_t stream) {
  masked_rows<<<1024, 256, 0, stream>>>(rows, count, num_features, padded,
                                        depth, z);
  CUDA_CHECK(cudaGetLastError());
}

void start_masked_filter(const MaskedWork& work, cudaStream_t stream) {
  using T = MaskedTile;
  const dim3 grid(
      static_cast<unsigned>((work.num_columns + T::columns - 1) / T::columns),
      static_cast<unsigned>((work.num_rows + T::rows - 1) / T::rows));
  masked_filter<<<grid, T::threads, 0, stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
