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
#include "core/search/plan.hpp"
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

 private:
  /// The points (or queries) whose neighbours are searched for.
  struct Rows {
    bool are_points = false;
    PreparedPoints points;  ///< only if these are queries
    FilterRows filter;
  };
  /// The order of points, or of queries, in which tiles of pairs are pruned.
  struct Ordered {
    PointKeys keys;
    std::unique_ptr<SortedPoints>
        sorted;      ///< null if they are in a tree's order
    KeyTiles boxes;  ///< in that case
    std::unique_ptr<ChunkSpans> spans;

    const KeyTiles& tiles() const { return sorted ? sorted->tiles() : boxes; }
    void sort_by_limits(const std::vector<double>& limit) {
      if (!sorted) return;
      sorted->sort_by_limits(limit);
      spans->renew();
    }
  };
  /// Where an order pays, points and queries in it.
  struct Sorted {
    KeyKind kind = KeyKind::none;
    double share = 1.0;  ///< estimated share of pairs that are not pruned
    Ordered points, queries;
    bool pays() const { return kind != KeyKind::none; }
    Ordered& of(const Rows& rows) { return rows.are_points ? points : queries; }
  };
  const RowSource& source() const { return some_ ? *some_ : whole_; }
  void forget();
  void forget_filter();
  /// use is null if nothing is filtered.
  Rows fit(const Request& request, const RowSource* queries,
           const FilterUse* use, Progress* progress,
           bool shuffle_queries = false);
  /// As fit(), for a search that may use the order of the keys or of a tree.
  Rows fit_sorted(const Request& request, const RowSource* queries,
                  FilterUse use, const Within* within, Progress* progress,
                  Sorted& sorted);
  Rows fit_rows(const Request& request, const RowSource* queries,
                Progress* progress, bool shuffle_queries);
  Sorted look_at_keys(const Request& request, const PreparedPoints* queries,
                      const Within* within, Progress* progress) const;
  bool is_empty(const Rows& rows) const {
    return points_.size() == 0 || (!rows.are_points && rows.points.size() == 0);
  }
  Request suited_to(const Request& asked, const RowSource* queries);
  void prepare(const Request& request, Progress* progress);
  void fit_filter(const Request& request, const FilterUse& use, Rows& rows,
                  Progress* progress, bool in_tree = false);
  void meet_groups(const Request& request, Search& search) const;
  PointBlock columns() const;
  PointBlock block_of(const Rows& rows) const;
  static PointBlock in_order(PointBlock block, const Sorted& sorted,
                             Ordered& order, const Plan& plan);

  const RowSource& whole_;
  std::unique_ptr<FeatureSubset> some_;  ///< null: all features count
  const MetricEntry& asked_metric_;
  const std::vector<std::int64_t> skip_;
  const std::shared_ptr<const SampleWeights> weights_;
  const std::shared_ptr<const SampleCovariates> covariates_;
  const Kernels& kernels_;

  bool is_prepared_ = false;
  bool in_tree_ = false;       ///< prepared, and in the order of a tree
  double largest_ = -1;        ///< magnitude in the source; below 0: unknown
  const MetricEntry* metric_;  ///< the metric by which they are prepared
  int exponent_ = 0;
  PreparedPoints points_;
  FilterScale scale_;  ///< has no form until it is chosen
  FilterUse use_;      ///< the use for which the scale was chosen
  FilterRows filter_;
  static constexpr double kNoSlack = -1.0;
  double error_ = kNoSlack;  ///< the error that the scale's slack covers
};

}  // namespace cpu
}  // namespace fsknn
