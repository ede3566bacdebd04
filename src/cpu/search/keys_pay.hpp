#pragma once

// Decides from a sample whether points are compared in the order of their keys
// or of a tree, that is, whether keys or boxes prune enough tiles of pairs. The
// answers are the same.

#include <vector>

#include "core/search/plan.hpp"
#include "cpu/search/keys.hpp"

namespace fsknn {
namespace cpu {

/// A row and the distance within which its neighbours are, in the units of
/// FilterForm::reach().
struct SampledRow {
  Place place;
  double reach;
};

/// Samples rows with the distances of their k-th neighbours. queries is null if
/// the points are the rows.
std::vector<SampledRow> sampled_rows(const MetricEntry& metric,
                                     const DistanceRule& rule,
                                     const Kernels& kernels,
                                     const PreparedPoints& points,
                                     const PreparedPoints* queries,
                                     std::int64_t k);

/// Samples rows whose limits are known; limit: [places].
std::vector<SampledRow> rows_within(const MetricEntry& metric,
                                    const DistanceRule& rule,
                                    const std::vector<double>& limit);

/// The lower ends of keys, ascending.
std::vector<double> low_ends(const PointKeys& keys);

/// Estimates the share of pairs, between rows like these and points with these
/// low_ends(), that is in tiles which keys do not prune. row_keys: of the rows.
double share_by_keys(KeyKind kind, const std::vector<SampledRow>& rows,
                     const PointKeys& row_keys, const std::vector<double>& low);

/// Estimates the share of pairs in tiles that boxes do not prune, by the leaves
/// of the tree around the sampled rows. queries is null if the points are the
/// rows. All rows must be held.
double share_by_boxes(const MetricEntry& metric,
                      const std::vector<SampledRow>& rows,
                      const PreparedPoints& points,
                      const PreparedPoints* queries, int num_threads);

/// Whether a search has enough pairs for keys, or boxes, to pay at all.
bool keys_may_pay(const MetricEntry& metric, const PreparedPoints& rows,
                  const PreparedPoints& points);
/// Whether a share this small pays for the other order.
bool keys_pay(double share);

}  // namespace cpu
}  // namespace fsknn
