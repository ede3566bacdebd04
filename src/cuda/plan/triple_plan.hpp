#pragma once

// How triples are gone through on a device: apex by apex, pairs of the others
// tile by tile; how many apexes stand there at a time. Plain C++, for host and
// device.

#include <cstdint>

#include "core/contract/scaling.hpp"
#include "cuda/plan/gpu_facts.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads makes sums of rows x columns pairs of an apex's others,
/// `depth` features at a time.
struct TripleBlock {
  static constexpr int rows = 64, columns = 128;
  static constexpr int depth = 32;
  static constexpr int stages = 4;  ///< of `depth` features on their way
  static constexpr int pairs = rows * columns;
};

/// What the 16 bits of an entry are, where rows are no codes: halves, or whole
/// numbers, whose sums are faster and tell less of what is small.
enum class TripleForm { halves, words };

/// Features of a row of either.
FSKNN_HD inline std::int64_t depth_of_triples(std::int64_t num_features) {
  constexpr std::int64_t d = TripleBlock::depth;
  return (num_features + d - 1) / d * d;
}

/// The tiles of an apex that has so many columns, of which so many are rows. A
/// pair counts whose row stands before its column: where all are rows, tiles
/// that have none are left out.
struct TripleTiles {
  std::int64_t columns = 0, rows = 0;

  FSKNN_HD std::int64_t down() const {
    return (rows + TripleBlock::rows - 1) / TripleBlock::rows;
  }
  FSKNN_HD std::int64_t across() const {
    return (columns + TripleBlock::columns - 1) / TripleBlock::columns;
  }
  FSKNN_HD bool triangular() const { return rows == columns; }
  FSKNN_HD std::int64_t count() const {
    const std::int64_t n = across();
    if (!triangular()) return n * down();
    // Two rows of tiles end at each column of tiles, the last maybe in one.
    return n * (n + 1) - (2 * n - down());
  }
  struct At {
    std::int64_t row, column;  ///< of tiles
  };
  FSKNN_HD At at(std::int64_t tile) const {
    if (!triangular()) return {tile % down(), tile / down()};
    // Before column c there are c (c + 1).
    std::int64_t c = static_cast<std::int64_t>(
        (sqrt(1.0 + 4.0 * static_cast<double>(tile)) - 1.0) / 2.0);
    while (c > 0 && c * (c + 1) > tile) --c;
    while ((c + 1) * (c + 2) <= tile) ++c;
    return {tile - c * (c + 1), c};
  }
};

/// Small whole numbers are thermometer codes (core/base/small_numbers.hpp), and
/// two blocks of threads, a cluster, count what a square of an apex's others
/// have in common: each has `rows` of the square's rows, both all its columns.
struct TripleBitBlock {
  static constexpr int rows = 128, columns = 256;
  static constexpr int depth = 64;  ///< of 16 bits each, at a time
  static constexpr int pairs = columns * columns;
  /// Bits of a feature for which there is room in place of halves.
  static constexpr int most_bits = 32;
  /// Beyond, what two rows have might not be counted by 32 bits.
  static constexpr std::int64_t most_features = std::int64_t{1} << 23;
};

/// 16 bits at a time, of a row of values that take `bits` each: those of 32
/// features stand in so many words.
FSKNN_HD inline std::int64_t depth_of_triple_bits(std::int64_t num_features,
                                                  int bits) {
  constexpr std::int64_t d = TripleBitBlock::depth;
  return ((num_features + 31) / 32 * bits * 2 + d - 1) / d * d;
}

/// Rows of a pool for so many others, in whole squares; where only some of them
/// may be the lower, these stand there once more.
FSKNN_HD inline std::int64_t bit_pool_rows(std::int64_t columns,
                                           std::int64_t rows) {
  constexpr std::int64_t c = TripleBitBlock::columns;
  const std::int64_t all = (columns + c - 1) / c * c;
  return rows == columns ? all : all + (rows + c - 1) / c * c;
}

/// As TripleTiles: the squares of an apex.
struct TripleSquares {
  std::int64_t columns = 0, rows = 0;

  FSKNN_HD static std::int64_t squares(std::int64_t points) {
    return (points + TripleBitBlock::columns - 1) / TripleBitBlock::columns;
  }
  FSKNN_HD bool triangular() const { return rows == columns; }
  FSKNN_HD std::int64_t count() const {
    const std::int64_t n = squares(columns);
    return triangular() ? n * (n + 1) / 2 : n * squares(rows);
  }
  FSKNN_HD TripleTiles::At at(std::int64_t tile) const {
    if (!triangular()) {
      const std::int64_t down = squares(rows);
      return {tile % down, tile / down};
    }
    // Before column c there are c (c + 1) / 2.
    std::int64_t c = static_cast<std::int64_t>(
        (sqrt(1.0 + 8.0 * static_cast<double>(tile)) - 1.0) / 2.0);
    while (c > 0 && c * (c + 1) / 2 > tile) --c;
    while ((c + 1) * (c + 2) / 2 <= tile) ++c;
    return {tile - c * (c + 1) / 2, c};
  }
};

/// What stands on a device beside the points.
struct TriplePlan {
  int lanes = 2;                ///< that have each of what follows
  std::int64_t apexes = 0;      ///< whose others are listed at a time
  std::int64_t pool_rows = 0;   ///< of those apexes' others
  std::int64_t candidates = 0;  ///< there is room for
};

/// Points of a search for triples, as they stand on a device.
struct TripleSizes {
  std::int64_t num_points = 0, padded = 0;
  std::int64_t depth = 0;  ///< halves, or 16 bits each, of a row
  int bits = 0;            ///< of a feature's code; 0: halves
  std::int64_t num_breaks = 0;
  std::int64_t num_alike = 0;  ///< points that an apex is to be given
};

/// In which form such devices go through triples of so many features.
struct TripleForms {
  TripleForms(std::int64_t num_features, const GpuFacts& gpus);

  std::int64_t num_features = 0;
  /// Values up to this may be codes of as many bits; 0: none.
  int most_bits = 0;

  /// The sizes with depth and bits. largest: of all values, where all are whole
  /// numbers and none is above most_bits; -1: they are not.
  TripleSizes sizes(TripleSizes sizes, std::int32_t largest,
                    double bytes_usable) const;
};

/// Bytes of the points, and of a lane.
double bytes_of_points(const TripleSizes& sizes);
double bytes_of_lane(const TripleSizes& sizes, const TriplePlan& plan);

/// The most of what is useful that fits in so many bytes (0: any number); with
/// no lanes: nothing does. least: the bytes that would do.
TriplePlan plan_triples(const TripleSizes& sizes, double bytes_usable);
double least_bytes_of_triples(const TripleSizes& sizes);

/// Pairs of a tile, or square, and the rows of a pool that some others need.
std::int64_t pairs_of_tile(const TripleSizes& sizes);
std::int64_t pool_rows_of(const TripleSizes& sizes, std::int64_t columns,
                          std::int64_t rows);

/// Tiles that a kernel is started for at a time, so that the user is heard:
/// some tenths of a second; of squares no more than one block of threads may
/// count with 32 bits.
std::int64_t tiles_at_once(const TripleSizes& sizes);

}  // namespace cuda
}  // namespace fsknn
