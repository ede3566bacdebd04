#include "cuda/filter/float_pairs.cuh"

#include <math_constants.h>

#include "cuda/device/check.cuh"
#include "cuda/device/copies.cuh"
#include "cuda/filter/queue.cuh"

namespace fsknn {
namespace cuda {
namespace {

using T = ElementwiseTile;

constexpr int kPieces = T::depth / 4;  ///< of 16 bytes, a staged row
static_assert(kPieces == 8, "a staged row meets 32 banks once");
static_assert(T::across == 16 && T::down == 16,
              "a warp is 4 rows by 8 columns of threads");
static_assert(kFilterBlock % T::rows == 0 && kFilterBlock % T::columns == 0,
              "tiles make up blocks of slots");

constexpr int kQueueBytes =
    T::threads / 32 * WarpQueue::length * static_cast<int>(sizeof(Found));
static_assert(T::stage_bytes + kQueueBytes ==
                  entry_of(NumberForm::single).shared_bytes,
              "the plan knows what a device must have");

/// Where the 16 bytes of a piece of a staged row are: permuted, so that reads
/// of 8 rows' same piece meet 32 banks.
__device__ inline int piece_at(int row, int piece) {
  return row * T::depth + ((piece ^ (row & 7)) << 2);
}

/// Stages the features of a job's tiles, one after the other, as far ahead as
/// there are stages.
class Stager {
 public:
  __device__ Stager(const ElementwiseWork& work, std::int64_t row_slot,
                    std::int64_t column_block, std::int64_t num_tiles,
                    float* shared)
      : depth_(work.depth),
        num_blocks_(work.jobs.num_blocks),
        column_block_(column_block),
        tiles_left_(num_tiles) {
    const int row = static_cast<int>(threadIdx.x) / kPieces;
    piece_ = static_cast<int>(threadIdx.x) % kPieces;
    shared_ = shared_address(shared + piece_at(row, piece_));
    offset_ = row * depth_ + piece_ * 4;
    points_ = work.columns.rows;
    rows_ = work.rows.rows + row_slot * depth_ + offset_;
    start_tile();
  }

  /// The next `depth` features into this stage, if there are any left.
  __device__ void stage(int stage) {
    if (tiles_left_ == 0) return;
    constexpr int rows_at_a_time = T::threads / kPieces;
    constexpr int row_bytes = T::depth * 4;
    const unsigned to = shared_ + stage * T::stage_bytes;
    if (feature_ + piece_ * 4 < depth_) {
#pragma unroll
      for (int q = 0; q < T::rows / rows_at_a_time; ++q)
        copy_16_bytes(to + q * rows_at_a_time * row_bytes,
                      rows_ + feature_ + q * rows_at_a_time * depth_);
#pragma unroll
      for (int q = 0; q < T::columns / rows_at_a_time; ++q)
        copy_16_bytes(to + (T::rows + q * rows_at_a_time) * row_bytes,
                      columns_ + feature_ + q * rows_at_a_time * depth_);
    }
    feature_ += T::depth;
    if (feature_ < depth_) return;
    --tiles_left_;
    if (++tile_ == T::column_tiles) {
      tile_ = 0;
      column_block_ = column_block_ + 1 == num_blocks_ ? 0 : column_block_ + 1;
    }
    start_tile();
  }

 private:
  __device__ void start_tile() {
    feature_ = 0;
    columns_ = points_ +
               (column_block_ * kFilterBlock + tile_ * T::columns) * depth_ +
               offset_;
  }

  std::int64_t depth_, num_blocks_, column_block_, tiles_left_;
  std::int64_t offset_, feature_;
  const float *points_, *rows_, *columns_;
  unsigned shared_;
  int piece_, tile_ = 0;
};

/// A thread's share of a tile.
template <FilterKind kind>
class ThreadPairs {
 public:
  static_assert(kind == FilterKind::difference || kind == FilterKind::largest ||
                    kind == FilterKind::overlap,
                "step() knows what is added up");
  __device__ ThreadPairs() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    first_row = warp / 2 * 4 + lane / 8;
    first_column = warp % 2 * 8 + lane % 8;
  }
  int first_row, first_column;
  float value[T::thread_rows][T::thread_columns];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < T::thread_rows; ++i)
#pragma unroll
      for (int j = 0; j < T::thread_columns; ++j) value[i][j] = 0.0f;
  }

  /// `pieces` staged pieces, 4 features each. |a - b| is one addition, its
  /// absolute value part of the next: two instructions a feature.
  __device__ void add(const float* staged, int pieces) {
#pragma unroll 1
    for (int p = 0; p < pieces; ++p) {
      float4 b[T::thread_columns];
#pragma unroll
      for (int j = 0; j < T::thread_columns; ++j)
        b[j] = load(staged, T::rows + first_column + T::across * j, p);
#pragma unroll
      for (int i = 0; i < T::thread_rows; ++i) {
        const float4 a = load(staged, first_row + T::down * i, p);
#pragma unroll
        for (int j = 0; j < T::thread_columns; ++j) {
          float s = value[i][j];
          s = step(a.x, b[j].x, s);
          s = step(a.y, b[j].y, s);
          s = step(a.z, b[j].z, s);
          value[i][j] = step(a.w, b[j].w, s);
        }
      }
    }
  }

 private:
  __device__ static float4 load(const float* staged, int row, int piece) {
    return *reinterpret_cast<const float4*>(staged + piece_at(row, piece));
  }
  __device__ static float step(float a, float b, float s) {
    return kind == FilterKind::largest ? fmaxf(s, fabsf(a - b))
                                       : s + fabsf(a - b);
  }
};

template <FilterKind kind>
__device__ inline RowBounds bounds_of(const ElementwiseRows& rows,
                                      std::int64_t slot) {
  RowBounds bounds;
  bounds.room = __ldg(rows.room + slot);
  bounds.sum = is_proportion(kind) ? __ldg(rows.sum + slot) : 0.0f;
  return bounds;
}

// Sums (or maxima) of differences of pairs, and what reaches a row's or a
// column's threshold into its list. Half of the pairs of blocks, each for its
// rows and its columns (CoMet's circulant order, Joubert et al. 2018), or rows
// against all columns (jobs.symmetric).
// In and out: see ElementwiseWork. Grid: any, blocks take jobs in turn. Block:
// ElementwiseTile::threads. Shared: num_stages x ElementwiseTile::stage_bytes
// and kQueueBytes, dynamic.
template <FilterKind kind>
__global__ void __launch_bounds__(T::threads, 1)
    filter_pairs(const ElementwiseWork work, const int num_stages) {
  extern __shared__ __align__(16) float stages[];
  const CandidateLists& lists = work.lists;
  const FilterJobs& jobs = work.jobs;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  WarpQueue queue(
      reinterpret_cast<Found*>(stages + num_stages * (T::stage_bytes / 4)) +
          warp * WarpQueue::length,
      lane);
  const int pieces = static_cast<int>(work.depth / 4);
  ThreadPairs<kind> pairs;

  for (std::int64_t job = jobs.first_job + blockIdx.x; job < jobs.end_job;
       job += gridDim.x) {
    const std::int64_t slab = jobs.first_slab + job % jobs.num_slabs;
    const std::int64_t first =
        jobs.first_delta + job / jobs.num_slabs * jobs.span;
    const std::int64_t end = min(first + jobs.span, jobs.end_delta);
    std::int64_t column_block =
        (slab / T::slabs + first + jobs.shift) % jobs.num_blocks;

    __syncthreads();  // the last job's stages are read
    Stager stager(work, slab * T::rows, column_block,
                  (end - first) * T::column_tiles, stages);
    for (int s = 0; s < num_stages - 1; ++s) {
      stager.stage(s);
      commit_copies();
    }
    int now = 0;
    const std::int32_t row0 =
        static_cast<std::int32_t>(slab * T::rows) + pairs.first_row;

    for (std::int64_t tile = first * T::column_tiles;
         tile < end * T::column_tiles; ++tile) {
      pairs.clear();
#pragma unroll 1
      for (int piece = 0; piece < pieces; piece += kPieces) {
        if (num_stages == 4)
          wait_for_copies<2>();
        else if (num_stages == 3)
          wait_for_copies<1>();
        else
          wait_for_copies<0>();
        __syncthreads();
        // A stage that all were done with before the barrier.
        const int next = now + num_stages - 1;
        stager.stage(next < num_stages ? next : next - num_stages);
        commit_copies();
        if (num_stages == 1) {  // all that a GPU of 7.5 has room for
          wait_for_copies<0>();
          __syncthreads();
        }
        pairs.add(stages + now * (T::stage_bytes / 4),
                  min(kPieces, pieces - piece));
        now = now + 1 == num_stages ? 0 : now + 1;
      }

      const std::int64_t delta = tile / T::column_tiles;
      const int across = static_cast<int>(tile % T::column_tiles) * T::columns +
                         pairs.first_column;
      const std::int32_t column0 =
          static_cast<std::int32_t>(column_block * kFilterBlock) + across;
      if (tile % T::column_tiles == T::column_tiles - 1)
        column_block =
            column_block + 1 == jobs.num_blocks ? 0 : column_block + 1;

      RowBounds row[T::thread_rows];
#pragma unroll
      for (int i = 0; i < T::thread_rows; ++i)
        row[i] = bounds_of<kind>(work.rows, row0 + T::down * i);
      if (jobs.fill) {
        // Every pair of a row with the first blocks it meets.
#pragma unroll 1
        for (int j = 0; j < T::thread_columns; ++j) {
          const std::int32_t c = column0 + T::across * j;
          const RowBounds column = bounds_of<kind>(work.columns, c);
#pragma unroll
          for (int i = 0; i < T::thread_rows; ++i) {
            float value = pairs.value[i][0];
#pragma unroll
            for (int q = 1; q < T::thread_columns; ++q)
              value = j == q ? pairs.value[i][q] : value;
            const std::int32_t r = row0 + T::down * i;
            lists.entries[static_cast<std::int64_t>(r) * lists.capacity +
                          delta * kFilterBlock + across + T::across * j] = {
                upper_similarity(kind, value, row[i], column), c};
          }
        }
        continue;
      }

      float row_threshold[T::thread_rows];
#pragma unroll
      for (int i = 0; i < T::thread_rows; ++i)
        row_threshold[i] = __ldg(lists.thresholds + row0 + T::down * i);
#pragma unroll
      for (int j = 0; j < T::thread_columns; ++j) {
        const std::int32_t c = column0 + T::across * j;
        const RowBounds column = bounds_of<kind>(work.columns, c);
        // A threshold that is no number is padding's, and nothing reaches it:
        // that of columns that have no lists, too.
        const float column_threshold =
            jobs.symmetric ? __ldg(lists.thresholds + c) : CUDART_NAN_F;
        const bool column_there = jobs.symmetric
                                      ? column_threshold == column_threshold
                                      : column.room > 0.0f;
        // Bit i is for the row, the same and 16 for the column.
        float s[T::thread_rows];
        unsigned left = 0;
#pragma unroll
        for (int i = 0; i < T::thread_rows; ++i) {
          s[i] = upper_similarity(kind, pairs.value[i][j], row[i], column);
          if (s[i] >= row_threshold[i] && column_there) left |= 1u << i;
          if (s[i] >= column_threshold && row_threshold[i] == row_threshold[i])
            left |= 0x10000u << i;
        }
        if (!__any_sync(0xffffffffu, left != 0)) continue;
        queue.push(lists, left, [&](int bit) -> Found {
          const int i = bit % 16;
          float similarity = s[0];
#pragma unroll
          for (int q = 1; q < T::thread_rows; ++q)
            similarity = i == q ? s[q] : similarity;
          const std::int32_t r = row0 + T::down * i;
          if (bit < 16) return {r, c, similarity};
          return {c, r, similarity};
        });
      }
    }
    queue.flush(lists);
    wait_for_copies<0>();
  }
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

template <FilterKind kind>
void start_pairs_of(const ElementwiseWork& work, cudaStream_t stream) {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const int room = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int fit = (room - kQueueBytes) / T::stage_bytes;
  const int stages = fit < T::most_stages ? fit : T::most_stages;
  const int bytes = stages * T::stage_bytes + kQueueBytes;
  CUDA_CHECK(cudaFuncSetAttribute(
      filter_pairs<kind>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const std::int64_t num_jobs = work.jobs.end_job - work.jobs.first_job;
  const int most = attribute(cudaDevAttrMultiProcessorCount, device);
  const int grid = num_jobs < most ? static_cast<int>(num_jobs) : most;
  filter_pairs<kind><<<grid, T::threads, bytes, stream>>>(work, stages);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void start_elementwise_pairs(const ElementwiseRule& rule,
                             const ElementwiseWork& work, cudaStream_t stream) {
  switch (rule.kind) {
    case FilterKind::difference:
      return start_pairs_of<FilterKind::difference>(work, stream);
    case FilterKind::largest:
      return start_pairs_of<FilterKind::largest>(work, stream);
    case FilterKind::overlap:
      return start_pairs_of<FilterKind::overlap>(work, stream);
    case FilterKind::none:
    case FilterKind::product:
    case FilterKind::bits: break;
  }
  throw_unknown("filter of differences", static_cast<int>(rule.kind));
}

}  // namespace cuda
}  // namespace fsknn
