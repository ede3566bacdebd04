#pragma once

// Kinds of pairs of rows whose products tensor cores compute: they define the
// similarity of a sum, and when it reaches a threshold.

#include "core/contract/metric.hpp"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/table_bound.hpp"

namespace fsknn {
namespace cuda {

/// The lists that receive pairs: the rows', those of rows and columns, or the
/// one list of pairs.
enum class MetFor { rows, both, pairs };

/// A template parameter of the kernels: it defines the similarity, its
/// receivers, and whether rows have several ranges of features. value() first
/// converts a tensor cores' sum. similarity() also takes the row's and the
/// column's own numbers, of which each has `numbers`.
template <Sign sign_, MetFor met_for, bool deep_>
struct PairKind {
  using Number = float;  ///< of tensor cores' sums of tiled rows
  static constexpr int numbers = 0;
  static constexpr Sign sign = sign_;
  /// Tells whether columns have thresholds.
  static constexpr bool symmetric = met_for != MetFor::rows;
  static constexpr bool in_one_list = met_for == MetFor::pairs;
  static constexpr bool deep = deep_;
  static_assert(sign == Sign::signed_value || sign == Sign::absolute ||
                    sign == Sign::negative,
                "similarity() knows what is near");
  /// Sums of bytes are whole numbers.
  template <class Sum>
  __device__ static float value(Sum sum) {
    return static_cast<float>(sum);
  }
  __device__ static float similarity(float r) {
    if (sign == Sign::absolute) return fabsf(r);
    return sign == Sign::negative ? -r : r;
  }
  __device__ static float similarity(float r, float3, float3) {
    return similarity(r);
  }
  __device__ static bool reaches(float r, float3, float3, float threshold) {
    return similarity(r) >= threshold;
  }
};

/// For rows with one factor each, by which pairs' similarities are multiplied.
template <MetFor met_for, bool deep>
struct FactorPairKind : PairKind<Sign::signed_value, met_for, deep> {
  static constexpr int numbers = 1;
  __device__ static float similarity(float r, float3 row, float3 column) {
    return r * (row.x * column.x);
  }
  __device__ static bool reaches(float r, float3 row, float3 column,
                                 float threshold) {
    return similarity(r, row, column) >= threshold;
  }
};

/// For rows of bits (bit_bound.hpp): compares their common bits with the rows'
/// own counts.
template <MetFor met_for>
struct BitKind {
  using Number = int;
  static constexpr int numbers = 1;
  static constexpr bool symmetric = met_for != MetFor::rows;
  static constexpr bool in_one_list = met_for == MetFor::pairs;
  static constexpr bool deep = false;
  __device__ static float value(int common) { return as_count(common); }
  __device__ static float similarity(float common, float3 row, float3 column) {
    return overlap_of(common, row.x + column.x);
  }
  __device__ static bool reaches(float common, float3 row, float3 column,
                                 float threshold) {
    return reaches_overlap(common, row.x + column.x, threshold);
  }
};

/// Compares them by difference.
template <MetFor met_for>
struct BitDifferenceKind : BitKind<met_for> {
  __device__ static float similarity(float common, float3 row, float3 column) {
    return closeness_of(common, row.x + column.x);
  }
  __device__ static bool reaches(float common, float3 row, float3 column,
                                 float threshold) {
    return reaches_closeness(common, row.x + column.x, threshold);
  }
};

/// Compares them by correlation or cosine.
template <Sign sign, MetFor met_for>
struct BitProductKind : BitKind<met_for> {
  static constexpr int numbers = 2;
  __device__ static float similarity(float common, float3 row, float3 column) {
    return PairKind<sign, met_for, false>::similarity(
        product_of({row.x, row.y}, {column.x, column.y}, common));
  }
  __device__ static bool reaches(float common, float3 row, float3 column,
                                 float threshold) {
    return similarity(common, row, column) >= threshold;
  }
};

/// For rows of alleles (table_bound.hpp): compares the largest entries of their
/// tables.
template <MetFor met_for>
struct TableKind : BitKind<met_for> {
  static constexpr int numbers = 3;
  __device__ static float similarity(float common, float3 row, float3 column) {
    return largest_of_table(common, {row.x, row.y},
                            {column.x, column.y, column.z});
  }
  __device__ static bool reaches(float common, float3 row, float3 column,
                                 float threshold) {
    return similarity(common, row, column) >= threshold;
  }
};

}  // namespace cuda
}  // namespace fsknn
