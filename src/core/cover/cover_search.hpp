#pragma once

// Finds a small cover: greedy, then local search.

#include <vector>

#include "core/cover/cover_problem.hpp"
#include "core/rows/split_mix.hpp"

namespace fsknn {

/// A set of features, and the effect of changing each feature.
class CoverSearch {
 public:
  explicit CoverSearch(const CoverProblem& problem);

  /// Starts from the features with negative cost. Repeatedly adds the feature
  /// that counts for most uncovered pairs (the cheapest of equals). Then
  /// removes unnecessary features, the most expensive first.
  void construct(const std::vector<double>& costs, Watch& watch);

  /// Searches for smaller sets until one has `enough` features, `patience`
  /// steps have found none, or the time is over (Gao, Yao, Weise, Li 2015:
  /// pairs that are hard to cover gain weight).
  void improve(int enough, int patience, Watch& watch);

  /// The smallest set found, by the problem's numbers, increasing.
  const std::vector<int>& best() const { return best_; }

 private:
  using Weight = std::int64_t;
  void clear();
  void add(int f) { change(f, 1); }
  void remove(int f) { change(f, -1); }
  void change(int f, int by);
  void shift(std::vector<Weight>& sums, int pair, Weight by);
  void set_lacking(int pair, bool lacks);
  int cheapest_to_lose(int barred) const;
  int best_for(int pair, int barred) const;
  void keep_if_smaller();

  const CoverProblem& problem_;
  int num_features_, num_pairs_, size_ = 0;
  std::vector<char> in_;
  std::vector<int> counts_;
  std::vector<Weight> weights_;
  /// Sums of weights over the pairs that a feature counts for. gains_: the
  /// uncovered pairs (the gain of adding it). losses_: uncovered or exactly
  /// covered pairs (the loss of removing it).
  std::vector<Weight> gains_, losses_;
  std::vector<int> lacking_, place_;   ///< uncovered pairs; their positions
  std::vector<std::int64_t> changed_;  ///< the step of a feature's last change
  std::int64_t step_ = 0;
  std::vector<int> best_;
  bool found_ = false;
  SplitMix random_{20120001};
};

}  // namespace fsknn
