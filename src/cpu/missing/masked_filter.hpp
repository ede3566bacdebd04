#pragma once

// The filters of pairs with missing values: no pair whose similarity may reach
// a threshold is dropped. In two steps.
//
// Correlations. A row's filter form is z, its available values centred and
// brought to length about 1, in floats, 0 where there is none. Pearson's r over
// the common samples C of rows i and j is
//
//   r = (P - A B / n) / sqrt((X - A^2 / n) (Y - B^2 / n)),
//   P = sum z_i z_j,        A = sum over C of z_i,   X = sum over C of z_i^2,
//                           B = sum over C of z_j,   Y = sum over C of z_j^2,
//
// and P alone is a whole product, since a missing entry is 0. (It holds of any
// affine images of the rows: that they are centred is for the numbers only.)
//
// 1. P in whole numbers of 16 bits, as the filter without missing values has
//    it. What j lacks of i is at most m samples, m the larger of a class of
//    rows by missing values: A is at most alpha_i sqrt(n), and the root of
//    X - A^2 / n at least w_i, for any m samples (the m largest |z|). So
//
//      P + e_i + e_j + alpha_i alpha_j < t w_i w_j,  t > 0   drops the pair.
//
// 2. Where a tile has pairs left: A, X, B and Y by what the other row lacks (or
//    has, if that is less), in floats, 16 rows at a time; then, of the pairs
//    that are left, n by its bits and r's bound by the formula above. Where X -
//    A^2 / n is not above its error, the pair goes to the exact step.
//
// Errors. z is an affine image of the row but for 2^-23 of each entry (one
// rounding to double, one to float), which moves P - A B / n by at most 2^-22
// and X - A^2 / n by 2^-22 (its root is a norm). P's whole numbers z' = round(Q
// z): |P - sum z'_i z'_j / Q^2| <= rho_i |z_j| + (|z_i| + rho_i) rho_j with rho
// = |z - z' / Q|, measured for each row. The recipe's own rounding is below
// rounding_of_sums(). Of step 2, a float sum of m entries of z errs by m 2^-24
// of their magnitudes, at most sqrt(m) together, and one of squares by m 2^-24.
// kSlack covers these but for rho, and the rounding of the test in floats.
//
// Squared differences. A row's form is v, its available values less their
// columns' centres, in a unit of all rows (MaskedUnits), 0 where there is none;
// z is v in floats. The sum over C of (a - b)^2 is X + Y - 2 P, and as a
// similarity it is taken negative.
//
// 1. X is at least |v_i|^2 less its m largest squares, w_i, and less as many
//    times its largest as j lacks samples. With the larger of the two,
//
//      X + Y - 2 P > T^2 n / d  for any n <= the row's own values
//
//    drops the pair. P of whole numbers v' = round(v / a), a of each row, such
//    that |v'| is about kUnit: |v - a v'| is at most a sqrt(d) / 2, R |v| say,
//    and 2 |P - a_i a_j sum v'_i v'_j| at most (2 R + R^2) (|v_i|^2 + |v_j|^2).
// 2. X and Y by lists and n by bits, as above. Both errors are of one number
//    for each row, `margin` of |v|^2. (The vignette "proofs" has the proofs.)

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/progress.hpp"
#include "core/rows/masked_points.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

/// Missing values of rows in classes: class c holds rows that lack at most
/// most[c] values.
struct MissingClasses {
  static constexpr int kMost = 6;
  std::vector<std::int32_t> most;  ///< ascending; not empty
  int of(std::int64_t missing) const;
};

MissingClasses missing_classes(const MaskedPoints& a, const MaskedPoints* b);

/// What rows are packed by.
struct MaskedPacking {
  const MissingClasses& classes;
  std::int64_t min_pairs;
  const MaskedUnits* units;  ///< differences; null: correlations
};

/// Rows in the filter's form; places are padded to whole panels with rows of
/// zeros. Class-major arrays are [class x num_places].
struct MaskedFilterRows {
  const MaskedPoints* points = nullptr;
  std::int64_t num_places = 0, steps = 0;
  Buffer<std::int32_t> packed;  ///< [panel][step][16], two features in 32 bits
  Buffer<std::int32_t> panel_class;  ///< [panels]: the highest of its rows'
  Buffer<float> w;                   ///< [class x num_places]
  // Correlations: e [num_places], and alpha [class x num_places].
  Buffer<float> error, alpha;
  // Differences, [num_places]: a, |v|^2 less its margin, the largest v^2 taken
  // negative, and how many samples the row lacks.
  Buffer<float> scale, square_below, minus_largest, missing;
  double margin = 0.0;
  Buffer<float> z;             ///< [panel][feature][16]
  Buffer<double> sum, square;  ///< [size]: of z, z^2
  // What each row lacks, or has, if that is less: features list_start[i] on.
  std::vector<std::int64_t> list_start;
  std::vector<std::int32_t> list;
  std::vector<char> lists_known;  ///< [size]: the list is of what it has
  Buffer<double> list_error;      ///< [size]: of a sum of z over the list
  std::vector<std::int64_t> longest_list;  ///< [panels]

  const float* z_panel(std::int64_t place) const {
    return z.data() + place / 16 * 16 * points->num_features;
  }
  const std::int32_t* row(std::int64_t place) const {
    return panel(place) + place % 16;
  }
  /// Of a place that starts a panel, or any in it.
  const std::int32_t* panel(std::int64_t place) const {
    return packed.data() + place / 16 * 16 * steps;
  }
};

MaskedFilterRows pack_masked(const MaskedPoints& points,
                             const MaskedPacking& packing,
                             std::int64_t num_places, int num_threads,
                             Progress* progress);

/// Of whole products, to floats.
double masked_unit();

/// The float that is compared with thresholds: what is at least `distance`'s
/// similarity less all rounding.
float masked_threshold(double distance);

/// The same of differences, of a row with `known` values: minus the sum that no
/// pair of the row is above that is at most that far.
float masked_difference_threshold(double distance, const MaskedRule& rule,
                                  const MaskedUnits& units, double known);

/// Sums over the features that both have, of 16 rows and up to 48 columns.
struct CommonTile {
  static constexpr int rows = 16, columns = 48;
  float a[columns][rows], x[columns][rows];  ///< of the row's z, z^2
  float b[rows][columns], y[rows][columns];  ///< of the column's
};

/// Fills a, x of one column against a panel of rows; b, y of one row against
/// some panels of columns.
void sum_of_rows(const Kernels& kernels, const MaskedFilterRows& rows,
                 std::int64_t row0, const MaskedFilterRows& columns,
                 std::int64_t column, float* a, float* x);
void sum_of_columns(const Kernels& kernels, const MaskedFilterRows& rows,
                    std::int64_t row, const MaskedFilterRows& columns,
                    std::int64_t column0, int panels, float* b, float* y);

/// A pair of step 2: its whole product, and its four sums.
struct MaskedPair {
  std::int64_t row, column;
  std::int32_t sum;
  float a, x, b, y;
};

/// threshold: in similarity, as of masked_threshold().
bool may_be_near(const MaskedFilterRows& rows, const MaskedFilterRows& columns,
                 const MaskedPair& pair, Sign sign, std::int64_t min_pairs,
                 float threshold);

/// The same of differences, by the threshold of each.
bool may_be_close(const MaskedFilterRows& rows, const MaskedFilterRows& columns,
                  const MaskedPair& pair, std::int64_t min_pairs,
                  float row_threshold, float column_threshold);

/// Which of a row's pairs with up to 48 columns from column0 on stay, of those
/// in `keep`: with the sums of short lists gone through pair by pair, where
/// those of whole panels are more than what few pairs need.
std::uint64_t close_by_lists(const MaskedFilterRows& rows, std::int64_t row,
                             const MaskedFilterRows& columns,
                             std::int64_t column0, const std::int32_t* sums,
                             std::uint64_t keep, std::int64_t min_pairs,
                             float row_threshold,
                             const float* column_threshold);

}  // namespace cpu
}  // namespace fsknn
