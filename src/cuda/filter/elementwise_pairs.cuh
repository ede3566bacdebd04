#pragma once

// The code that the kernels of all filters by differences share, for any type
// of the rows' numbers. `Numbers`, a template parameter, has
//   Sum          a pair's sum (or largest) so far, in one register,
//   blocks       of threads that share a multiprocessor and its registers,
//   loaded       words of each row in registers at a time, 2 or 4,
//   by_totals    whether rows' totals are needed too,
//   zero(), add(a, b, sum)      a word of either row,
//   differences(sum, totals)    their total as a float: see the bound.

#include <math_constants.h>

#include "cuda/device/check.hpp"
#include "cuda/device/copies.cuh"
#include "cuda/filter/elementwise_tile.hpp"
#include "cuda/filter/jobs.cuh"
#include "cuda/filter/queue.cuh"

namespace fsknn {
namespace cuda {
namespace elementwise {

using T = ElementwiseTile;

constexpr int kPieces = T::words / 4;  ///< of 16 bytes, in a staged row
static_assert(kPieces == 8, "a staged row meets 32 banks once");
static_assert(T::across == 16 && T::down == 16,
              "a warp is 4 rows by 8 columns of threads");
static_assert(kFilterBlock % T::rows == 0 && kFilterBlock % T::columns == 0,
              "tiles make up blocks of slots");

/// Returns the position of 16 bytes of a piece of a staged row. The permutation
/// spreads reads of 8 rows' same piece over 32 banks.
__device__ inline int piece_at(int row, int piece) {
  return row * T::words + ((piece ^ (row & 7)) << 2);
}

/// Stages the words of a job's tiles in sequence, as far ahead as there are
/// stages.
class Stager {
 public:
  __device__ Stager(const ElementwiseWork& work, std::int64_t slab,
                    std::int64_t column_block, std::int64_t num_tiles,
                    std::uint32_t* shared)
      : work_(work),
        words_(work.words),
        num_blocks_(work.jobs.num_blocks),
        column_block_(column_block),
        tiles_left_(num_tiles) {
    const int row = static_cast<int>(threadIdx.x) / kPieces;
    piece_ = static_cast<int>(threadIdx.x) % kPieces;
    shared_ = shared_address(shared + piece_at(row, piece_));
    offset_ = row * words_ + piece_ * 4;
    const std::int64_t row_slot =
        work.rows.block(slab / T::slabs) * kFilterBlock +
        slab % T::slabs * T::rows;
    rows_ = work.rows.rows + row_slot * words_ + offset_;
    start_tile();
  }

  /// Copies the next `words` into this stage, if any are left.
  __device__ void stage(int stage) {
    if (tiles_left_ == 0) return;
    constexpr int rows_at_a_time = T::threads / kPieces;
    constexpr int row_bytes = T::words * 4;
    const unsigned to = shared_ + stage * T::stage_bytes;
    if (word_ + piece_ * 4 < words_) {
#pragma unroll
      for (int q = 0; q < T::rows / rows_at_a_time; ++q)
        copy_16_bytes(to + q * rows_at_a_time * row_bytes,
                      rows_ + word_ + q * rows_at_a_time * words_);
#pragma unroll
      for (int q = 0; q < T::columns / rows_at_a_time; ++q)
        copy_16_bytes(to + (T::rows + q * rows_at_a_time) * row_bytes,
                      columns_ + word_ + q * rows_at_a_time * words_);
    }
    word_ += T::words;
    if (word_ < words_) return;
    --tiles_left_;
    if (++tile_ == T::column_tiles) {
      tile_ = 0;
      column_block_ = column_block_ + 1 == num_blocks_ ? 0 : column_block_ + 1;
    }
    start_tile();
  }

 private:
  __device__ void start_tile() {
    word_ = 0;
    if (tiles_left_ == 0) return;
    columns_ = work_.columns.rows +
               (work_.columns.block(column_block_) * kFilterBlock +
                tile_ * T::columns) *
                   words_ +
               offset_;
  }

  const ElementwiseWork& work_;
  std::int64_t words_, num_blocks_, column_block_, tiles_left_;
  std::int64_t offset_, word_;
  const std::uint32_t *rows_, *columns_;
  unsigned shared_;
  int piece_, tile_ = 0;
};

/// A thread's part of a tile.
template <class Numbers>
class ThreadPairs {
 public:
  __device__ ThreadPairs() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    first_row = warp / 2 * 4 + lane / 8;
    first_column = warp % 2 * 8 + lane % 8;
  }
  int first_row, first_column;
  typename Numbers::Sum sum[T::thread_rows][T::thread_columns];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < T::thread_rows; ++i)
#pragma unroll
      for (int j = 0; j < T::thread_columns; ++j) sum[i][j] = Numbers::zero();
  }

  /// Adds `pieces` staged pieces, 4 words each, as many at a time as are
  /// loaded.
  __device__ void add(const std::uint32_t* staged, int pieces) {
#pragma unroll 1
    for (int p = 0; p < pieces; ++p) {
#pragma unroll
      for (int w = 0; w < 4; w += Numbers::loaded) {
        Loaded b[T::thread_columns];
#pragma unroll
        for (int j = 0; j < T::thread_columns; ++j)
          b[j] = load(staged, T::rows + first_column + T::across * j, p, w);
#pragma unroll
        for (int i = 0; i < T::thread_rows; ++i) {
          const Loaded a = load(staged, first_row + T::down * i, p, w);
#pragma unroll
          for (int j = 0; j < T::thread_columns; ++j)
#pragma unroll
            for (int q = 0; q < Numbers::loaded; ++q)
              sum[i][j] = Numbers::add(a.word[q], b[j].word[q], sum[i][j]);
        }
      }
    }
  }

 private:
  struct alignas(4 * Numbers::loaded) Loaded {
    std::uint32_t word[Numbers::loaded];
  };
  __device__ static Loaded load(const std::uint32_t* staged, int row, int piece,
                                int word) {
    return *reinterpret_cast<const Loaded*>(staged + piece_at(row, piece) +
                                            word);
  }
};

/// The numbers of a slot that the test needs.
struct SlotBounds {
  RowBounds bounds;
  std::uint32_t total;
};

template <class Numbers, FilterKind kind>
__device__ inline SlotBounds bounds_of(const ElementwiseRows& rows,
                                       std::int64_t slot) {
  SlotBounds of;
  of.bounds.room = __ldg(rows.room + slot);
  of.bounds.sum = is_proportion(kind) ? __ldg(rows.sum + slot) : 0.0f;
  of.total = Numbers::by_totals ? __ldg(rows.total + slot) : 0u;
  return of;
}

// Computes sums (or maxima) of differences of pairs. Pairs that reach the
// threshold of a row or a column enter its list, or the one list of pairs. It
// takes half of the pairs of blocks, each for its rows and its columns (CoMet's
// circulant order, Joubert et al. 2018), or rows against all columns
// (jobs.symmetric).
// In and out: see ElementwiseWork. Grid: any, blocks take jobs in turn. Block:
// ElementwiseTile::threads. Shared: num_stages x ElementwiseTile::stage_bytes
// and kElementwiseQueueBytes, from `stages` on. The body of a kernel.
template <class Numbers, FilterKind kind, bool in_one_list>
__device__ inline void filter_pairs(const ElementwiseWork& work,
                                    const int num_stages,
                                    std::uint32_t* stages) {
  const CandidateLists& lists = work.lists;
  const FilterJobs& jobs = work.jobs;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  WarpQueue queue(
      reinterpret_cast<Found*>(stages + num_stages * (T::stage_bytes / 4)) +
          warp * WarpQueue::length,
      lane);
  const int pieces = static_cast<int>(work.words / 4);
  ThreadPairs<Numbers> pairs;

  for (std::int64_t job = jobs.first_job + blockIdx.x; job < jobs.end_job;
       job += gridDim.x) {
    const FilterJob own(jobs, job);
    const std::int64_t slab = own.slab;
    const std::int64_t first = own.first_delta, end = own.end_delta;
    std::int64_t column_block = own.column_block;

    __syncthreads();  // the last job's stages have been read
    Stager stager(work, slab, column_block, (end - first) * T::column_tiles,
                  stages);
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
        // All threads had finished with this stage before the barrier.
        const int next = now + num_stages - 1;
        stager.stage(next < num_stages ? next : next - num_stages);
        commit_copies();
        if (num_stages == 1) {  // a GPU of 7.5 has room for no more
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

      SlotBounds row[T::thread_rows];
#pragma unroll
      for (int i = 0; i < T::thread_rows; ++i)
        row[i] = bounds_of<Numbers, kind>(work.rows, row0 + T::down * i);
      const auto differences = [&](typename Numbers::Sum sum, int i,
                                   const SlotBounds& column) {
        return Numbers::differences(sum, row[i].total + column.total);
      };
      if (!in_one_list && jobs.fill) {
        // Writes every pair of a row with its first blocks.
#pragma unroll 1
        for (int j = 0; j < T::thread_columns; ++j) {
          const std::int32_t c = column0 + T::across * j;
          const SlotBounds column = bounds_of<Numbers, kind>(work.columns, c);
#pragma unroll
          for (int i = 0; i < T::thread_rows; ++i) {
            typename Numbers::Sum sum = pairs.sum[i][0];
#pragma unroll
            for (int q = 1; q < T::thread_columns; ++q)
              sum = j == q ? pairs.sum[i][q] : sum;
            const std::int32_t r = row0 + T::down * i;
            lists.entries[static_cast<std::int64_t>(r) * lists.capacity +
                          delta * kFilterBlock + across + T::across * j] = {
                upper_similarity(kind, differences(sum, i, column),
                                 row[i].bounds, column.bounds),
                c};
          }
        }
        continue;
      }

      float row_threshold[T::thread_rows];
#pragma unroll
      for (int i = 0; i < T::thread_rows; ++i)
        row_threshold[i] =
            __ldg((in_one_list ? work.pairs.row_thresholds : lists.thresholds) +
                  row0 + T::down * i);
#pragma unroll
      for (int j = 0; j < T::thread_columns; ++j) {
        const std::int32_t c = column0 + T::across * j;
        const SlotBounds column = bounds_of<Numbers, kind>(work.columns, c);
        // A NaN threshold marks padding, and columns without lists: no pair
        // reaches it.
        float column_threshold = CUDART_NAN_F;
        if (in_one_list)
          column_threshold = __ldg(work.pairs.column_thresholds + c);
        else if (jobs.symmetric)
          column_threshold = __ldg(lists.thresholds + c);
        // Almost all pairs are far from both.
        bool any = false;
#pragma unroll
        for (int i = 0; i < T::thread_rows; ++i)
          any |= may_reach(kind, differences(pairs.sum[i][j], i, column),
                           row[i].bounds, column.bounds,
                           fminf(row_threshold[i], column_threshold));
        if (!__any_sync(0xffffffffu, any)) continue;
        const bool column_there = jobs.symmetric
                                      ? column_threshold == column_threshold
                                      : column.bounds.room > 0.0f;
        // Bit i stands for the row, bit i + 16 for the column.
        float s[T::thread_rows];
        unsigned left = 0;
#pragma unroll
        for (int i = 0; i < T::thread_rows; ++i) {
          const float own = differences(pairs.sum[i][j], i, column);
          s[i] = upper_similarity(kind, own, row[i].bounds, column.bounds);
          if constexpr (in_one_list) {
            if (may_reach(kind, own, row[i].bounds, column.bounds,
                          fminf(row_threshold[i], column_threshold)))
              left |= 1u << i;
            continue;
          }
          if (s[i] >= row_threshold[i] && column_there) left |= 1u << i;
          if (s[i] >= column_threshold && row_threshold[i] == row_threshold[i])
            left |= 0x10000u << i;
        }
        if constexpr (in_one_list) {
          queue.push(work.pairs, left, [&](int i) -> Found {
            return found_pair(work.pairs, row0 + T::down * i, c,
                              column_threshold);
          });
          continue;
        }
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
    if constexpr (in_one_list)
      queue.flush(work.pairs);
    else
      queue.flush(lists);
    wait_for_copies<0>();
  }
}

}  // namespace elementwise
}  // namespace cuda
}  // namespace fsknn
