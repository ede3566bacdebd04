#pragma once

// Correlations of listed pairs, where no search is needed, and how uncertain
// they are.

#include "core/base/progress.hpp"
#include "core/search/contrast.hpp"
#include "cpu/search/outside.hpp"

namespace fsknn {
namespace cpu {

/// out: [rows x k] as `pairs`. It has the signed r of each row's point with
/// each point of its list, as a search gives it. It is `missing` where there is
/// no point, or where either was skipped.
void pair_correlations(const ExactPoints& exact, const ListMatrix& pairs,
                       int num_threads, Progress* progress, double missing,
                       double* out);

/// Fisher's z of listed pairs, and how its means vary with the samples.
struct ListMeans {
  ListMatrix pairs;
  const double* r = nullptr;  ///< [rows x k] of the pairs; NaN: not known
  /// [rows x k] 1, -1 or 0: what z is multiplied by.
  const double* towards = nullptr;
};

/// out: [rows] the sampling variance of the mean of `towards` z over the lists
/// of a point: a third is the mean over its own list, and two thirds are the
/// mean over the lists of its neighbours. It is the sum over samples of the
/// squared influence of each on that mean (the influence function of r:
/// Devlin, Gnanadesikan and Kettenring 1975). NaN for rows without a list.
/// of_pairs: [rows x k] the variance of each pair's z.
void list_variances(const ExactPoints& exact, const ListMeans& means,
                    int num_threads, Progress* progress, double* of_pairs,
                    double* out);

}  // namespace cpu
}  // namespace fsknn
