#pragma once

// The values that the filter of tables of alleles compares, and their error.
// Plain C++, for host and device. The names are those of table_numbers.hpp: Z
// pairs of alleles, n of which have the row's counted allele, with the weights
// G and H = 2 - G, and K, by which the values are multiplied.
//
// Tensor cores count P, the rows' sum of products, as a whole number. As in
// bit_bound.hpp, kernels take its bits for those of a float, P 2^-149, which is
// exact; so are differences of such numbers. For a row i and a column j let
//   a = P G_j,  c = n_j G_j - a,  b = (n_i - P) H_j,  d = (Z - n_j) H_j - b.
// The four entries, in units of K, are
//   P G_i G_j,  (n_j - P) H_i G_j,  (n_i - P) G_i H_j  and
//   (Z - n_i - n_j + P) H_i H_j,
// which are G_i a, H_i c, G_i b and H_i d. So the largest is the larger one of
// G_i max(a, b) and H_i max(c, d). All are in further units of 2^-23: a
// column's weight is stored as 2^126 G_j, and 2^-149 2^126 = 2^-23.
//
// Let h be 2^-24. A row's n is at most Z, and P at most n; both weights are at
// most 2.
//  * G is off by 2.01 h and H by 4.01 h (a rounding more). n_j G_j and
//    (Z - n_j) H_j are rounded once, from doubles: 2.01 h Z.
//  * a is off by P times G's error and a rounding: 4.02 h Z. c adds the
//    rounding of n_j G_j and of itself: 8.1 h Z.
//  * b is off by 4.01 h Z and a rounding, 6.1 h Z, and d by that, the rounding
//    of (Z - n_j) H_j and its own: 10.2 h Z.
//  * G_i and H_i add twice that, their own errors times 2 Z, and a rounding of
//    at most 4.01 h Z: 32.6 h Z in all, which is less than 2^-18 Z.
// The products of tiny weights may underflow, which is less than 2^-100 Z.
//
// error_of_table() adds the rounding of the returned distance, which matters
// where multipliers are so small that pairs of different values have equal
// distances (the vignette "proofs", "Tables of alleles").

#include "core/contract/table_numbers.hpp"
#include "cuda/filter/bit_bound.hpp"

namespace fsknn {
namespace cuda {

/// The values of largest_of_table() are in units of K times this.
constexpr double kTableUnit = 0x1p23;

struct TableRow {
  float counted;  ///< n, as_count()
  float weight;   ///< G
};
struct TableColumn {
  float weight;   ///< 2^126 G
  float counted;  ///< n G, in units of kTableUnit
  float others;   ///< (Z - n) H, in the same
};

FSKNN_HD inline TableRow table_row(const TableTerms& t, double sum) {
  return {as_count(static_cast<int>(t.copies * sum)),
          table_numbers(t, sum).weight};
}
FSKNN_HD inline TableColumn table_column(const TableTerms& t, double sum) {
  const double n = t.copies * sum, weight = weight_of_counted(t, sum);
  return {static_cast<float>(weight * 0x1p126),
          static_cast<float>(n * weight / kTableUnit),
          static_cast<float>((pairs_of_table(t) - n) * (2.0 - weight) /
                             kTableUnit)};
}

/// common: as_count() of the sum of products.
FSKNN_HD inline float largest_of_table(float common, const TableRow& row,
                                       const TableColumn& column) {
  const float a = common * column.weight;
  const float b = (row.counted - common) * (0x1p127f - column.weight);
  const float with_counted = row.weight * fmaxf(a, b);
  const float with_other =
      (2.0f - row.weight) * fmaxf(column.counted - a, column.others - b);
  return fmaxf(with_counted, with_other);
}

/// The error of largest_of_table() as (1 - distance) / (K kTableUnit).
inline double error_of_table(const TableTerms& t) {
  return (0x1p-18 * pairs_of_table(t) + 0x1p-44 / unit_of_table(t)) /
         kTableUnit;
}

}  // namespace cuda
}  // namespace fsknn
