#pragma once

// Squares of an apex's others, whose codes tensor cores count by warpgroups
// (Hopper). The two blocks of a cluster have the two halves of a square's rows
// and compare them with the same columns. Each copies half of these to both, as
// in the filter of pairs (cuda/filter/warpgroup_pairs.cuh).

#include <cstdint>

#include "cuda/filter/warpgroup_pairs.cuh"
#include "cuda/triples/triple_kernels.hpp"

namespace fsknn {
namespace cuda {

/// The layout of codes in the pool: for 256 rows the first 1,024 bits, row
/// after row, then the next ones. The 16-byte pieces of row r are permuted by r
/// mod 8, as products require (wgmma.cuh).
struct CodeTiles {
  static constexpr int row_bytes = TripleBitBlock::depth * 2;
  static constexpr int piece_bytes = 16;
  static constexpr int row_pieces = row_bytes / piece_bytes;
  static constexpr int columns_bytes = TripleBitBlock::columns * row_bytes;
  static constexpr int rows_bytes = TripleBitBlock::rows * row_bytes;
  static_assert(row_pieces == 8, "rows are permuted by 8");
  static_assert(TripleBitBlock::columns == 2 * TripleBitBlock::rows,
                "a cluster has a square's rows");

  /// Returns the position in pieces of a piece of a row of the pool; rows have
  /// `parts` parts.
  __host__ __device__ static std::int64_t at(std::int64_t row,
                                             std::int64_t piece,
                                             std::int64_t parts) {
    const std::int64_t block = row / TripleBitBlock::columns;
    const std::int64_t within = row % TripleBitBlock::columns;
    const std::int64_t part = piece / row_pieces;
    return ((block * parts + part) * TripleBitBlock::columns + within) *
               row_pieces +
           ((piece % row_pieces) ^ (within % row_pieces));
  }
};

/// The layout of a block's shared memory: stages of a square's columns and the
/// block's rows, barriers, then the kernel's additional data.
struct SquareMemory {
  static constexpr int stages = 4;
  static constexpr int stage_bytes =
      CodeTiles::columns_bytes + CodeTiles::rows_bytes;
  static constexpr int barriers = stages * stage_bytes;
  static constexpr int others = barriers + 128;
  static_assert(8 * 2 * stages <= 128, "there is room for the barriers");
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// A square of a job, the same in all threads of a block.
struct TripleSquare {
  const TripleJob* job;
  std::int64_t first_row, first_column;  ///< of the cluster's

  __device__ TripleSquare(const TripleTileWork& work, std::int64_t number) {
    // The last job that begins at or before it.
    std::int64_t low = 0, high = work.num_jobs;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (work.jobs[middle].first_tile <= number ? low : high) = middle;
    }
    job = work.jobs + low;
    const TripleTiles::At at = job->squares().at(number - job->first_tile);
    first_row = at.row * TripleBitBlock::columns;
    first_column = at.column * TripleBitBlock::columns;
  }
};

/// The squares that a cluster processes.
struct ClusterSquares {
  std::int64_t first, step;
  __device__ explicit ClusterSquares(const TripleTileWork& work)
      : first(work.from + blockIdx.x / HopperBlock::cluster),
        step(gridDim.x / HopperBlock::cluster) {}
};

/// Starts all copies, in one thread.
__device__ inline void copy_squares(const TripleTileWork& work,
                                    const HopperBarriers& barriers,
                                    unsigned shared) {
  using C = CodeTiles;
  const std::int64_t parts = work.points.depth / TripleBitBlock::depth;
  const char* const pool = reinterpret_cast<const char*>(work.pool.x);
  const unsigned rank = cluster_rank();
  StageTurn turn;
  const ClusterSquares mine(work);
  for (std::int64_t t = mine.first; t < work.to; t += mine.step) {
    const TripleSquare square(work, t);
    const TripleJob& job = *square.job;
    const char* columns =
        pool +
        C::at(job.offset + square.first_column, 0, parts) * C::piece_bytes +
        rank * (C::columns_bytes / 2);
    const char* rows =
        pool +
        C::at(job.row_offset + square.first_row, 0, parts) * C::piece_bytes +
        rank * C::rows_bytes;
    for (std::int64_t part = 0; part < parts; ++part) {
      const unsigned to = shared + turn.stage * SquareMemory::stage_bytes;
      const unsigned full = barriers.full(turn.stage);
      wait_for_barrier(barriers.empty(turn.stage), turn.parity ^ 1);
      expect_bytes(full, SquareMemory::stage_bytes);
      copy_bulk_to_both(to + rank * (C::columns_bytes / 2), columns,
                        C::columns_bytes / 2, full);
      copy_bulk(to + C::columns_bytes, rows, C::rows_bytes, full);
      columns += C::columns_bytes;
      rows += C::columns_bytes;
      turn.next(SquareMemory::stages);
    }
  }
}

/// A thread's part of a square: 2 rows, 8 apart, and 2 columns of every 8.
/// Number 4 g + 2 i + e belongs to row i and column e of group g.
struct SquareSums {
  static constexpr int groups = TripleBitBlock::columns / 8;
  int common[128];
};

/// The numbers of its rows that a thread needs.
struct SquareRows {
  std::int32_t position[2];  ///< among the others; none: beyond all
  int bits[2];               ///< of X
  int sum[2];                ///< the point's and the apex's
  std::int64_t first_column;
  int num_columns;

  __device__ SquareRows(const TripleTileWork& work, const TripleSquare& square,
                        int warp, int lane)
      : first_column(square.first_column + lane % 4 * 2),
        num_columns(square.job->columns) {
    const TripleJob& job = *square.job;
    const int apex = static_cast<int>(work.points.sums[job.apex]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::int64_t row = square.first_row +
                               cluster_rank() * TripleBitBlock::rows +
                               warp * 16 + lane / 4 + 8 * i;
      const bool there = row < job.rows;
      const int2 counts =
          there ? work.pool.counts[job.row_offset + row] : make_int2(0, 0);
      bits[i] = counts.x;
      sum[i] = counts.y + apex;
      position[i] = !there ? INT32_MAX
                    : job.rows == job.columns
                        ? static_cast<std::int32_t>(row)
                        : work.lowers[static_cast<std::int64_t>(job.list) *
                                          work.points.count +
                                      row];
    }
  }
  /// Returns whether the pair counts.
  __device__ bool has(int i, std::int64_t column) const {
    return position[i] < column && column < num_columns;
  }
};

/// Counts the common bits by a warpgroup, and calls take(square, sums).
template <class Take>
__device__ inline void count_squares(const TripleTileWork& work,
                                     const HopperBarriers& barriers,
                                     unsigned shared, const Take& take) {
  using C = CodeTiles;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned half = warp / 4 * (64 * C::row_bytes);
  const int parts = static_cast<int>(work.points.depth / TripleBitBlock::depth);
  const auto release = [&](int stage) {
    if (lane < HopperBlock::cluster) arrive_at(barriers.empty(stage), lane);
  };
  SquareSums sums;
  StageTurn turn;
  const ClusterSquares mine(work);
  for (std::int64_t t = mine.first; t < work.to; t += mine.step) {
    int before = 0;
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      wait_for_barrier(barriers.full(turn.stage), turn.parity);
      const unsigned columns = shared + turn.stage * SquareMemory::stage_bytes;
      const unsigned rows = columns + C::columns_bytes + half;
      begin_products();
#pragma unroll
      for (int step = 0; step < C::row_bytes / 32; ++step)
        add_tiled_products(sums.common, tile_descriptor(rows + 32 * step),
                           tile_descriptor(columns + 32 * step),
                           part == 0 && step == 0 ? 0 : 1);
      end_products();
      wait_for_products<1>();
      if (part > 0) release(before);
      before = turn.stage;
      turn.next(SquareMemory::stages);
    }
    wait_for_products<0>();
    release(before);
    take(TripleSquare(work, t), sums, warp, lane);
  }
}

/// A barrier of the warpgroups that multiply.
__device__ inline void meet_consumers() {
  asm volatile("bar.sync 1, %0;\n" ::"n"(128 * HopperBlock::consumers)
               : "memory");
}

/// The kernel's body. The warpgroups that multiply call finish() at the end;
/// the other one has few registers.
template <class Take, class Finish>
__device__ inline void for_squares(const TripleTileWork& work,
                                   unsigned char* memory, const Take& take,
                                   const Finish& finish) {
  using B = HopperBlock;
  const unsigned shared = shared_address(memory);
  const HopperBarriers barriers = {
      shared + static_cast<unsigned>(SquareMemory::barriers),
      SquareMemory::stages};
  if (threadIdx.x == 0) {
    for (int s = 0; s < SquareMemory::stages; ++s) {
      make_barrier(barriers.full(s), 1);
      make_barrier(barriers.empty(s), B::releases);
    }
    show_barriers();
  }
  cluster_sync();
  if (threadIdx.x >= 128 * B::consumers) {
    leave_registers<40>();
    if (threadIdx.x == 128 * B::consumers) copy_squares(work, barriers, shared);
  } else {
    take_registers<232>();
    count_squares(work, barriers, shared, take);
    finish();
  }
  // Neither block may end while the other can still write to its memory.
  __syncwarp();
  cluster_sync();
}

#endif

}  // namespace cuda
}  // namespace fsknn
