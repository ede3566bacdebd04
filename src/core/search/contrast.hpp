#pragma once

// Neighbours of the same points in two groups of samples: what their lists
// share, and how much the correlations of listed pairs differ.

#include <cstdint>

namespace fsknn {

/// Lists of neighbours as R has them, [rows x k] column by column, points from
/// 1; below 1: nobody. A row has k neighbours or none.
struct ListMatrix {
  const int* index = nullptr;
  std::int64_t rows = 0, k = 0;

  std::int64_t at(std::int64_t row, std::int64_t rank) const {
    return rank * rows + row;
  }
  /// From 0; below 0: nobody.
  std::int32_t point(std::int64_t row, std::int64_t rank) const {
    const int number = index[at(row, rank)];
    return number < 1 ? -1 : static_cast<std::int32_t>(number - 1);
  }
  bool empty(std::int64_t row) const { return k == 0 || point(row, 0) < 0; }
};

/// What of a correlation is near: r, |r| or -r.
enum class Strength { signed_r, absolute, negative };

/// A group's lists, and r of their pairs in either group, laid out as they are.
struct GroupLists {
  ListMatrix lists;
  const double* r_own = nullptr;    ///< in the group whose lists these are
  const double* r_other = nullptr;  ///< in the other one
};

/// [rows] each. A row without a list in either group has `missing`, and NaN.
struct PointContrasts {
  int missing = 0;
  int* shared = nullptr;  ///< neighbours that both lists have
  double* overlap =
      nullptr;  ///< rank-biased, extrapolated (Webber 2010, eq. 32)
  double* mean_1 = nullptr;   ///< of the strengths in group 1 of all listed
  double* mean_2 = nullptr;   ///< the same pairs in group 2
  double* largest = nullptr;  ///< |difference of Fisher's z| of any listed pair
};

/// persistence: p of the rank-biased overlap, above 0 and below 1.
void contrast_points(const GroupLists& first, const GroupLists& second,
                     Strength strength, double persistence, int num_threads,
                     const PointContrasts& out);

/// Fisher's z. Correlations within 1e-12 of 1 or -1 are as near: what differs
/// there is rounding.
double fisher_z(double r);

}  // namespace fsknn
