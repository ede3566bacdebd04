#pragma once

// Chooses the estimated threshold for the next points: the similarity of one of
// the most similar points so far (see EstimateRule). No proof depends on it: an
// estimate that was too high is detected and costs time. Plain C++, for the
// host.

#include <cmath>
#include <cstdint>

namespace fsknn {
namespace cuda {

/// The smallest rank that is, with probability at least 1 - risk, not below the
/// k-th nearest of all points. That is, a share `met` of all points contains
/// that many of the k nearest, or more, with a probability of at most `risk`.
/// Returns k if no smaller rank suffices. It uses the binomial distribution,
/// whose tail is longer than that of sampling without replacement.
inline std::int64_t estimated_rank(std::int64_t k, double met, double risk) {
  if (!(met > 0.0 && met < 1.0)) return k;
  const double n = static_cast<double>(k);
  const double odds = std::log1p(-met) - std::log(met);
  double term = n * std::log(met);  // the probability of all k
  double tail = 0.0;
  for (std::int64_t j = k; j >= 1; --j) {
    tail += std::exp(term);
    if (tail > risk) return j < k ? j + 1 : k;
    const double of = static_cast<double>(j);
    term += std::log(of / (n - of + 1.0)) + odds;
  }
  return 1;
}

/// The part of an entry's error that is added to its lower bound. Half of it is
/// the likely value. But among copies of a row, which are equally near, every
/// other estimate would then be too high. With wide errors a smaller part lets
/// more pairs pass; with others hardly any more. With these parts copies rarely
/// cause recomputed rows.
constexpr double estimated_error_part(bool wide) { return wide ? 0.4 : 0.2; }

/// The risk that pays. Recomputing rows takes some tenths of a millisecond,
/// however few they are. Where that is much, hardly any search should have such
/// rows. depth: the number of features, times a pair's cost relative to halves.
inline double risk_of_estimates(std::int64_t num_rows, std::int64_t num_points,
                                std::int64_t depth) {
  constexpr double much = 8.0e12, of_a_search = 0.01, of_a_row = 2.0e-4;
  const double rows = static_cast<double>(num_rows);
  const double work =
      rows * static_cast<double>(num_points) * static_cast<double>(depth);
  return work > much ? of_a_row : of_a_search / rows;
}

/// For tests: a risk so high that many rows are recomputed.
static constexpr double kHastyRisk = 0.5;

}  // namespace cuda
}  // namespace fsknn
