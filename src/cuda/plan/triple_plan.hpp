#pragma once

// How triples are gone through on a device: apex by apex, pairs of the others
// tile by tile; how many apexes stand there at a time. Plain C++, for host and
// device.

#include <cstdint>

#include "core/arithmetic.hpp"

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

/// Features of a row of halves.
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

/// What stands on a device beside the points.
struct TriplePlan {
  int lanes = 2;                ///< that have each of what follows
  std::int64_t apexes = 0;      ///< whose others are listed at a time
  std::int64_t pool_rows = 0;   ///< rows of halves, of those apexes' others
  std::int64_t candidates = 0;  ///< there is room for
};

/// Points of a search for triples, as they stand on a device.
struct TripleSizes {
  std::int64_t num_points = 0, padded = 0, depth = 0;
  std::int64_t num_breaks = 0;
  std::int64_t num_alike = 0;  ///< points that an apex is to be given
};

/// Bytes of the points, and of a lane.
double bytes_of_points(const TripleSizes& sizes);
double bytes_of_lane(const TripleSizes& sizes, const TriplePlan& plan);

/// The most of what is useful that fits in so many bytes (0: any number); with
/// no lanes: nothing does. least: the bytes that would do.
TriplePlan plan_triples(const TripleSizes& sizes, double bytes_usable);
double least_bytes_of_triples(const TripleSizes& sizes);

/// Tiles that a kernel is started for at a time, so that the user is heard:
/// some tenths of a second.
std::int64_t tiles_at_once(std::int64_t depth);

}  // namespace cuda
}  // namespace fsknn
