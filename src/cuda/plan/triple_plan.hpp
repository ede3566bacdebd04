#pragma once

// How a device searches triples: apex by apex, and pairs of the others tile by
// tile, with several apexes in memory at a time. Plain C++, for host and
// device.

#include <cstdint>

#include "core/contract/scaling.hpp"
#include "cuda/plan/gpu_facts.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads computes the sums of rows x columns pairs of an apex's
/// others, `depth` features at a time.
struct TripleBlock {
  static constexpr int rows = 64, columns = 128;
  static constexpr int depth = 32;
  static constexpr int stages = 4;  ///< of `depth` features in transfer
  static constexpr int pairs = rows * columns;
};

/// The 16 bits of an entry if rows are not codes: halves, or whole numbers,
/// whose sums are faster but less precise for small values.
enum class TripleForm { halves, words };

/// The padded number of features of a row in either form.
FSKNN_HD inline std::int64_t depth_of_triples(std::int64_t num_features) {
  constexpr std::int64_t d = TripleBlock::depth;
  return (num_features + d - 1) / d * d;
}

/// The tiles of an apex with that many columns, of which that many are rows. A
/// pair counts if its row precedes its column. If all are rows, tiles without
/// such pairs are omitted.
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
    // Two rows of tiles end at each column of tiles; at the last one maybe only
    // one.
    return n * (n + 1) - (2 * n - down());
  }
  struct At {
    std::int64_t row, column;  ///< of tiles
  };
  FSKNN_HD At at(std::int64_t tile) const {
    if (!triangular()) return {tile % down(), tile / down()};
    // c (c + 1) tiles precede column c.
    std::int64_t c = static_cast<std::int64_t>(
        (sqrt(1.0 + 4.0 * static_cast<double>(tile)) - 1.0) / 2.0);
    while (c > 0 && c * (c + 1) > tile) --c;
    while ((c + 1) * (c + 2) <= tile) ++c;
    return {tile - c * (c + 1), c};
  }
};

/// Small whole numbers become thermometer codes (core/base/small_numbers.hpp).
/// A cluster of two blocks of threads counts the common bits in a square of an
/// apex's others. Each block has `rows` of the square's rows, and both have all
/// its columns.
struct TripleBitBlock {
  static constexpr int rows = 128, columns = 256;
  static constexpr int depth = 64;  ///< entries of 16 bits at a time
  static constexpr int pairs = columns * columns;
  /// The bits of a feature for which there is room in place of halves.
  static constexpr int most_bits = 32;
  /// A feature's bits for tables of loci with two alleles a sample: one for
  /// each choice of an allele at each of three loci.
  static constexpr int table_bits = 8;
  /// With more features the number of common bits might overflow 32 bits.
  static constexpr std::int64_t most_features = std::int64_t{1} << 23;
};

/// The number of 16-bit entries of a row whose values have `bits` bits each.
/// Codes of 32 features take that many 32-bit words.
FSKNN_HD inline std::int64_t depth_of_triple_bits(std::int64_t num_features,
                                                  int bits) {
  constexpr std::int64_t d = TripleBitBlock::depth;
  return ((num_features + 31) / 32 * bits * 2 + d - 1) / d * d;
}

/// The rows of a pool for that many others, in whole squares. If only some of
/// them may be the lower point, these are stored a second time. `apart`:
/// always, since rows and columns have different codes.
FSKNN_HD inline std::int64_t bit_pool_rows(std::int64_t columns,
                                           std::int64_t rows, bool apart) {
  constexpr std::int64_t c = TripleBitBlock::columns;
  const std::int64_t all = (columns + c - 1) / c * c;
  return rows == columns && !apart ? all : all + (rows + c - 1) / c * c;
}

/// The squares of an apex, as TripleTiles.
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
    // c (c + 1) / 2 squares precede column c.
    std::int64_t c = static_cast<std::int64_t>(
        (sqrt(1.0 + 8.0 * static_cast<double>(tile)) - 1.0) / 2.0);
    while (c > 0 && c * (c + 1) / 2 > tile) --c;
    while ((c + 1) * (c + 2) / 2 <= tile) ++c;
    return {tile - c * (c + 1) / 2, c};
  }
};

/// The memory of a device besides the points.
struct TriplePlan {
  int lanes = 2;                ///< each with the following
  std::int64_t apexes = 0;      ///< whose others are listed at a time
  std::int64_t pool_rows = 0;   ///< rows of these apexes' others
  std::int64_t candidates = 0;  ///< room for candidates
};

/// The sizes of the points in a search for triples on a device.
struct TripleSizes {
  std::int64_t num_points = 0, padded = 0;
  std::int64_t depth = 0;  ///< halves, or entries of 16 bits, of a row
  int bits = 0;            ///< of a feature's code; 0: halves
  int copies = 0;          ///< alleles of a sample at a locus; 0: no tables
  std::int64_t num_breaks = 0;
  std::int64_t num_alike = 0;  ///< most similar points to find for an apex

  /// Whether the codes of rows and of columns differ.
  bool apart() const { return copies == 2; }
};

/// The form in which such devices search triples with that many features.
struct TripleForms {
  TripleForms(std::int64_t num_features, const GpuFacts& gpus);

  std::int64_t num_features = 0;
  /// The largest value that may become a code, with as many bits; 0: none.
  int most_bits = 0;

  /// Returns the sizes with depth and bits. largest: of all values, if they are
  /// whole numbers up to most_bits; else -1.
  TripleSizes sizes(TripleSizes sizes, std::int32_t largest,
                    double bytes_usable) const;
};

/// The sizes for tables of loci with that many alleles a sample.
TripleSizes sizes_of_tables(TripleSizes sizes, std::int64_t num_features,
                            int copies);

/// The bytes of the points, and of a lane.
double bytes_of_points(const TripleSizes& sizes);
double bytes_of_lane(const TripleSizes& sizes, const TriplePlan& plan);

/// plan_triples() returns the largest useful plan that fits into that many
/// bytes (0: unlimited), with no lanes if none fits. least_bytes_of_triples()
/// returns the bytes that suffice.
TriplePlan plan_triples(const TripleSizes& sizes, double bytes_usable);
double least_bytes_of_triples(const TripleSizes& sizes);

/// The pairs of a tile or square, and the rows of a pool for these others.
std::int64_t pairs_of_tile(const TripleSizes& sizes);
std::int64_t pool_rows_of(const TripleSizes& sizes, std::int64_t columns,
                          std::int64_t rows);

/// The tiles for which a kernel is launched at a time: some tenths of a second,
/// so that an interrupt is noticed. One block of threads counts squares in 32
/// bits, which also limits their number.
std::int64_t tiles_at_once(const TripleSizes& sizes);

}  // namespace cuda
}  // namespace fsknn
