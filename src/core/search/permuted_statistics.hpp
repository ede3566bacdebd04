#pragma once

// Studentized statistics of points and permuted outcomes, with moderated
// variances (Smyth 2004). They are functions of products of values, and of
// squares, so that no search finds the largest. A variance has one or several
// *parts*, each with a prior that is common to all points.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"

namespace fsknn {

/// The side on which a statistic is large.
enum class StatisticSide { signed_t, absolute, negative };

/// A normal score (chi-squared for F), or t or F, or its degrees of freedom.
enum class StatisticForm { score, plain, freedom };

/// What each outcome's parts are. Rows have the length 1, so that the squares
/// of residuals have the sum 1 - slope^2. [num_parts x num_outcomes] each.
struct VarianceParts {
  int num_parts = 0;
  double freedom = 0.0;  ///< of all residuals
  const double* expected =
      nullptr;  ///< of a part's sum, in units of a variance
  // The moderated variance is a mean of the prior and of the part's own sum.
  const double* of_prior = nullptr;    ///< factor of the sum of all squares
  const double* of_sum = nullptr;      ///< factor of the part's own sum
  const double* of_freedom = nullptr;  ///< its degrees of freedom
};

/// Outcomes whose slopes are studentized: all are [num_samples x num_outcomes],
/// an outcome in each column. The first part is the sum of squares of residuals
/// times `weight`. A second part is that of the remaining squares.
struct SlopeOutcomes {
  const double* columns = nullptr;  ///< of length 1
  const double* weight = nullptr;
  /// weight * columns, or null if its product with a row is slope * last.
  const double* weighted = nullptr;
  const double* last = nullptr;  ///< [num_outcomes], of weight * squares
  StatisticSide side = StatisticSide::signed_t;
};

/// Outcomes of Welch's F: the level of each sample, from 1 on, a part each.
/// Each column has the same number of samples in each level.
struct LevelOutcomes {
  const int* levels = nullptr;  ///< [num_samples x num_outcomes]
  /// [num_samples]: the constant of the model, by which rows were multiplied.
  const double* root = nullptr;
};

/// Points, one in each row, column by column. They are centred and have length
/// 1.
struct PointRows {
  const double* values = nullptr;  ///< [num_rows x num_samples]
  std::int64_t num_rows = 0, num_samples = 0;
};

/// The statistics of all rows and outcomes.
struct LargestStatistics {
  std::int64_t num_outcomes = 0;
  /// [num_rows]: the row of `kept` that has a row's statistics, -1 if only the
  /// largest counts, or -2 if the row does not count.
  const int* place = nullptr;
  StatisticForm form = StatisticForm::score;
  double* kept = nullptr;  ///< [num_kept x num_outcomes]
  std::int64_t num_kept = 0;
  double* largest = nullptr;  ///< [num_outcomes], which is only raised
  /// If given, only the moments of the parts' variances are computed, relative
  /// to that of all residuals: the number of points, the sum of variances, of
  /// logarithms, and of their squares. [4 x num_parts x num_outcomes]
  double* moments = nullptr;
};

/// Variances below this are rounding errors.
constexpr double kLeastVariance = 1e-12;
/// Relative variances below this are raised to it before logarithms are taken.
constexpr double kLeastRatio = 1e-5;

/// The normal score of Student's t (Wallace 1959), of t squared. It grows with
/// t and with the degrees of freedom.
double normal_score(double squared_t, double freedom);

/// The score of F, with a chi-squared distribution (Bartlett 1938).
double chi_squared_score(double f, double sides, double freedom);

void permuted_statistics(const PointRows& rows, const SlopeOutcomes& outcomes,
                         const VarianceParts& parts, int num_threads,
                         Progress* progress, const LargestStatistics& out);
void permuted_statistics(const PointRows& rows, const LevelOutcomes& outcomes,
                         const VarianceParts& parts, int num_threads,
                         Progress* progress, const LargestStatistics& out);

}  // namespace fsknn
