#pragma once

// Decides from a sample whether points are compared in the order of their keys
// or of a tree, that is, whether keys or boxes prune enough tiles of pairs. The
// answers are the same.

#include <vector>

#include "core/contract/groups.hpp"
#include "core/search/plan.hpp"
#include "cpu/search/keys.hpp"

namespace fsknn {
namespace cpu {

/// A row and the distance within which its neighbours are, in the units of
/// FilterForm::reach().
struct SampledRow {
  Place place;
  double reach;
  /// By groups: the row's own, and the reaches among the points of each group.
  /// One reach is for all of them together; -infinity: none is a neighbour.
  std::int32_t group = 0;
  std::vector<double> reach_in = {};

  /// The distance within which neighbours in the other row's group are.
  double reach_to(const SampledRow& other) const {
    return reach_in.empty() ? reach
                            : reach_in[static_cast<std::size_t>(other.group)];
  }
};

/// Samples rows with the distances of their k-th neighbours. queries is null if
/// the points are the rows. groups: of the points, or null.
std::vector<SampledRow> sampled_rows(const MetricEntry& metric,
                                     const DistanceRule& rule,
                                     const Kernels& kernels,
                                     const PreparedPoints& points,
                                     const PreparedPoints* queries,
                                     const PointGroups* groups, std::int64_t k);

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

/// The points whose boxes a sample estimates. All rows must be held.
struct BoxedPoints {
  const PreparedPoints& points;
  const PreparedPoints* queries = nullptr;  ///< null: the points are the rows
  bool both = true;  ///< the points take neighbours, not the queries alone
  /// The places of the points of each group, where each has its own tree; else
  /// empty.
  std::vector<std::vector<std::int32_t>> trees = {};
};

/// Estimates the share of pairs in tiles that boxes do not prune, by the leaves
/// of the trees around the sampled rows.
double share_by_boxes(const MetricEntry& metric,
                      const std::vector<SampledRow>& rows,
                      const BoxedPoints& of, int num_threads);

/// Whether a search has enough pairs for keys, or boxes, to pay at all.
bool keys_may_pay(const MetricEntry& metric, const PreparedPoints& rows,
                  const PreparedPoints& points);
/// Whether a share this small pays for the other order.
bool keys_pay(double share);

/// Whether a search of all pairs of these points is to use boxes: where the
/// request asks for them, or where they pay by its sample. sample() returns
/// rows as sampled_rows() does.
template <class Sample>
bool boxes_pay(const Request& request, const MetricEntry& metric,
               const PreparedPoints& points, Sample sample) {
  const AskedOrder asked = asked_order(request);
  if (!has_boxes(metric) || !points.held()) return false;
  if (asked != AskedOrder::as_it_pays) return asked == AskedOrder::tree;
  return keys_may_pay(metric, points, points) &&
         keys_pay(
             share_by_boxes(metric, sample(), {points}, request.num_threads));
}

}  // namespace cpu
}  // namespace fsknn
