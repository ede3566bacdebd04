#pragma once

// The sums of a tile: 64 rows by 128 columns, pairs of an apex's others, added
// part after part of the features as they arrive in shared memory. Sums, a
// template parameter, are those of a thread:
//   rows, columns         the number of either,
//   row(i), column(j)     their positions in the tile,
//   add(stage)            adds a part, from its address in shared memory,
//   end_part(part)        is called after a part,
//   finish()              after all parts, and
//   at(i, j)              returns a sum as a float: see triple_bound.hpp.

#include <cstdint>

#include "cuda/device/copies.cuh"
#include "cuda/triples/triple_kernels.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads, and its shared memory.
struct TripleThreads {
  static constexpr int threads = 256;
  static constexpr int row_bytes = TripleBlock::depth * 2;
  static constexpr int stage_bytes =
      (TripleBlock::rows + TripleBlock::columns) * row_bytes;
  static constexpr int shared_bytes = TripleBlock::stages * stage_bytes;
  static_assert(row_bytes == 64, "a row is 4 pieces of 16 bytes");
  static_assert(TripleBlock::rows * 4 == threads &&
                    TripleBlock::columns * 4 == 2 * threads,
                "a thread copies one piece of a row, and of two columns");
};

/// A tile of a job, the same in all threads of a block.
struct TripleTile {
  const TripleJob* job;
  std::int64_t first_row, first_column;  ///< among lowers, among others
};

__device__ inline TripleTile triple_tile(const TripleTileWork& work) {
  const std::int64_t number = work.from + blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // The last job that begins at or before it.
  int job = -1;
  for (std::int64_t j = 0; j < work.num_jobs; j += 32) {
    const bool begun =
        j + lane < work.num_jobs && work.jobs[j + lane].first_tile <= number;
    job += __popc(__ballot_sync(0xffffffffu, begun));
  }
  TripleTile tile;
  tile.job = work.jobs + job;
  const TripleTiles::At at =
      tile.job->tiles().at(number - tile.job->first_tile);
  tile.first_row = at.row * TripleBlock::rows;
  tile.first_column = at.column * TripleBlock::columns;
  return tile;
}

/// Copies the rows and columns of a tile into shared memory.
class TripleCopies {
 public:
  __device__ TripleCopies(const TripleTileWork& work, const TripleTile& tile,
                          unsigned shared)
      : to_(shared + threadIdx.x * 16) {
    const TripleJob& job = *tile.job;
    const int of_thread = static_cast<int>(threadIdx.x) / 4;
    const auto place_in_pool = [&](std::int64_t position) {
      // Results past the end are never used.
      if (position >= job.columns) position = 0;
      return reinterpret_cast<const char*>(
          work.pool.x + (job.offset + position) * work.points.depth +
          threadIdx.x % 4 * 8);
    };
    const std::int64_t row = tile.first_row + of_thread;
    from_[0] = place_in_pool(
        row < job.rows ? work.lowers[static_cast<std::int64_t>(job.list) *
                                         work.points.count +
                                     row]
                       : 0);
    from_[1] = place_in_pool(tile.first_column + of_thread);
    from_[2] =
        place_in_pool(tile.first_column + TripleBlock::columns / 2 + of_thread);
  }
  __device__ void start(int part) {
    const unsigned to =
        to_ + part % TripleBlock::stages * TripleThreads::stage_bytes;
#pragma unroll
    for (int p = 0; p < 3; ++p)
      copy_16_bytes(to + p * TripleThreads::threads * 16,
                    from_[p] + static_cast<std::int64_t>(part) *
                                   TripleThreads::row_bytes);
  }

 private:
  unsigned to_;
  const char* from_[3];
};

__device__ inline uint4 shared_piece(unsigned from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from));
  return x;
}

/// Computes the sums of a tile, by all threads of a block.
template <class Sums>
__device__ inline void sum_tile(const TripleTileWork& work,
                                const TripleTile& tile, unsigned shared,
                                Sums& sums) {
  const int parts = static_cast<int>(work.points.depth / TripleBlock::depth);
  TripleCopies copies(work, tile, shared);
#pragma unroll
  for (int p = 0; p < TripleBlock::stages - 1; ++p) {
    if (p < parts) copies.start(p);
    commit_copies();
  }
  for (int part = 0; part < parts; ++part) {
    wait_for_copies<TripleBlock::stages - 2>();
    __syncthreads();
    if (part + TripleBlock::stages - 1 < parts)
      copies.start(part + TripleBlock::stages - 1);
    commit_copies();
    sums.add(shared + part % TripleBlock::stages * TripleThreads::stage_bytes);
    sums.end_part(part);
  }
  sums.finish();
  wait_for_copies<0>();
}

/// Calls each(i, j) for all of a thread's sums.
template <class Sums, class Each>
__device__ inline void for_sums(const Each& each) {
#pragma unroll
  for (int i = 0; i < Sums::rows; ++i)
#pragma unroll
    for (int j = 0; j < Sums::columns; ++j) each(i, j);
}

/// The numbers of its rows and columns that a thread needs.
template <class Sums>
struct TripleEnds {
  std::int32_t row[Sums::rows];        ///< positions; -1: none
  std::int32_t column[Sums::columns];  ///< -1: none
  std::int64_t lowers, offset;

  __device__ TripleEnds(const TripleTileWork& work, const TripleTile& tile,
                        const Sums& sums)
      : lowers(static_cast<std::int64_t>(tile.job->list) * work.points.count),
        offset(tile.job->offset) {
#pragma unroll
    for (int i = 0; i < Sums::rows; ++i) {
      const std::int64_t at = tile.first_row + sums.row(i);
      row[i] = at < tile.job->rows ? work.lowers[lowers + at] : -1;
    }
#pragma unroll
    for (int j = 0; j < Sums::columns; ++j) {
      const std::int64_t at = tile.first_column + sums.column(j);
      column[j] = at < tile.job->columns ? static_cast<std::int32_t>(at) : -1;
    }
  }
  /// Returns whether the pair counts.
  __device__ bool has(int i, int j) const {
    return row[i] >= 0 && row[i] < column[j];
  }
};

/// Appends a warp's candidates to the list together.
__device__ inline void put_candidate(const TripleTileWork& work,
                                     const TripleTile& tile, bool is_one,
                                     std::int32_t row, std::int32_t column) {
  const unsigned mask = __ballot_sync(0xffffffffu, is_one);
  if (mask == 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  unsigned long long first = 0;
  if (lane == 0)
    first = atomicAdd(work.num_candidates,
                      static_cast<unsigned long long>(__popc(mask)));
  first = __shfl_sync(0xffffffffu, first, 0);
  const unsigned long long at =
      first + static_cast<unsigned>(__popc(mask & ((1u << lane) - 1u)));
  if (!is_one || at >= static_cast<unsigned long long>(work.capacity)) return;
  const std::int32_t* const places = work.pool.places + tile.job->offset;
  work.candidates[at] = {places[row], places[column],
                         static_cast<std::int32_t>(tile.job - work.jobs), 0};
}

}  // namespace cuda
}  // namespace fsknn
