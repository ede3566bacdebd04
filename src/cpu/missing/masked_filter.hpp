#pragma once

// Two filters of pairs with missing values, in two steps each. They drop no
// pair whose similarity may reach a threshold.
//
// Correlations. A row's filter form is z: its available values, centred and
// scaled to length about 1, in floats; 0 where a value is missing. Pearson's r
// over the common samples C of rows i and j is
//
//   r = (P - A B / n) / sqrt((X - A^2 / n) (Y - B^2 / n)),
//   P = sum z_i z_j,        A = sum over C of z_i,   X = sum over C of z_i^2,
//                           B = sum over C of z_j,   Y = sum over C of z_j^2,
//
// and only P is a product of all entries, because a missing entry is 0. (This
// holds for any affine images of the rows: they are centred only for accuracy.)
//
// 1. P is computed in whole numbers of 16 bits, as in the filter without
//    missing values. Row j lacks at most m samples of i, where m is the limit
//    of j's class of rows by missing values. Whichever m samples these are (at
//    worst those of the m largest |z|), A is at most alpha_i sqrt(n), and the
//    root of X - A^2 / n is at least w_i. Then
//
//      P + e_i + e_j + alpha_i alpha_j < t w_i w_j,  t > 0   drops the pair.
//
// 2. In tiles with pairs left, A, X, B and Y are computed from the features
//    that the other row lacks (or has, if these are fewer), in floats, 16 rows
//    at a time. For the pairs left, n follows from the rows' bits, and the
//    bound of r from the formula above. Where X - A^2 / n does not exceed its
//    error, the pair goes to the exact step.
//
// Errors. z is an affine image of the row except for 2^-23 of each entry (one
// rounding to double, one to float). This changes P - A B / n by at most 2^-22,
// and X - A^2 / n by 2^-22 (its root is a norm). P has the whole numbers z' =
// round(Q z): |P - sum z'_i z'_j / Q^2| <= rho_i |z_j| + (|z_i| + rho_i) rho_j,
// where rho = |z - z' / Q| is measured for each row. The recipe's own rounding
// is below rounding_of_sums(). In step 2 a float sum of m entries of z has an
// error of m 2^-24 of their magnitudes, which sum to at most sqrt(m); a float
// sum of squares has an error of m 2^-24. kSlack covers all these except rho.
// It also covers the rounding of the test in floats.
//
// Squared differences. A row's form is v: its available values less their
// columns' centres, in one unit for all rows (MaskedUnits); 0 where a value is
// missing. z is v in floats. The sum over C of (a - b)^2 is X + Y - 2 P; as a
// similarity it is negated.
//
// 1. X is at least |v_i|^2 less its m largest squares, which is w_i. It is also
//    at least |v_i|^2 less the largest square times the number of samples that
//    j lacks. With the larger of the two,
//
//      X + Y - 2 P > T^2 n / d  for any n <= the row's own values
//
//    drops the pair. P has the whole numbers v' = round(v / a), with an a for
//    each row for which |v'| is about kMaskedUnit. |v - a v'| is at most
//    a sqrt(d) / 2, say R |v|. Then 2 |P - a_i a_j sum v'_i v'_j| is at most
//    (2 R + R^2) (|v_i|^2 + |v_j|^2).
// 2. X and Y follow from lists and n from bits, as above. Both errors are
//    covered by one number for each row, `margin` times |v|^2. (The vignette
//    "proofs" has the proofs.)

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/progress.hpp"
#include "core/rows/masked_points.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// Classes of rows by missing values: class c holds rows that lack at most
/// most[c] values.
struct MissingClasses {
  static constexpr int kMost = 6;
  std::vector<std::int32_t> most;  ///< ascending; not empty
  int of(std::int64_t missing) const;
};

MissingClasses missing_classes(const MaskedPoints& a, const MaskedPoints* b);

/// The parameters by which rows are packed.
struct MaskedPacking {
  const MissingClasses& classes;
  std::int64_t min_pairs;
  const MaskedUnits* units;  ///< for differences; null: correlations
};

/// Rows in the filter's form. Places are padded to whole panels with rows of
/// zeros. Class-major arrays are [class x num_places].
struct MaskedFilterRows {
  const MaskedPoints* points = nullptr;
  std::int64_t num_places = 0, steps = 0;
  Buffer<std::int32_t> packed;  ///< [panel][step][16], two features in 32 bits
  Buffer<std::int32_t> panel_class;  ///< [panels]: the highest of its rows
  Buffer<float> w;                   ///< [class x num_places]
  // For correlations: e [num_places], and alpha [class x num_places].
  Buffer<float> error, alpha;
  // For differences, [num_places]: a, |v|^2 less its margin, the negated
  // largest v^2, and the number of samples that the row lacks.
  Buffer<float> scale, square_below, minus_largest, missing;
  double margin = 0.0;
  Buffer<float> z;             ///< [panel][feature][16]
  Buffer<double> sum, square;  ///< [size]: of z, z^2
  // The features that each row lacks, or has if these are fewer: from
  // list_start[i] on.
  std::vector<std::int64_t> list_start;
  std::vector<std::int32_t> list;
  std::vector<char> lists_known;  ///< [size]: whether the list has the features
                                  ///< that the row has
  Buffer<double> list_error;      ///< [size]: error of a sum of z over the list
  std::vector<std::int64_t> longest_list;  ///< [panels]

  const float* z_panel(std::int64_t place) const {
    return z.data() + place / 16 * 16 * points->num_features;
  }
  const std::int32_t* row(std::int64_t place) const {
    return panel(place) + place % 16;
  }
  /// The panel that contains this place.
  const std::int32_t* panel(std::int64_t place) const {
    return packed.data() + place / 16 * 16 * steps;
  }
};

MaskedFilterRows pack_masked(const MaskedPoints& points,
                             const MaskedPacking& packing,
                             std::int64_t num_places, int num_threads,
                             Progress* progress);

/// The factor from whole products to floats.
double masked_unit();

/// The float that thresholds are compared with: a lower bound on the similarity
/// at `distance`, with all rounding.
float masked_threshold(double distance);

/// The same for differences, for a row with `known` values: minus an upper
/// bound on the sum of any pair of the row within `distance`.
float masked_difference_threshold(double distance, const MaskedRule& rule,
                                  const MaskedUnits& units, double known);

/// Sums over common features, for 16 rows and up to 48 columns.
struct CommonTile {
  static constexpr int rows = 16, columns = 48;
  float a[columns][rows], x[columns][rows];  ///< sums of the row's z, z^2
  float b[rows][columns], y[rows][columns];  ///< sums of the column's
};

/// sum_of_rows() fills a, x of one column against a panel of rows;
/// sum_of_columns() fills b, y of one row against some panels of columns.
void sum_of_rows(const Kernels& kernels, const MaskedFilterRows& rows,
                 std::int64_t row0, const MaskedFilterRows& columns,
                 std::int64_t column, float* a, float* x);
void sum_of_columns(const Kernels& kernels, const MaskedFilterRows& rows,
                    std::int64_t row, const MaskedFilterRows& columns,
                    std::int64_t column0, int panels, float* b, float* y);

/// A pair in step 2: its whole product and its four sums.
struct MaskedPair {
  std::int64_t row, column;
  std::int32_t sum;
  float a, x, b, y;
};

/// Whether the pair may reach the threshold, a similarity from
/// masked_threshold().
bool may_be_near(const MaskedFilterRows& rows, const MaskedFilterRows& columns,
                 const MaskedPair& pair, Sign sign, std::int64_t min_pairs,
                 float threshold);

/// The same for differences, with the thresholds of both.
bool may_be_close(const MaskedFilterRows& rows, const MaskedFilterRows& columns,
                  const MaskedPair& pair, std::int64_t min_pairs,
                  float row_threshold, float column_threshold);

/// Returns which pairs in `keep`, of a row with up to 48 columns from column0
/// on, pass step 2. It sums over short lists pair by pair, which is faster than
/// sums of whole panels for few pairs.
std::uint64_t close_by_lists(const MaskedFilterRows& rows, std::int64_t row,
                             const MaskedFilterRows& columns,
                             std::int64_t column0, const std::int32_t* sums,
                             std::uint64_t keep, std::int64_t min_pairs,
                             float row_threshold,
                             const float* column_threshold);

}  // namespace cpu
}  // namespace fsknn
