#pragma once

// The filter of tables of alleles over common samples. With counts a and b, 0
// where they are missing, and marks of known values m (1 or 0), a pair's table
// follows from four sums of products, which are whole numbers:
//
//   P = sum a b,  X = sum a m_b,  Y = sum m_a b,  n = sum m_a m_b.
//
// The numbers of its entries are P, C X - P, C Y - P and C^2 n - C (X + Y) + P,
// at most C^2 n <= 2^23. C (X + Y) is at most 2^24, up to which floats are
// exact. With the weights w of the rows' alleles,
// which depend on the row alone, an entry is
//
//   multiplier / C^2 * number / n * w_a * w_b.
//
// So a pair is dropped if the largest number * w_a * w_b is below t n, where t
// is its row's threshold times C^2 / multiplier. The rounding of the weights
// and of three products in floats is below 2^-21 of the entry; kRoundingOfTable
// is larger. A pair with n = 0 or n < min_pairs has no value.

#include <cstdint>

#include "core/base/buffer.hpp"
#include "core/base/progress.hpp"
#include "core/rows/masked_points.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/pass.hpp"

namespace fsknn {
namespace cpu {

/// Relative to an entry.
constexpr float kRoundingOfTable = 0x1p-18f;

/// Rows of allele counts, padded to whole panels with rows of zeros.
struct MaskedTableRows {
  std::int64_t num_places = 0, steps = 0;
  /// [panel][step][16]: counts, and the marks of known values; both as bits, or
  /// as bytes for counts up to 2.
  Buffer<std::int32_t> counts, known;
  Buffer<float> counted, other;  ///< [num_places] weights of alleles
};

MaskedTableRows pack_masked_tables(const MaskedPoints& points,
                                   const TableTerms& table,
                                   std::int64_t num_places, int num_threads,
                                   Progress* progress);

/// Whether the sums of so many samples are exact in floats.
bool masked_tables_filter(const TableTerms& table, std::int64_t num_features);

/// The t of the largest distance that a row still takes.
float masked_table_threshold(double distance, const TableTerms& table);

/// Computes tiles of pairs.
class MaskedTables {
 public:
  MaskedTables(const Kernels& kernels, const MaskedTerms& terms,
               const MaskedTableRows& rows, const MaskedTableRows& columns)
      : kernels_(kernels), terms_(terms), a_(rows), b_(columns) {}
  double tile_cost() const { return 4.0 * fsknn::cpu::tile_cost(a_.steps); }
  /// Sets a bit of keep[r] for each column whose pair with row r may be within
  /// the thresholds of both.
  void tile(std::int64_t row, std::int64_t column, int panels,
            const float* row_threshold, const float* column_threshold,
            std::uint64_t* keep);

 private:
  static constexpr int kNumbers = Tile::rows * Tile::columns;
  const Kernels& kernels_;
  const MaskedTerms& terms_;
  const MaskedTableRows& a_;
  const MaskedTableRows& b_;
  alignas(64) std::int32_t both_[kNumbers], x_[kNumbers], y_[kNumbers],
      n_[kNumbers];
};

}  // namespace cpu
}  // namespace fsknn
