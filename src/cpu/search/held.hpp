#pragma once

// One set of prepared points that is searched many times. The points are read,
// prepared and packed once for the same features. Other weights or covariates
// need another set of the same source.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/source.hpp"
#include "core/rows/subset.hpp"
#include "core/search/between.hpp"
#include "core/search/within.hpp"
#include "cpu/filter/form.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/keys.hpp"
#include "cpu/search/prepared_pairs.hpp"

namespace fsknn {
namespace cpu {

class Search;

class HeldPoints {
 public:
  /// Uses metric, weights, covariates, points to skip and instruction set of
  /// `asked`. It reads nothing before the first search. `points` must outlive
  /// this object. Rows that are made when read, or are on disk, are not held:
  /// the exact step reads them again. No value may be missing.
  HeldPoints(const Request& asked, const RowSource& points);
  HeldPoints(const HeldPoints&) = delete;
  HeldPoints& operator=(const HeldPoints&) = delete;

  /// Later searches use these features of the points (from 0), in this order,
  /// each any number of times; an empty list selects all. Weights and queries
  /// have the selected features.
  void choose_features(const std::vector<std::int32_t>& numbers);

  // Searches, one at a time. A `request` must agree with that of the
  // constructor. queries is null for the graph of the points. progress and
  // stats may be null.

  /// As the engine's find_neighbours(); groups are allowed for a graph only.
  void find_neighbours(const Request& request, const RowSource* queries,
                       const Neighbours& out, Progress* progress, Stats* stats);
  /// As find_within(), but without sampling first.
  void find_within(const Request& request, const Within& within,
                   const RowSource* queries, WithinAnswer& answer,
                   Progress* progress, Stats* stats);
  /// As the engine's find_between(). The points are the later of its blocks;
  /// `others` is the other block, or null. The request treats the others as
  /// queries of the points.
  void find_between(const Request& request, const Between& between,
                    const BlockRows* others, WithinRows& answer,
                    Progress* progress, Stats* stats);

  /// The memory of the prepared points.
  double bytes() const;

 private:
  /// The points in a filter's form.
  struct Packed {
    FilterScale scale;
    FilterUse use;  ///< the use for which the scale was chosen
    FilterRows rows;
    double error = kNoSlack;  ///< the error that the scale's slack covers
    /// The same in the order of their keys, for queries; null: not needed so
    /// far.
    std::unique_ptr<const SortedPoints> sorted;
  };
  /// The points (or queries) whose neighbours are searched for.
  struct Rows {
    bool are_points = false;
    PreparedPoints points;  ///< only if these are queries
    FilterRows filter;
    /// The points in the same form.
    const Packed* columns = nullptr;
    /// The rows in the order of their keys; null: rows and points are in the
    /// order of their places.
    std::unique_ptr<SortedPoints> sorted;
  };
  /// The share of pairs that the points' keys do not prune, as it was sampled
  /// for lists of k neighbours.
  struct SampledShare {
    std::int64_t k = 0;
    double share = 1.0;
  };
  const RowSource& source() const { return some_ ? *some_ : whole_; }
  void forget();
  /// use is null if nothing is filtered.
  Rows fit(const Request& request, const RowSource* queries,
           const FilterUse* use, Progress* progress,
           bool shuffle_queries = false);
  /// As fit(), for a search that may use the order of the keys. within: null
  /// for lists.
  Rows fit_sorted(const Request& request, const RowSource* queries,
                  FilterUse use, const Within* within, Progress* progress);
  Rows fit_rows(const Request& request, const RowSource* queries,
                Progress* progress, bool shuffle_queries);
  /// Returns the share of pairs to filter if the order of the keys pays, or
  /// more than 1. query_keys: set for queries.
  double share_by_keys(const Request& request, const Rows& rows,
                       const Within* within, PointKeys& query_keys,
                       Progress* progress);
  bool is_empty(const Rows& rows) const {
    return points_.size() == 0 || (!rows.are_points && rows.points.size() == 0);
  }
  Request suited_to(const Request& asked, const RowSource* queries);
  void prepare(const Request& request, Progress* progress);
  /// The points as they are packed for this use; may be null.
  std::shared_ptr<Packed>& packed_for(const FilterUse& use) {
    return packed_[use.k > 0 ? 0 : 1];
  }
  bool serves(const Packed* packed, const FilterUse& use, const Rows& rows,
              int num_threads) const;
  void fit_filter(const Request& request, const FilterUse& use, Rows& rows,
                  Progress* progress);
  void meet_groups(const Request& request, const PointBlock& all,
                   Search& search) const;
  const PreparedPoints& points_of(const Rows& rows) const {
    return rows.are_points ? points_ : rows.points;
  }
  PointBlock columns(const Rows& rows) const;
  PointBlock block_of(const Rows& rows) const;

  const RowSource& whole_;
  std::unique_ptr<FeatureSubset> some_;  ///< null: all features count
  const MetricEntry& asked_metric_;
  const std::vector<std::int64_t> skip_;
  const std::shared_ptr<const SampleWeights> weights_;
  const std::shared_ptr<const SampleCovariates> covariates_;
  const Kernels& kernels_;

  bool is_prepared_ = false;
  double largest_ = -1;        ///< magnitude in the source; below 0: unknown
  const MetricEntry* metric_;  ///< the metric by which they are prepared
  int exponent_ = 0;
  PreparedPoints points_;
  static constexpr double kNoSlack = -1.0;
  Packed unfiltered_;  ///< the form of a search without a filter
  /// For lists and for pairs within a distance: the same, if both have the
  /// same form.
  std::shared_ptr<Packed> packed_[2];
  PointKeys keys_;  ///< of the points; empty until they are needed
  std::vector<double> low_keys_;  ///< their lower ends, ascending
  SampledShare of_graph_, of_queries_;
};

}  // namespace cpu
}  // namespace fsknn
