#pragma once

// The layout of rows in half precision that the tensor-core filter reads, and
// the shape of its work.

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/filter/pair_filter.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads computes tiles of rows x columns pairs, `depth` features
/// at a time.
template <NumberForm form>
struct TileOf {
  static constexpr int number_bytes = entry_of(form).bytes;
  static constexpr int rows = 128, columns = kFilterBlock;
  static constexpr int depth = entry_of(form).step;
  static constexpr int slabs = columns / rows;  ///< tiles in a block of slots
  static constexpr int row_bytes = depth * number_bytes;  ///< of a staged row
  static constexpr int piece = 16 / number_bytes;  ///< numbers copied at once
  static constexpr int row_tile_bytes = rows * row_bytes;
  static constexpr int column_tile_bytes = columns * row_bytes;
  static constexpr int stage_bytes = row_tile_bytes + column_tile_bytes;
  static constexpr int most_stages = 4;
  static constexpr int feature_range_parts =
      static_cast<int>(kFilterFeatureRange) / depth;
  static_assert(row_bytes == 128, "a staged row is 8 pieces of 16 bytes");
};
using FilterTile = TileOf<NumberForm::half>;

/// A side of the filter's pairs, device memory: one tile for each block of
/// slots and each `depth` features, which is copied unchanged. In a tile a row
/// is 8 pieces of 16 bytes. Piece c of row r is at c ^ (r & 7), so that reads
/// of 8 rows' same piece use all 32 banks of shared memory.
template <class Number, NumberForm form>
struct TiledRows {
  using Tile = TileOf<form>;
  static_assert(sizeof(Number) == Tile::number_bytes, "as the plan says");
  Number* tiles =
      nullptr;  ///< [blocks x depth / Tile::depth x 256 x Tile::depth]
  std::int64_t depth = 0;   ///< features, a multiple of Tile::depth
  std::int64_t stride = 0;  ///< numbers from a block's first tile to the next's
  const std::int32_t* block_of = nullptr;  ///< see FilterRows

#ifdef __CUDACC__
  __device__ const Number* tile(std::int64_t block, std::int64_t part) const {
    if (block_of != nullptr) block = __ldg(block_of + block);
    return tiles + block * stride + part * (Tile::columns * Tile::depth);
  }
#endif
  /// Returns the address of a feature of a slot.
  FSKNN_HD Number* at(std::int64_t slot, std::int64_t feature) const {
    const std::int64_t block = slot / Tile::columns;
    const int row = static_cast<int>(slot % Tile::columns);
    const int within = static_cast<int>(feature % Tile::depth);
    return tiles + block * stride +
           (feature / Tile::depth * Tile::columns + row) * Tile::depth +
           ((within / Tile::piece) ^ (row & 7)) * Tile::piece +
           within % Tile::piece;
  }
};
using HalfRows = TiledRows<__half, NumberForm::half>;

/// The numbers that a slot may have besides its row.
constexpr int kMostNumbers = 3;

/// Jobs without the rows.
struct PairWork : PairJobs {
  /// [column slots] 0 for padding; not read where jobs.symmetric.
  const float* column_there = nullptr;
  /// [row slots], [column slots] numbers of rows of bits, as many as the kind
  /// of pairs has.
  const float* row_numbers[kMostNumbers] = {};
  const float* column_numbers[kMostNumbers] = {};
};
struct HalfWork : PairWork {
  HalfRows rows, columns;
  /// [blocks of threads x kFeatureRangeBytes], where the features of a row are
  /// several ranges.
  float4* feature_range_sums = nullptr;

  /// Returns the bytes of all features of a slab's rows.
  FSKNN_HD std::int64_t slab_bytes() const {
    return rows.depth / FilterTile::depth * FilterTile::row_tile_bytes;
  }
};

}  // namespace cuda
}  // namespace fsknn
