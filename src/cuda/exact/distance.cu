#include "cuda/exact/distance.hpp"

#include <cuda_pipeline_primitives.h>

#include "cuda/device/check.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// A block computes a tile of rows x columns pairs. A group of 8 threads, one a
/// lane, computes thread_rows x thread_columns of them: each lane's sums stay
/// in registers, in the contract's order.
struct DistanceTile {
  static constexpr int rows = 64, columns = 32, depth = 16;
  static constexpr int thread_rows = 8, thread_columns = 8;
  static constexpr int groups_down = rows / thread_rows;
  static constexpr int threads =
      kLanes * groups_down * (columns / thread_columns);
  // This stride puts the features of two neighbouring points on different
  // banks.
  static constexpr int stride = depth + 8;
  // Holds a group's 8 pairs x 8 lanes for the reduction; the ninth column
  // avoids bank conflicts.
  static constexpr int join_stride = kLanes + 1;
  static constexpr int join_size = thread_columns * join_stride;
};
static_assert(DistanceTile::depth == 2 * kLanes,
              "what is left at the end is one step of 8 lanes");
static_assert(DistanceTile::thread_columns == kLanes,
              "each thread of a group joins one column's pair");
static_assert(DistanceTile::threads % 32 == 0, "groups do not span warps");
static_assert(kChunkUnit % DistanceTile::rows == 0 &&
                  kChunkUnit % DistanceTile::columns == 0,
              "the padding of points covers whole tiles");
static_assert(2 * (DistanceTile::rows + DistanceTile::columns) *
                      DistanceTile::stride >=
                  DistanceTile::threads / kLanes * DistanceTile::join_size,
              "joining reuses the staged features' memory");

/// Copies features f0 .. f0 + depth - 1 (as many as exist) of the tile's rows
/// and columns into shared memory, 16 bytes a copy.
__device__ inline void stage(const Chunk& chunk, std::int64_t row0,
                             std::int64_t column0, std::int64_t f0,
                             double (*to)[DistanceTile::stride]) {
  using T = DistanceTile;
  constexpr int pieces = T::depth / 2;
  for (int q = static_cast<int>(threadIdx.x);
       q < (T::rows + T::columns) * pieces; q += T::threads) {
    const int point = q / pieces, at = q % pieces * 2;
    if (f0 + at >= chunk.padded) continue;
    const double* from =
        point < T::rows
            ? chunk.rows + (row0 + point) * chunk.padded
            : chunk.columns + (column0 + point - T::rows) * chunk.padded;
    __pipeline_memcpy_async(&to[point][at], from + f0 + at, 16);
  }
}

/// A thread's lane, and its first row and column in the tile.
struct Place {
  int lane, row, column;
};

/// Adds the staged features of the thread's lane to the sums of its pairs.
/// `depth` is known at compile time, so that the compiler can read ahead.
template <class Sum, int depth>
__device__ inline void add_features(
    const double (*staged)[DistanceTile::stride], const Place& at,
    double (&sum)[DistanceTile::thread_rows][DistanceTile::thread_columns]) {
  using T = DistanceTile;
#pragma unroll
  for (int f = 0; f < depth; f += kLanes) {
    double a[T::thread_rows], b[T::thread_columns];
#pragma unroll
    for (int i = 0; i < T::thread_rows; ++i)
      a[i] = staged[at.row + i * T::groups_down][f + at.lane];
#pragma unroll
    for (int j = 0; j < T::thread_columns; ++j)
      b[j] = staged[T::rows + at.column + j][f + at.lane];
#pragma unroll
    for (int i = 0; i < T::thread_rows; ++i)
#pragma unroll
      for (int j = 0; j < T::thread_columns; ++j)
        sum[i][j] = Sum::step(a[i], b[j], sum[i][j]);
  }
}

// Computes a chunk of the distance matrix by tiles (Arefin 2012, "distance
// kernel"; there one thread a pair in float32, here 8 lanes a pair in double).
// In and out: see Chunk. Grid: x over tiles of columns, y over tiles of rows.
// Block: DistanceTile::threads. Shared: 36 KiB, static.
template <class Rule>
__global__ void __launch_bounds__(DistanceTile::threads, 1)
    chunk_distances(const Chunk chunk, const Rule rule) {
  using T = DistanceTile;
  using Sum = typename Rule::Sum;
  __shared__ __align__(16) double staged[2][T::rows + T::columns][T::stride];

  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int group = static_cast<int>(threadIdx.x) / kLanes;
  const int group_row = group % T::groups_down;
  const int group_column = group / T::groups_down * T::thread_columns;
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.y) * T::rows;
  const std::int64_t column0 =
      static_cast<std::int64_t>(blockIdx.x) * T::columns;
  // The tile is wholly left of the diagonal: another tile has its pairs.
  if (chunk.same && column0 + T::columns <= row0) return;

  double sum[T::thread_rows][T::thread_columns];
#pragma unroll
  for (int i = 0; i < T::thread_rows; ++i)
#pragma unroll
    for (int j = 0; j < T::thread_columns; ++j) sum[i][j] = 0.0;

  const Place at = {lane, group_row, group_column};
  stage(chunk, row0, column0, 0, staged[0]);
  __pipeline_commit();
  int now = 0;
  for (std::int64_t f0 = 0; f0 < chunk.padded; f0 += T::depth, now ^= 1) {
    // All threads see these features, and none still needs the previous ones.
    __pipeline_wait_prior(0);
    __syncthreads();
    if (f0 + T::depth < chunk.padded)
      stage(chunk, row0, column0, f0 + T::depth, staged[now ^ 1]);
    __pipeline_commit();
    if (f0 + T::depth <= chunk.padded)
      add_features<Sum, T::depth>(staged[now], at, sum);
    else
      add_features<Sum, kLanes>(staged[now], at, sum);
  }
  __syncthreads();

  // The group handles its pairs row by row: the 8 threads exchange lanes for
  // columns, and each reduces, finishes and writes one pair.
  double* swap = &staged[0][0][0] + group * T::join_size;
  const std::int64_t column = column0 + group_column + lane;
  const bool column_there = column < chunk.num_columns;
  const double column_sum = column_there ? chunk.column_sums[column] : 0.0;
#pragma unroll
  for (int i = 0; i < T::thread_rows; ++i) {
#pragma unroll
    for (int j = 0; j < T::thread_columns; ++j)
      swap[j * T::join_stride + lane] = sum[i][j];
    __syncwarp();
    double v[kLanes];
#pragma unroll
    for (int l = 0; l < kLanes; ++l) v[l] = swap[lane * T::join_stride + l];
    __syncwarp();
    const std::int64_t row = row0 + group_row + i * T::groups_down;
    if (!column_there || row >= chunk.num_rows) continue;
    const double total =
        Sum::checked(Sum::join(v), chunk.rows + row * chunk.padded,
                     chunk.columns + column * chunk.padded, chunk.padded);
    chunk.put(
        row, column,
        finished(rule, total, chunk.row_sums[row], column_sum, chunk.undo));
  }
}

/// The similarity itself.
struct Product {
  using Sum = Dot;
  FSKNN_HD static double finish(double sum, double row_sum, double column_sum) {
    return unit_similarity(sum, row_sum, column_sum);
  }
};

/// Returns the similarity in place of the distance.
template <class Rule>
struct SimilarityOf {
  using Sum = typename Rule::Sum;
  FSKNN_HD static double finish(double sum, double sum_a, double sum_b) {
    return Rule::similarity(sum, sum_a, sum_b);
  }
};

struct TableSimilarity : TableMetric {
  FSKNN_HD static double finish(double both, double sum_a, double sum_b,
                                const TableTerms& table) {
    return similarity(both, sum_a, sum_b, table);
  }
};

dim3 tiles_of(const Chunk& chunk) {
  using T = DistanceTile;
  return dim3(
      static_cast<unsigned>((chunk.num_columns + T::columns - 1) / T::columns),
      static_cast<unsigned>((chunk.num_rows + T::rows - 1) / T::rows));
}

}  // namespace

void start_distances(const MetricEntry& metric, const Chunk& chunk,
                     cudaStream_t stream) {
  with_any_sign(metric, [&](auto rule) {
    chunk_distances<<<tiles_of(chunk), DistanceTile::threads, 0, stream>>>(
        chunk, rule);
  });
  CUDA_CHECK(cudaGetLastError());
}

void start_similarities(const MetricEntry& metric, const Chunk& chunk,
                        cudaStream_t stream) {
  with_any_sign(metric, [&](auto rule) {
    using Rule = decltype(rule);
    if constexpr (std::is_base_of<Overlapping, Rule>::value)
      chunk_distances<<<tiles_of(chunk), DistanceTile::threads, 0, stream>>>(
          chunk, SimilarityOf<Rule>());
    else if constexpr (is_table_metric<Rule>)
      chunk_distances<<<tiles_of(chunk), DistanceTile::threads, 0, stream>>>(
          chunk, TableSimilarity());
    else
      throw std::logic_error("the metric's sums make no similarity");
  });
  CUDA_CHECK(cudaGetLastError());
}

void start_products(const Chunk& chunk, cudaStream_t stream) {
  chunk_distances<<<tiles_of(chunk), DistanceTile::threads, 0, stream>>>(
      chunk, Product());
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
