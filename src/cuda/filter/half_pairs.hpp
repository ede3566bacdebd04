#pragma once

// The filter for metrics that are made of products: tensor cores compute pairs'
// similarities from rows in half precision. half_filter.cpp has the filter
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

/// Rows of length 1 are multiplied by this before they are rounded, so that the
/// rounding of an entry stays relative down to 2^-28. Products are scaled by
/// its square.
static constexpr double kHalfScale = 0x1p14;
static constexpr double kSimilarityScale = kHalfScale * kHalfScale;

/// Upper bounds of the length of any row, and of the length of any row's
/// rounding error, each in units of 1; one number each, device memory.
struct RowErrors {
  double* length = nullptr;
  double* rounding = nullptr;
};

/// Rounds prepared rows of length 1, row r as slot slots[r] (-1: none), and
/// sets there[slot] = 1. errors must hold zeros before the first rows.
void start_unit_rows(const PreparedRows& from, std::int64_t count,
                     const std::int32_t* slots, const HalfRows& to,
                     float* there, const RowErrors& errors,
                     cudaStream_t stream);

/// Returns e, the filter's error for rows with these errors, in units of 1. It
/// is an upper bound of |filtered similarity - (1 - returned distance)|.
double unit_error(double length, double rounding, std::int64_t depth,
                  std::int64_t padded);

/// The shift and the scale of raw rows. Device memory.
struct RawForm {
  double* centre = nullptr;  ///< [padded]
  double* scale = nullptr;   ///< one number, a power of two
  RawSum sum = RawSum::squared_distance;
};

/// Finds a centre and a scale from a fair sample of the points. The answer is
/// right for any choice.
void start_raw_form(const PreparedRows& sample, std::int64_t count,
                    const RawForm& to, cudaStream_t stream);

/// Returns whether rows of length 1 should be centred, from the scale that
/// start_raw_form() found for them. If not, their lengths are similar to their
/// distances.
bool centring_pays(double scale);

/// Rounds raw rows for distances by |a - b|^2 or by sum a b, as unit rows are
/// rounded; rows and columns differ in their last features. slack: see Cut.
/// undo: the final factor of distances.
struct RawRows {
  HalfRows rows, columns;
  float* slack = nullptr;   ///< [slots]
  float* factor = nullptr;  ///< [slots] factors of rows for products; else 1
};
void start_raw_rows(const PreparedRows& from, std::int64_t count,
                    const std::int32_t* slots, const RawForm& form,
                    PowerOfTwo undo, const RawRows& to, cudaStream_t stream);

/// Returns the bytes of HalfWork::feature_range_sums; 0: none are needed.
std::int64_t bytes_feature_range_sums(int device, std::int64_t depth);

/// Returns the rows, or for side 1 the columns, of a filter's slots: a block of
/// slots has its rows' tiles, then its columns'.
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

/// Returns the jobs of rows in this form, without their numbers.
inline HalfWork half_work(const FilterWork& work, const RowsInForm& form) {
  HalfWork half;
  static_cast<PairJobs&>(half) = work;
  half.rows = tiled_halves(work.rows, form, 0);
  half.columns = tiled_halves(work.columns, form, form.sides - 1);
  return half;
}

/// Filters pairs of rows of bits, in place of halves: see bit_pairs.hpp. They
/// are compared by overlap, by difference, or by the products of the values
/// that the bits encode.
enum class BitSimilarity { overlap, difference, product };
/// sign: for products.
void start_bit_pairs(BitSimilarity similarity, Sign sign, const HalfWork& work,
                     cudaStream_t stream);

/// Filters pairs of rows of alleles in the same way (table_filter.cu).
void start_table_pairs(const HalfWork& work, cudaStream_t stream);

/// Numbers of rows, where present, are factors (half_bound.hpp).
void start_half_filter(Sign sign, const HalfWork& work, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
