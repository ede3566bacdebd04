#pragma once

// The (alpha, beta)-k-feature set problem (Cotta, Sloper, Moscato 2004) as a
// set multi-cover. It asks for the fewest features that cover all pairs of
// samples. A pair of different classes must differ in at least alpha of them,
// and a pair of the same class must agree in at least beta.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"

namespace fsknn {

struct CoverTask {
  const int* levels = nullptr;  ///< [num_features x num_samples], column-major
  int num_features = 0, num_samples = 0;
  const int* classes = nullptr;  ///< [num_samples]
  int alpha = 0, beta = 0;       ///< feasible with all features
  int target = 0;                ///< sets of this size are small enough
  double seconds = 0.0;          ///< stop the search after this time
  int num_threads = 1;
};

struct SamplePair {
  int first, second;
};

struct CoverAnswer {
  std::vector<int> chosen;  ///< increasing, from 0; covers all pairs
  double bound = 0.0;       ///< no set has fewer features than this
  int lower_bound = 0;      ///< its ceiling
  /// For an exact solver: features in every set (in_all), and features in, or
  /// not in, every set smaller than `chosen`.
  std::vector<int> in_all, in_smaller, out_of_smaller;
  /// The pairs with positive multipliers in the bound, largest first.
  std::vector<SamplePair> active;
  bool out_of_time = false;
  double bytes = 0.0;  ///< memory of the pairs after the reductions
  int pairs_left = 0, features_left = 0;
};

/// Combines a greedy cover, a Lagrangian bound and local search. The answer
/// does not depend on the number of threads unless time runs out.
CoverAnswer search_cover(const CoverTask& task, Progress* progress = nullptr);

/// The number of features in which each two samples agree: [num_samples x
/// num_samples].
std::vector<int> count_agreements(const int* levels, int num_features,
                                  int num_samples);

}  // namespace fsknn
