#pragma once

// Does what tiled_form.cuh does, for rows of bytes, whose products are added as
// whole numbers. The last part has only as many steps as there are features
// left.

#include "cuda/filter/byte_tile.hpp"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/filter/warpgroup_pairs.cuh"

namespace fsknn {
namespace cuda {

struct ByteForm {
  using Work = ByteWork;
  using Number = int;
  using T = ByteTile;
  static constexpr int step_chunks = T::step / T::chunk;
  static constexpr int part_chunks = T::part_steps * step_chunks;
  static_assert(T::part_steps == WarpTile::steps, "a stage is as with halves");

  __device__ static int steps(const Work& work, int part) {
    return min(T::part_steps, static_cast<int>(work.rows.depth / T::step) -
                                  part * T::part_steps);
  }
  __device__ static int parts(const Work& work) {
    return (static_cast<int>(work.rows.depth / T::step) + T::part_steps - 1) /
           T::part_steps;
  }

  // For warps. 16 bytes of each of 8 rows are adjacent, and so already in
  // different banks of shared memory.

  __device__ static unsigned row_at(int row, int piece) {
    return static_cast<unsigned>(piece * T::row_chunk_bytes + row * T::chunk);
  }
  __device__ static unsigned column_at(int column, int piece) {
    return static_cast<unsigned>(piece * T::column_chunk_bytes +
                                 column * T::chunk);
  }
  static constexpr int bytes_of_16 = 16 * T::chunk;

  __device__ static void copy(const Work& work, std::int64_t column_block,
                              std::int64_t slab, int part, unsigned to) {
    constexpr int slabs = FilterTile::slabs, rows_at_a_time = slabs;
    static_assert(WarpTile::threads * T::chunk == T::column_chunk_bytes &&
                      part_chunks % rows_at_a_time == 0,
                  "a thread copies the same of each chunk");
    const int chunks = steps(work, part) * step_chunks;
    const int thread = static_cast<int>(threadIdx.x);
    const std::int8_t* const columns =
        work.columns.chunk(column_block, part * part_chunks) +
        thread * T::chunk;
    const std::int8_t* const rows =
        work.rows.chunk(slab / slabs,
                        part * part_chunks + thread / FilterTile::rows) +
        slab % slabs * T::row_chunk_bytes +
        thread % FilterTile::rows * T::chunk;
    to += thread * T::chunk;
#pragma unroll
    for (int c = 0; c < part_chunks; ++c)
      if (c < chunks)
        copy_16_bytes(to + c * T::column_chunk_bytes,
                      columns + c * T::column_chunk_bytes);
    to += FilterTile::column_tile_bytes;
#pragma unroll
    for (int c = 0; c < part_chunks; c += rows_at_a_time)
      if (c < chunks)
        copy_16_bytes(to + c * T::row_chunk_bytes,
                      rows + c * T::column_chunk_bytes);
  }
  __device__ static void add(int (&sum)[4], const unsigned (&rows)[4],
                             unsigned columns0, unsigned columns1) {
    add_byte_products(sum, rows, columns0, columns1);
  }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // For warpgroups.

  static constexpr int warpgroup_bytes = 64 * T::chunk;
  static constexpr int column_bytes = T::chunk;

  __device__ static int columns_bytes(const Work& work, int part) {
    return steps(work, part) * step_chunks * T::column_chunk_bytes;
  }
  __device__ static int rows_bytes(const Work& work, int part) {
    return steps(work, part) * step_chunks * T::row_chunk_bytes;
  }
  __device__ static void copy_rows(const Work& work, std::int64_t slab,
                                   int part, unsigned to, unsigned barrier) {
    const std::int8_t* from =
        work.rows.chunk(slab / FilterTile::slabs, part * part_chunks) +
        slab % FilterTile::slabs * T::row_chunk_bytes;
    for (int chunks = steps(work, part) * step_chunks; chunks > 0; --chunks) {
      copy_bulk(to, from, T::row_chunk_bytes, barrier);
      to += T::row_chunk_bytes;
      from += T::column_chunk_bytes;
    }
  }
  /// Copies this block's half of the features to both blocks of the cluster.
  __device__ static void copy_columns(const Work& work, std::int64_t block,
                                      int part, unsigned to, unsigned barrier) {
    const int half = columns_bytes(work, part) / 2;
    const unsigned rank = cluster_rank();
    copy_bulk_to_both(
        to + rank * half,
        work.columns.chunk(block, part * part_chunks) + rank * half, half,
        barrier);
  }
  __device__ static void multiply(int (&sum)[128], const Work& work, int part,
                                  unsigned rows_at, unsigned columns_at,
                                  bool first) {
    const auto add_step = [&](int step, int keep) {
      add_byte_products(
          sum,
          chunk_descriptor(rows_at + step * step_chunks * T::row_chunk_bytes,
                           T::row_chunk_bytes),
          chunk_descriptor(
              columns_at + step * step_chunks * T::column_chunk_bytes,
              T::column_chunk_bytes),
          keep);
    };
    const int count = steps(work, part);
    add_step(0, first ? 0 : 1);
    if (count == T::part_steps) {
#pragma unroll
      for (int step = 1; step < T::part_steps; ++step) add_step(step, 1);
    } else {
#pragma unroll 1
      for (int step = 1; step < count; ++step) add_step(step, 1);
    }
  }
#endif
};

}  // namespace cuda
}  // namespace fsknn
