#pragma once

// Defines rows of halves, or of bits, for the bodies of kernels over pairs:
// filter_by_warps() and, on Hopper, filter_by_warpgroups(). byte_form.cuh is
// the other form.

#include "cuda/filter/half_tile.hpp"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/filter/warpgroup_pairs.cuh"

namespace fsknn {
namespace cuda {

/// Features are copied and multiplied a part at a time; a part has several
/// steps of 32 bytes. Sum: of the tensor cores.
template <class Sum>
struct TiledForm {
  using Work = HalfWork;
  using Number = Sum;
  using T = FilterTile;

  __device__ static int parts(const Work& work) {
    return static_cast<int>(work.rows.depth / T::depth);
  }
  __device__ static constexpr int steps(const Work&, int) {
    return WarpTile::steps;
  }

  // For warps.

  /// Return the positions of 16 bytes of a row and of a column in their tiles.
  __device__ static unsigned row_at(int row, int piece) {
    return static_cast<unsigned>(row * T::row_bytes + (piece ^ (row & 7)) * 16);
  }
  __device__ static unsigned column_at(int column, int piece) {
    return row_at(column, piece);
  }
  /// The distance from there to the same bytes of the 16th row, or column,
  /// after it.
  static constexpr int bytes_of_16 = 16 * T::row_bytes;

  /// Copies a part's columns and, behind their tile, its rows, by all threads.
  __device__ static void copy(const Work& work, std::int64_t column_block,
                              std::int64_t slab, int part, unsigned to) {
    constexpr int at_a_time = WarpTile::threads * 16;
    const int own = static_cast<int>(threadIdx.x) * 16;
    const char* const columns =
        reinterpret_cast<const char*>(work.columns.tile(column_block, part)) +
        own;
    const char* const rows =
        reinterpret_cast<const char*>(work.rows.tile(slab / T::slabs, part)) +
        slab % T::slabs * T::row_tile_bytes + own;
    to += own;
#pragma unroll
    for (int q = 0; q < T::column_tile_bytes; q += at_a_time)
      copy_16_bytes(to + q, columns + q);
#pragma unroll
    for (int q = 0; q < T::row_tile_bytes; q += at_a_time)
      copy_16_bytes(to + T::column_tile_bytes + q, rows + q);
  }
  __device__ static void add(Sum (&sum)[4], const unsigned (&rows)[4],
                             unsigned columns0, unsigned columns1) {
    add_products(sum, rows, columns0, columns1);
  }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // For warpgroups.

  /// Returns the bytes of a part.
  __device__ static int columns_bytes(const Work&, int) {
    return T::column_tile_bytes;
  }
  __device__ static int rows_bytes(const Work&, int) {
    return T::row_tile_bytes;
  }
  /// The distance from a warpgroup's rows to the next one's.
  static constexpr int warpgroup_bytes = 64 * T::row_bytes;
  /// The bytes of a column in a part.
  static constexpr int column_bytes = T::row_bytes;

  __device__ static void copy_rows(const Work& work, std::int64_t slab,
                                   int part, unsigned to, unsigned barrier) {
    copy_bulk(to,
              work.rows.tile(slab / T::slabs, part) +
                  slab % T::slabs * (T::rows * T::depth),
              T::row_tile_bytes, barrier);
  }
  /// Copies this block's half to both blocks of the cluster.
  __device__ static void copy_columns(const Work& work, std::int64_t block,
                                      int part, unsigned to, unsigned barrier) {
    const unsigned rank = cluster_rank();
    copy_bulk_to_both(
        to + rank * (T::column_tile_bytes / 2),
        work.columns.tile(block, part) + rank * (T::columns / 2 * T::depth),
        T::column_tile_bytes / 2, barrier);
  }
  /// Adds the products of a part's features.
  template <int sums>
  __device__ static void multiply(Sum (&sum)[sums], const Work&, int,
                                  unsigned rows_at, unsigned columns_at,
                                  bool first) {
    // Addresses stay below 2^18, so that adding to them carries into nothing.
    const std::uint64_t rows = tile_descriptor(rows_at);
    const std::uint64_t columns = tile_descriptor(columns_at);
#pragma unroll
    for (int step = 0; step < T::row_bytes / 32; ++step)
      add_tiled_products(sum, rows + (32 * step >> 4),
                         columns + (32 * step >> 4),
                         first && step == 0 ? 0 : 1);
  }
#endif
};

}  // namespace cuda
}  // namespace fsknn
