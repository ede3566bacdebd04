#pragma once

// Neighbours of the same points in two groups of samples: how far their lists
// overlap, and how much the correlations of listed pairs differ.

#include <cstdint>

namespace fsknn {

/// Lists of neighbours as in R, [rows x k] column by column, points from 1;
/// below 1: no neighbour. A row has k neighbours or none.
struct ListMatrix {
  const int* index = nullptr;
  std::int64_t rows = 0, k = 0;

  std::int64_t at(std::int64_t row, std::int64_t rank) const {
    return rank * rows + row;
  }
  /// The neighbour from 0, or -1.
  std::int32_t point(std::int64_t row, std::int64_t rank) const {
    const int number = index[at(row, rank)];
    return number < 1 ? -1 : static_cast<std::int32_t>(number - 1);
  }
  bool empty(std::int64_t row) const { return k == 0 || point(row, 0) < 0; }
};

/// The measure of nearness of correlations: r, |r| or -r.
enum class Strength { signed_r, absolute, negative };

/// A group's lists, and r of their pairs in both groups, in the same layout.
struct GroupLists {
  ListMatrix lists;
  const double* r_own = nullptr;    ///< in the group whose lists these are
  const double* r_other = nullptr;  ///< in the other group
};

/// [rows] each. A row without a list in either group gets `missing`, and NaN.
struct PointContrasts {
  int missing = 0;
  int* shared = nullptr;  ///< neighbours in both lists
  double* overlap =
      nullptr;  ///< rank-biased, extrapolated (Webber 2010, eq. 32)
  double* mean_1 = nullptr;   ///< mean strength of all listed pairs in group 1
  double* mean_2 = nullptr;   ///< mean strength of the same pairs in group 2
  double* largest = nullptr;  ///< |difference of Fisher's z| of any listed pair
};

/// persistence: p of the rank-biased overlap, between 0 and 1.
void contrast_points(const GroupLists& first, const GroupLists& second,
                     Strength strength, double persistence, int num_threads,
                     const PointContrasts& out);

/// Fisher's z. |r| is capped at 1 - 1e-12, because the difference beyond that
/// is rounding error.
double fisher_z(double r);

}  // namespace fsknn
