#pragma once

// A lower bound on the size of a cover by Lagrangian relaxation.

#include <vector>

#include "core/cover/cover_problem.hpp"

namespace fsknn {

/// For multipliers u >= 0 of the pairs,
///   L(u) = sum_p u_p need_p + sum_f min(0, cost_f),
///   cost_f = 1 - sum of u_p over the pairs that f counts for,
/// is at most the size of any set. Its maximum over u is that of the linear
/// relaxation. Steps along an average of subgradients approach it (the volume
/// algorithm, Barahona and Anbil 2000).
class CoverBound {
 public:
  CoverBound(const CoverProblem& problem, int num_threads);

  /// Takes steps until the bound reaches `upper` (a known size), the steps are
  /// tiny, `most_steps` are done, or the time is over.
  void climb(int upper, int most_steps, Watch& watch);
  bool finished() const { return finished_; }

  /// The best bound so far, minus a margin for rounding.
  double value() const { return best_ - kMargin; }
  int ceiling() const;
  const std::vector<double>& costs() const { return best_costs_; }
  const std::vector<double>& multipliers() const { return best_u_; }

 private:
  static constexpr double kMargin = 1e-6;
  void find_costs();
  void count_covers();

  const CoverProblem& problem_;
  int num_threads_;
  std::vector<double> u_, costs_, best_u_, best_costs_;
  std::vector<double> lacks_, direction_;
  std::vector<double> partial_;
  std::vector<int> covers_, picked_;
  double best_ = 0.0;
  double scale_ = 1.0;
  int since_best_ = 0;
  bool finished_ = false;
};

}  // namespace fsknn
