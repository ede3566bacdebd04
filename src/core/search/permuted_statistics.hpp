#pragma once

// Studentized statistics of points and permuted outcomes. They are functions of
// products of values, and of squares, so that no search finds the largest.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"

namespace fsknn {

/// The side on which a statistic is large.
enum class StatisticSide { signed_t, absolute, negative };

/// Outcomes for which a slope is divided by its standard error HC2. All are
/// [num_samples x num_outcomes], an outcome in each column.
struct RobustOutcomes {
  const double* columns = nullptr;   ///< of length 1
  const double* weight = nullptr;    ///< squares / (1 - leverage)
  const double* weighted = nullptr;  ///< weight * columns
  const double* last = nullptr;      ///< [num_outcomes], of weight * squares
  /// Two groups without covariates: 1 for the samples of the second, else 0;
  /// null for other outcomes.
  const double* inside = nullptr;
  const double* num_inside = nullptr;  ///< [num_outcomes], samples in it
  StatisticSide side = StatisticSide::signed_t;
};

/// Outcomes of Welch's F: the level of each sample, from 1 on. Each column has
/// the same number of samples in each level.
struct LevelOutcomes {
  const int* levels = nullptr;  ///< [num_samples x num_outcomes]
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
  double* kept = nullptr;  ///< [num_kept x num_outcomes]
  std::int64_t num_kept = 0;
  double* largest = nullptr;  ///< [num_outcomes], which is only raised
};

/// Variances below this are rounding errors.
constexpr double kLeastVariance = 1e-12;

/// The normal score of Student's t (Wallace 1959), of t squared. It grows with
/// t and with the degrees of freedom.
double normal_score(double squared_t, double freedom);

/// Slopes are squared, with their sign. For two groups, the statistic is the
/// normal score of Welch's t with its own degrees of freedom, with its sign.
void permuted_statistics(const PointRows& rows, const RobustOutcomes& outcomes,
                         int num_threads, Progress* progress,
                         const LargestStatistics& out);
void permuted_statistics(const PointRows& rows, const LevelOutcomes& outcomes,
                         int num_threads, Progress* progress,
                         const LargestStatistics& out);

}  // namespace fsknn
