#pragma once

// The sums of a tile: 64 rows by 128 columns, pairs of an apex's others.
//
// Tensor cores do the adding. A is a tile of largest values, 16 columns by 16
// features, made in registers for one row; B has ones in one of its 8 columns,
// so that the sums of 8 rows come to stand beside each other. Maxima of halves
// that are not negative are those of whole numbers of 16 bits.

#include <cstdint>

#include "cuda/device/copies.cuh"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/triples/triple_kernels.cuh"

namespace fsknn {
namespace cuda {

/// Eight warps, each 16 rows by 64 columns: 4 by 2 of them.
struct TripleWarps {
  static constexpr int threads = 256;
  static constexpr int rows = 16, columns = 64;
  static constexpr int down = TripleBlock::rows / rows;
  static constexpr int across = TripleBlock::columns / columns;
  static constexpr int groups = columns / 16, octets = rows / 8;
  static constexpr int row_bytes = TripleBlock::depth * 2;
  static constexpr int stage_bytes =
      (TripleBlock::rows + TripleBlock::columns) * row_bytes;
  static constexpr int shared_bytes = TripleBlock::stages * stage_bytes;
  /// Features that tensor cores add before they meet the sum of others.
  static constexpr int stretch_parts =
      static_cast<int>(kFilterStretch) / TripleBlock::depth;
  static_assert(down * across * 32 == threads, "a warp for each");
  static_assert(row_bytes == 64, "a row is 4 pieces of 16 bytes");
  static_assert(TripleBlock::rows * 4 == threads &&
                    TripleBlock::columns * 4 == 2 * threads,
                "a thread copies one piece of a row, and of two columns");
};

/// A tile of a job, as all threads of a block see it.
struct TripleTile {
  const TripleJob* job;
  std::int64_t first_row, first_column;  ///< among lowers, among others
  int lane, row0, column0;               ///< of the thread's warp in the tile

  /// Rows and columns of a thread's sums, within the tile.
  __device__ int row(int octet, int e) const {
    return row0 + octet * 8 + lane % 4 * 2 + e % 2;
  }
  __device__ int column(int group, int e) const {
    return column0 + group * 16 + lane / 4 + e / 2 * 8;
  }
};

__device__ inline TripleTile triple_tile(const TripleTileWork& work) {
  const std::int64_t number = work.from + blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
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
  tile.lane = lane;
  tile.row0 = warp % TripleWarps::down * TripleWarps::rows;
  tile.column0 = warp / TripleWarps::down * TripleWarps::columns;
  return tile;
}

/// A thread's sums: of 4 groups of 16 columns and 2 of 8 rows, as products have
/// them.
struct TripleSums {
  float of[TripleWarps::groups][TripleWarps::octets][4];
};

/// How the rows and columns of a tile come to shared memory.
class TripleCopies {
 public:
  __device__ TripleCopies(const TripleTileWork& work, const TripleTile& tile,
                          unsigned shared)
      : to_(shared + threadIdx.x * 16) {
    const TripleJob& job = *tile.job;
    const int of_thread = static_cast<int>(threadIdx.x) / 4;
    const auto place_in_pool = [&](std::int64_t position) {
      // What is past the end is never looked at.
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
        to_ + part % TripleBlock::stages * TripleWarps::stage_bytes;
#pragma unroll
    for (int p = 0; p < 3; ++p)
      copy_16_bytes(
          to + p * TripleWarps::threads * 16,
          from_[p] + static_cast<std::int64_t>(part) * TripleWarps::row_bytes);
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

/// One part of the features, from where it stands in shared memory.
__device__ inline void add_part(TripleSums& sums, const TripleTile& tile,
                                unsigned stage) {
  const int g = tile.lane / 4, t = tile.lane % 4;
  const unsigned rows = stage + tile.row0 * TripleWarps::row_bytes +
                        static_cast<unsigned>(t) * 16;
  const unsigned columns =
      stage + (TripleBlock::rows + tile.column0 + g) * TripleWarps::row_bytes +
      static_cast<unsigned>(t) * 16;
  uint4 low[TripleWarps::groups], high[TripleWarps::groups];
#pragma unroll
  for (int c = 0; c < TripleWarps::groups; ++c) {
    low[c] = shared_piece(columns + c * 16 * TripleWarps::row_bytes);
    high[c] = shared_piece(columns + (c * 16 + 8) * TripleWarps::row_bytes);
  }
#pragma unroll
  for (int r = 0; r < TripleWarps::rows; ++r) {
    const uint4 x = shared_piece(rows + r * TripleWarps::row_bytes);
    const unsigned ones = g == r % 8 ? 0x3c003c00u : 0u;  // two halves of 1
#pragma unroll
    for (int c = 0; c < TripleWarps::groups; ++c) {
      const unsigned first[4] = {
          __vmaxu2(low[c].x, x.x), __vmaxu2(high[c].x, x.x),
          __vmaxu2(low[c].y, x.y), __vmaxu2(high[c].y, x.y)};
      add_products(sums.of[c][r / 8], first, ones, ones);
    }
#pragma unroll
    for (int c = 0; c < TripleWarps::groups; ++c) {
      const unsigned second[4] = {
          __vmaxu2(low[c].z, x.z), __vmaxu2(high[c].z, x.z),
          __vmaxu2(low[c].w, x.w), __vmaxu2(high[c].w, x.w)};
      add_products(sums.of[c][r / 8], second, ones, ones);
    }
  }
}

template <class Each>
__device__ inline void for_sums(const Each& each) {
#pragma unroll
  for (int c = 0; c < TripleWarps::groups; ++c)
#pragma unroll
    for (int o = 0; o < TripleWarps::octets; ++o)
#pragma unroll
      for (int e = 0; e < 4; ++e) each(c, o, e);
}

/// The sums of a tile, by all threads of a block. stretches: of more than
/// kMostInOne features.
template <bool stretches>
__device__ inline void sum_tile(const TripleTileWork& work,
                                const TripleTile& tile, unsigned shared,
                                TripleSums& sums) {
  const int parts = static_cast<int>(work.points.depth / TripleBlock::depth);
  TripleCopies copies(work, tile, shared);
#pragma unroll
  for (int p = 0; p < TripleBlock::stages - 1; ++p) {
    if (p < parts) copies.start(p);
    commit_copies();
  }
  TripleSums before;
  for_sums([&](int c, int o, int e) {
    sums.of[c][o][e] = 0.0f;
    if (stretches) before.of[c][o][e] = 0.0f;
  });
  for (int part = 0; part < parts; ++part) {
    wait_for_copies<TripleBlock::stages - 2>();
    __syncthreads();
    if (part + TripleBlock::stages - 1 < parts)
      copies.start(part + TripleBlock::stages - 1);
    commit_copies();
    add_part(sums, tile,
             shared + part % TripleBlock::stages * TripleWarps::stage_bytes);
    if (stretches && (part + 1) % TripleWarps::stretch_parts == 0)
      for_sums([&](int c, int o, int e) {
        before.of[c][o][e] += sums.of[c][o][e];
        sums.of[c][o][e] = 0.0f;
      });
  }
  if (stretches)
    for_sums(
        [&](int c, int o, int e) { sums.of[c][o][e] += before.of[c][o][e]; });
  wait_for_copies<0>();
}

/// What a thread must know of its rows and columns.
struct TripleEnds {
  std::int32_t row[TripleWarps::octets][2];     ///< positions; -1: none
  std::int32_t column[TripleWarps::groups][2];  ///< -1: none
  std::int64_t lowers, offset;

  __device__ TripleEnds(const TripleTileWork& work, const TripleTile& tile)
      : lowers(static_cast<std::int64_t>(tile.job->list) * work.points.count),
        offset(tile.job->offset) {
#pragma unroll
    for (int o = 0; o < TripleWarps::octets; ++o)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const std::int64_t at = tile.first_row + tile.row(o, e);
        row[o][e] = at < tile.job->rows ? work.lowers[lowers + at] : -1;
      }
#pragma unroll
    for (int c = 0; c < TripleWarps::groups; ++c)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const std::int64_t at = tile.first_column + tile.column(c, 2 * e);
        column[c][e] =
            at < tile.job->columns ? static_cast<std::int32_t>(at) : -1;
      }
  }
  /// Whether the pair counts.
  __device__ bool has(int c, int o, int e) const {
    return row[o][e % 2] >= 0 && row[o][e % 2] < column[c][e / 2];
  }
};

/// A warp's candidates go to the list together.
__device__ inline void put_candidate(const TripleTileWork& work,
                                     const TripleTile& tile, bool is_one,
                                     std::int32_t row, std::int32_t column) {
  const unsigned mask = __ballot_sync(0xffffffffu, is_one);
  if (mask == 0) return;
  unsigned long long first = 0;
  if (tile.lane == 0)
    first = atomicAdd(work.num_candidates,
                      static_cast<unsigned long long>(__popc(mask)));
  first = __shfl_sync(0xffffffffu, first, 0);
  const unsigned long long at =
      first + static_cast<unsigned>(__popc(mask & ((1u << tile.lane) - 1u)));
  if (!is_one || at >= static_cast<unsigned long long>(work.capacity)) return;
  const std::int32_t* const places = work.pool.places + tile.job->offset;
  work.candidates[at] = {places[row], places[column],
                         static_cast<std::int32_t>(tile.job - work.jobs), 0};
}

}  // namespace cuda
}  // namespace fsknn
