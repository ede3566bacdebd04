#pragma once

// What the bindings ask of the CPU engine. progress and stats may be null.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/pair_bins.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/search/between.hpp"
#include "core/search/plan.hpp"
#include "core/search/within.hpp"

namespace fsknn {
namespace cpu {

/// The threads worth starting to compare that many rows and columns. The filter
/// compares whole tiles of rows, some 16 numbers in one instruction.
int threads_for(int asked, std::int64_t rows, std::int64_t columns,
                std::int64_t features);

/// Finds the k nearest neighbours of every point (queries null; self excluded),
/// or of every query among the points. The answer equals core's brute_force(),
/// bit for bit. progress and stats may be null.
void find_neighbours(const Request& request, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats);

/// The k nearest among the pairs of two blocks, by the filter, from their
/// limits on. Equal to core's brute_between(), bit for bit. progress and stats
/// may be null.
void find_between(const Request& request, const Between& between,
                  const RowSource& points, WithinRows& answer,
                  Progress* progress, Stats* stats);

/// All pairs within a distance, by the filter with fixed thresholds. Equal to
/// core's brute_within(), bit for bit. progress and stats may be null.
void find_within(const Request& request, const Within& within,
                 const RowSource& points, const RowSource* queries,
                 WithinAnswer& answer, Progress* progress, Stats* stats);

/// The similarity of a correlation r: |r|, (1 + r) / 2, or r and 0 below 0.
enum class NetworkType { magnitude, both_signs, positive };

/// out: [num_points x powers], column-major: of each point the sum over all
/// others of their similarity to the power. A pair without a value counts 0; a
/// point that the request skips has `missing`. Sums are made in an order that
/// depends on the number of points alone. The metric is a correlation.
void connectivities(const Request& asked, NetworkType type,
                    const std::vector<double>& powers, const RowSource& points,
                    double missing, double* out, Progress* progress);

/// What is known of the pairs (from[i], to[i]), by number, from 0.
struct ListedPairs {
  std::vector<std::int32_t> from, to;
  // NaN where one of the points is left out, or a pair has no distance:
  std::vector<double> distance;
  std::vector<double> correlation;  ///< of products of rows of length 1
  std::vector<double> similarity;   ///< of metrics of sum min(a, b)
  std::vector<std::int32_t> entry;  ///< of tables of alleles: largest_entry()
  /// Samples that both have, where values are missing and pairs are compared
  /// over those; else empty.
  std::vector<std::int32_t> common;
};

/// Fills in the distances of listed pairs, which are those that any search of
/// the points finds, to the last bit.
void measure_pairs(const Request& request, const RowSource& points,
                   ListedPairs& pairs, Progress* progress);

/// Counts all pairs of points but those that the request skips; under
/// na_pairwise those that have a value. progress and stats may be null.
PairCounts count_pairs(const Request& asked, const PairBins& bins,
                       const RowSource& points, Progress* progress,
                       Stats* stats);

}  // namespace cpu
}  // namespace fsknn
