#pragma once

// Rows of signed bytes in the layout that tensor cores read.

#include <cstdint>

#include "cuda/filter/half_tile.hpp"

namespace fsknn {
namespace cuda {

struct ByteTile {
  static constexpr int step = 32;       ///< bytes that are multiplied at once
  static constexpr int part_steps = 4;  ///< of a part, which is a stage
  static constexpr int chunk = 16;      ///< contiguous bytes of a row
  static constexpr int column_chunk_bytes = FilterTile::columns * chunk;
  static constexpr int row_chunk_bytes = FilterTile::rows * chunk;
  static_assert(entry_of(NumberForm::byte).step == step,
                "a row is a whole number of steps");
  static_assert(part_steps * (step / chunk) * column_chunk_bytes ==
                        FilterTile::column_tile_bytes &&
                    part_steps * (step / chunk) * row_chunk_bytes ==
                        FilterTile::row_tile_bytes,
                "a stage is as large as with halves");
};

/// A side of the filter's pairs, device memory: for each block of slots the
/// first 16 bytes of its rows, then the next ones. Any number of features is
/// then one contiguous copy.
struct ByteRows {
  std::int8_t* tiles = nullptr;  ///< [blocks x depth / 16 x 256 x 16]
  std::int64_t depth = 0;        ///< bytes of a row, a multiple of a step
  std::int64_t stride = 0;       ///< from a block to the next

  FSKNN_HD const std::int8_t* chunk(std::int64_t block,
                                    std::int64_t which) const {
    return tiles + block * stride + which * ByteTile::column_chunk_bytes;
  }
  FSKNN_HD std::int8_t* at(std::int64_t slot, std::int64_t feature) const {
    constexpr int columns = FilterTile::columns, chunk = ByteTile::chunk;
    return tiles + slot / columns * stride +
           (feature / chunk * columns + slot % columns) * chunk +
           feature % chunk;
  }
};

struct ByteWork : PairWork {
  ByteRows rows, columns;

  /// Returns the bytes of all features of a slab's rows.
  FSKNN_HD std::int64_t slab_bytes() const {
    return rows.depth * FilterTile::rows;
  }
};

}  // namespace cuda
}  // namespace fsknn
