#pragma once

// The filter for the metrics that are made of products: pairs' similarities by
// tensor cores from rows in half precision. half_filter.cpp has the filter
// itself, half_unit_rows.cu and half_raw_rows.cu its two kinds of rows and
// their bounds, half_pairs.cu the pairs.

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "core/contract/metric.hpp"
#include "cuda/filter/half_bound.hpp"
#include "cuda/filter/half_tile.hpp"
#include "cuda/filter/pair_filter.hpp"

namespace fsknn {
namespace cuda {

std::unique_ptr<PairFilter> make_half_filter(const MetricEntry& metric,
                                             const RowsInForm& rows);

/// Rows of length 1 are multiplied by this before they are rounded, so that an
/// entry's rounding stays relative down to 2^-28; products by its square.
static constexpr double kHalfScale = 0x1p14;
static constexpr double kSimilarityScale = kHalfScale * kHalfScale;

/// The largest length of a row, and of what rounding changed in a row, each in
/// units of 1 and not below what it is; one number, device memory.
struct RowErrors {
  double* length = nullptr;
  double* rounding = nullptr;
};

/// Rounds prepared rows of length 1, row r as slot slots[r] (-1: of none), and
/// sets there[slot] = 1. errors must hold zeros before the first rows.
void start_unit_rows(const PreparedRows& from, std::int64_t count,
                     const std::int32_t* slots, const HalfRows& to,
                     float* there, const RowErrors& errors,
                     cudaStream_t stream);

/// e, the filter's error, for rows whose errors are these: not less than
/// |filtered similarity - (1 - returned distance)|, in units of 1.
double unit_error(double length, double rounding, std::int64_t depth,
                  std::int64_t padded);

/// How raw rows are shifted and scaled. Device memory.
struct RawForm {
  double* centre = nullptr;  ///< [padded]
  double* scale = nullptr;   ///< one number, a power of two
  RawSum sum = RawSum::squared_distance;
};

/// Finds a centre and a scale from some of the points, which must be a fair
/// sample; any will do for a right answer.
void start_raw_form(const PreparedRows& sample, std::int64_t count,
                    const RawForm& to, cudaStream_t stream);

/// Whether rows of length 1 are better centred, by what start_raw_form() found
/// for them: if not, they are about as long as their distances.
bool centring_pays(double scale);

/// Rounds raw rows for distances by |a - b|^2 or by sum a b, as unit rows are;
/// rows and columns differ in their last features. slack: see Cut. undo: what
/// distances are multiplied by at last.
struct RawRows {
  HalfRows rows, columns;
  float* slack = nullptr;   ///< [slots]
  float* factor = nullptr;  ///< [slots] of a row's products; else 1
};
void start_raw_rows(const PreparedRows& from, std::int64_t count,
                    const std::int32_t* slots, const RawForm& form,
                    PowerOfTwo undo, const RawRows& to, cudaStream_t stream);

/// Of HalfWork::feature_range_sums; 0: none are needed.
std::int64_t bytes_feature_range_sums(int device, std::int64_t depth);

/// The rows, or for side 1 the columns, of a filter's slots: a block of slots
/// has its rows' tiles, then its columns'.
inline HalfRows tiled_halves(const FilterRows& rows, const RowsInForm& form,
                             int side) {
  HalfRows half;
  half.tiles =
      static_cast<__half*>(rows.rows) + side * form.depth * FilterTile::columns;
  half.depth = form.depth;
  half.stride = form.sides * form.depth * FilterTile::columns;
  half.block_of = rows.block_of;
  return half;
}

/// Pairs of rows of bits, where halves would stand: see bit_pairs.hpp. By their
/// overlap, by how far they are apart, or by the products of what they stand
/// for.
enum class BitSimilarity { overlap, difference, product };
/// sign: of products.
void start_bit_pairs(BitSimilarity similarity, Sign sign, const HalfWork& work,
                     cudaStream_t stream);

/// Where rows have numbers, these are factors (half_bound.hpp).
void start_half_filter(Sign sign, const HalfWork& work, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
