#pragma once

// Squares of an apex's others, whose codes tensor cores count by warpgroups
// (Hopper). The two blocks of a cluster have the two halves of a square's rows
// and compare them with the same columns. Each copies half of these to both, as
// in the filter of pairs (cuda/filter/warpgroup_pairs.cuh). On other GPUs, two
// blocks have the halves, too, and warps read codes from global memory.

#include <cstdint>

#include "cuda/filter/start_pairs.cuh"
#include "cuda/filter/warp_pairs.cuh"
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

/// The layout of a block's shared memory on Hopper: stages of a square's
/// columns and the block's rows, barriers, then the kernel's additional data.
/// Other GPUs have only the latter.
struct SquareMemory {
  static constexpr int stages = 4;
  static constexpr int stage_bytes =
      CodeTiles::columns_bytes + CodeTiles::rows_bytes;
  static constexpr int barriers = stages * stage_bytes;
  static constexpr int others = barriers + 128;
  static_assert(8 * 2 * stages <= 128, "there is room for the barriers");
};

/// The threads of a block that handles squares.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kSquareThreads = HopperBlock::threads;
#else
constexpr int kSquareThreads = 256;
#endif

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

/// The squares that two blocks process.
struct ClusterSquares {
  std::int64_t first, step;
  __device__ explicit ClusterSquares(const TripleTileWork& work)
      : first(work.from + blockIdx.x / HopperBlock::cluster),
        step(gridDim.x / HopperBlock::cluster) {}
};

/// Returns which half of a square's rows the block has.
__device__ inline unsigned half_of_square() {
  return blockIdx.x % HopperBlock::cluster;
}

/// A thread's part of a square: 2 rows, 8 apart, and 2 columns of every 8.
/// Number 4 g + 2 i + e belongs to row i and column e of group g.
struct SquareSums {
  static constexpr int groups = TripleBitBlock::columns / 8;
  int common[128];
};

/// The rows and columns of a thread.
struct SquareRows {
  std::int32_t position[2];  ///< among the others; none: beyond all
  std::int64_t pool_row[2];  ///< of a row; none: of the first
  std::int64_t first_column;
  int num_columns;

  __device__ SquareRows(const TripleTileWork& work, const TripleSquare& square,
                        int warp, int lane)
      : first_column(square.first_column + lane % 4 * 2),
        num_columns(square.job->columns) {
    const TripleJob& job = *square.job;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::int64_t row = square.first_row +
                               half_of_square() * TripleBitBlock::rows +
                               warp * 16 + lane / 4 + 8 * i;
      const bool there = row < job.rows;
      pool_row[i] = job.row_offset + (there ? row : 0);
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

/// Appends candidates to the list together: of each lane, those of four pairs
/// whose bits are set. All lanes of a warp must call it.
__device__ inline void put_counted(const TripleTileWork& work,
                                   const TripleSquare& square,
                                   const SquareRows& rows, unsigned passes,
                                   const int (&sums)[4], std::int64_t column,
                                   int lane) {
  const int own = __popc(passes);
  int end = own;
#pragma unroll
  for (int gap = 1; gap < 32; gap *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, end, gap);
    if (lane >= gap) end += before;
  }
  unsigned long long first = 0;
  if (lane == 31)
    first =
        atomicAdd(work.num_candidates, static_cast<unsigned long long>(end));
  first = __shfl_sync(0xffffffffu, first, 31);
  unsigned long long at = first + static_cast<unsigned>(end - own);
  const std::int32_t* const places = work.pool.places + square.job->offset;
#pragma unroll
  for (int q = 0; q < 4; ++q)
    if (passes >> q & 1u) {
      if (at < static_cast<unsigned long long>(work.capacity))
        work.candidates[at] = {
            places[rows.position[q / 2]], places[column + q % 2],
            static_cast<std::int32_t>(square.job - work.jobs), sums[q]};
      ++at;
    }
}

/// Calls take(g, at, sum) for all sums of a thread, with its group and its
/// number in the group, and without a copy of the code for each. `room`: shared
/// memory of kTakenBytes.
constexpr int kTaken = 16;
constexpr int kTakenBytes = 8 * kTaken * 32 * 4;
/// The shared memory for the bins of such a kernel.
constexpr int kBinBytes = 14336;
template <class Take>
__device__ inline void for_each_sum(const SquareSums& sums, void* room,
                                    int warp, int lane, const Take& take) {
  int* const taken = static_cast<int*>(room) + warp * (kTaken * 32) + lane;
#pragma unroll
  for (int g = 0; g < SquareSums::groups; g += kTaken / 4) {
#pragma unroll
    for (int at = 0; at < kTaken; ++at)
      taken[at * 32] = sums.common[4 * g + at];
#pragma unroll 1
    for (int at = 0; at < kTaken; ++at)
      take(g + at / 4, at % 4, taken[at * 32]);
  }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

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

/// The begin of the kernel's additional data.
__device__ inline unsigned char* data_of_kernel(unsigned char* memory) {
  return memory + SquareMemory::others;
}

#else

__device__ inline void meet_consumers() { __syncthreads(); }

__device__ inline unsigned char* data_of_kernel(unsigned char* memory) {
  return memory;
}

/// The same for other GPUs.
template <class Take, class Finish>
__device__ inline void for_squares(const TripleTileWork& work, unsigned char*,
                                   const Take& take, const Finish& finish) {
  using C = CodeTiles;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t parts = work.points.depth / TripleBitBlock::depth;
  const unsigned* const pool = reinterpret_cast<const unsigned*>(work.pool.x);
  const auto word = [&](std::int64_t row, std::int64_t piece) {
    return __ldg(pool + 4 * C::at(row, piece, parts) + lane % 4);
  };
  const ClusterSquares mine(work);
  for (std::int64_t t = mine.first; t < work.to; t += mine.step) {
    const TripleSquare square(work, t);
    const std::int64_t row = square.job->row_offset + square.first_row +
                             half_of_square() * TripleBitBlock::rows +
                             warp * 16 + lane / 4;
    const std::int64_t column =
        square.job->offset + square.first_column + lane / 4;
    SquareSums sums;
    int(&all)[SquareSums::groups][4] =
        reinterpret_cast<int(&)[SquareSums::groups][4]>(sums.common);
#pragma unroll
    for (int i = 0; i < 128; ++i) sums.common[i] = 0;
    for (std::int64_t p = 0; p < C::row_pieces * parts; p += 2) {
      const unsigned a[4] = {word(row, p), word(row + 8, p), word(row, p + 1),
                             word(row + 8, p + 1)};
#pragma unroll
      for (int g = 0; g < SquareSums::groups; ++g)
        add_products(all[g], a, word(column + 8 * g, p),
                     word(column + 8 * g, p + 1));
    }
    take(square, sums, warp, lane);
  }
  finish();
}

#endif

/// Starts as many pairs of blocks as there is room for, or as there are
/// squares. bytes: of the kernel's additional data.
void start_squares(const void* kernel, void** arguments, int bytes,
                   const TripleTileWork& work, cudaStream_t stream);

/// Starts kernel(arguments) in the same way.
template <class... Arguments>
void start_squares(void (*kernel)(Arguments...), int bytes,
                   const TripleTileWork& work, cudaStream_t stream,
                   Arguments... arguments) {
  void* pointers[] = {&arguments...};
  start_squares(reinterpret_cast<const void*>(kernel), pointers, bytes, work,
                stream);
}

}  // namespace cuda
}  // namespace fsknn
