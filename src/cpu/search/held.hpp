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
#include "cpu/search/keys_pay.hpp"
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
    /// The same in the order of their keys, for queries, or the boxes of their
    /// tiles in the order of a tree; null: not needed so far.
    std::unique_ptr<const SortedPoints> sorted;
    std::unique_ptr<const KeyTiles> boxes;
  };
  /// The points (or queries) whose neighbours are searched for.
  struct Rows {
    bool are_points = false;
    PreparedPoints points;  ///< only if these are queries
    FilterRows filter;
    /// The points in the same form.
    const Packed* columns = nullptr;
    /// The order of rows and points in which tiles of pairs are pruned.
    KeyKind order = KeyKind::none;
    /// Each group is put in the order of a tree of its own (meet_groups()).
    bool in_group_trees = false;
    std::unique_ptr<SortedPoints> sorted;  ///< in the order of keys
    KeyTiles boxes;                        ///< of queries, in that of a tree
    std::unique_ptr<ChunkSpans> spans, column_spans;

    bool is_ordered() const { return order != KeyKind::none; }
    const KeyTiles& column_tiles() const {
      if (order == KeyKind::box) return *columns->boxes;
      return are_points ? sorted->tiles() : columns->sorted->tiles();
    }
    const KeyTiles& row_tiles() const {
      if (are_points) return column_tiles();
      return order == KeyKind::box ? boxes : sorted->tiles();
    }
    void sort_by_limits(const std::vector<double>& limit) {
      if (sorted == nullptr) return;
      sorted->sort_by_limits(limit);
      spans->renew();
    }
  };
  /// The order in which tiles of pairs are pruned, and the estimated share of
  /// pairs that are left.
  struct Order {
    KeyKind kind = KeyKind::none;
    double share = 1.0;
  };
  /// An order as it was chosen by a sample for lists of k neighbours.
  struct SampledOrder {
    std::int64_t k = 0;
    AskedOrder asked = AskedOrder::as_it_pays;
    Order order;
  };
  const RowSource& source() const { return some_ ? *some_ : whole_; }
  void forget();
  /// What is searched for, besides the request.
  struct Asked {
    const RowSource* queries = nullptr;  ///< null: the points
    const Within* within = nullptr;      ///< null: lists
    /// Points take neighbours among the queries, too.
    bool both = false;
  };
  /// Prepares a search, which may use the order of the keys or of a tree.
  Rows fit_sorted(const Request& request, const Asked& search, FilterUse use,
                  Progress* progress);
  Rows fit_rows(const Request& request, const RowSource* queries,
                Progress* progress, bool shuffle_queries);
  /// Returns the order that pays, or the one that is asked for. query_keys: set
  /// for queries in the order of keys.
  Order choose_order(const Request& request, const Rows& rows,
                     const Asked& search, PointKeys& query_keys,
                     Progress* progress);
  Order sample_order(const Request& request, const Rows& rows,
                     const Asked& search, KeyKind kind, bool boxes,
                     const PointKeys& query_keys) const;
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
                  Progress* progress, bool in_tree);
  void put_in_tree(int num_threads);
  /// The places of the points of each group.
  std::vector<std::vector<std::int32_t>> places_of(
      const PointGroups& groups) const;
  void meet_groups(const Request& request, const Plan& plan, const Rows& rows,
                   Search& search) const;
  const PreparedPoints& points_of(const Rows& rows) const {
    return rows.are_points ? points_ : rows.points;
  }
  static void span_chunks(Rows& rows, std::int64_t num_columns,
                          const Plan& plan);
  PointBlock columns(const Rows& rows) const;
  PointBlock block_of(const Rows& rows) const;

  const RowSource& whole_;
  std::unique_ptr<FeatureSubset> some_;  ///< null: all features count
  /// Its samples are the chosen features (for_samples()).
  MetricEntry asked_metric_;
  const std::vector<std::int64_t> skip_;
  const std::shared_ptr<const SampleWeights> weights_;
  const std::shared_ptr<const SampleCovariates> covariates_;
  const Kernels& kernels_;

  bool is_prepared_ = false;
  bool in_tree_ = false;       ///< prepared, and in the order of a tree
  double tree_share_ = 1.0;    ///< the share of pairs that its boxes leave
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
  SampledOrder of_graph_, of_queries_;
};

}  // namespace cpu
}  // namespace fsknn
