#pragma once

// All pairs of points within a distance: what is asked for, and the part that
// backends share. They bring pairs that may be within, with what was summed
// over their features; here those that are within are counted, and then filled
// in.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/errors.hpp"
#include "core/base/numbers.hpp"
#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"
#include "core/rows/subset.hpp"
#include "core/search/within_answer.hpp"

namespace fsknn {

/// What is asked for besides the Request (whose k is not read).
struct Within {
  /// The largest distance that counts: one for all rows, or one for each.
  std::vector<double> limits;
  /// A graph's pairs once each, with the lower number; else with both.
  bool once = false;
  /// A pair counts that is within the limit of either of its points: of queries
  /// `point_limits` are the limits of the points that they meet, one for all or
  /// one for each; of a graph `limits` are.
  bool either = false;
  std::vector<double> point_limits;
  /// Entries that there is room for.
  double most = std::numeric_limits<double>::infinity();
  /// Pairs that are kept from counting, so that no second pass is needed.
  std::int64_t most_kept = std::int64_t{1} << 24;

  double limit(std::int64_t row) const { return one_of(limits, row); }
  /// The largest distance that a row's pair with that point may have.
  double limit(std::int64_t row, std::int64_t point) const {
    return either ? std::max(limit(row), point_limit(point)) : limit(row);
  }
  /// With `either`: that of a point that queries meet.
  double point_limit(std::int64_t point) const {
    return one_of(point_limits.empty() ? limits : point_limits, point);
  }
  /// No pair of a row of queries is within another's limit that is farther than
  /// its own limit and this. A graph's pair is met for both its points.
  double reach_of_points() const {
    if (!either || point_limits.empty())
      return -std::numeric_limits<double>::infinity();
    return *std::max_element(point_limits.begin(), point_limits.end());
  }

 private:
  static double one_of(const std::vector<double>& all, std::int64_t at) {
    return all.size() == 1 ? all[0] : all[static_cast<std::size_t>(at)];
  }
};

/// More entries than there is room for.
struct TooManyPairs : Failure {
  TooManyPairs(double count, bool is_estimate, double room, double limit)
      : Failure("too many pairs are within the distance"),
        pairs(count),
        estimated(is_estimate),
        most(room),
        fits(limit) {}
  double pairs;
  bool estimated;
  double most;
  /// A distance within which there is room for all; -infinity: none.
  double fits;
};

/// How many pairs there are at which distance, whatever its magnitude: 128 bins
/// for each power of two, so that three digits are known or nearly so.
class DistanceTally {
 public:
  DistanceTally();
  void add(double distance);
  void add_all(const DistanceTally& other);
  double total() const;
  /// A distance such that no more than `most` of those added are at most that
  /// far; -infinity: none.
  double reach(double most) const;

 private:
  /// Of each power of two the counts of its bins, none where it has no
  /// distance; in ascending order, those of distances below 0 first.
  std::vector<std::vector<std::int64_t>> count_;
};

class WithinCollector {
 public:
  /// graph: rows are the points themselves.
  WithinCollector(const Request& request, const Within& within,
                  std::int64_t num_rows, bool graph);

  /// One thread's hand. What it took counts once it is destroyed.
  class Taker {
   public:
    explicit Taker(WithinCollector& all) : all_(&all) {}
    Taker(Taker&& other) noexcept;
    Taker& operator=(Taker&&) = delete;
    ~Taker();
    /// Row and point by their numbers from 0, each pair once. value:
    /// DistanceRule::value().
    void take(AnswerRow row, PointId point, double value);

   private:
    struct Pair {
      std::int32_t row, column;
      double value;
    };
    friend class WithinCollector;
    void hand_over();
    WithinCollector* all_;
    DistanceTally tally_;
    std::vector<Pair> pairs_;
  };

  /// After all pairs were taken once: makes room. Returns whether that was all;
  /// else all pairs are to be taken once more. Throws TooManyPairs.
  bool allocate(WithinAnswer& answer);
  /// At the end: brings each row's entries in order.
  void finish();

  double entries() const { return entries_; }

 private:
  double distance_of(double value) const {
    return unit_dot_ ? metric_.finish(value, 0.0, 0.0) : value;
  }
  bool is_self(std::int32_t row, std::int32_t column) const {
    return !request_.query_self.empty() &&
           request_.query_self[static_cast<std::size_t>(row)] == column;
  }
  bool is_within(std::int32_t row, std::int32_t column, double distance) const;
  void count(std::int32_t row, double distance, DistanceTally& tally);
  void fill(std::int32_t row, std::int32_t index, double distance,
            double value);
  void offer(std::int32_t row, std::int32_t column, double value,
             DistanceTally& tally);

  const Request& request_;
  const Within& within_;
  const MetricEntry& metric_;
  const bool graph_, unit_dot_;
  std::int64_t num_rows_;
  std::unique_ptr<std::atomic<std::int32_t>[]> count_;
  std::vector<std::int32_t> counts_;
  DistanceTally tally_;
  std::mutex lock_;
  std::vector<std::vector<Taker::Pair>> kept_;
  std::int64_t num_kept_ = 0;
  std::atomic<bool> keeps_{true};
  WithinAnswer* answer_ = nullptr;  ///< null: still counting
  double entries_ = 0;
};

/// Some of the points (and of the queries): where there are far more pairs than
/// there is room for, theirs tell so before the work of counting all. What it
/// is made of must outlive it.
class WithinSample {
 public:
  WithinSample(const Request& request, const Within& within,
               const RowSource& points, const RowSource* queries);
  /// Else there is nothing to look at: all pairs there are would nearly fit.
  bool needed() const { return points_ != nullptr; }
  /// None of them is one that the request skips.
  const RowSource& points() const { return *points_; }
  const RowSource* queries() const { return queries_.get(); }
  /// Of the sample's rows, which are its queries, or else its points.
  double limit(std::int64_t row) const;
  /// inside: the distances of the sample's pairs that are within, of a graph
  /// each pair once for each of its points. Throws TooManyPairs.
  void check(const DistanceTally& inside) const;

 private:
  const Within& within_;
  double all_;
  std::unique_ptr<RowSubset> points_, queries_;
};

/// Takes a sample's pairs by the definition, one after another, and checks it.
void check_sample(const Request& asked, const Within& within,
                  const RowSource& points, const RowSource* queries);

/// The answer by definition, as brute_force(). queries: null for the graph.
void brute_within(const Request& asked, const Within& within,
                  const RowSource& points, const RowSource* queries,
                  WithinAnswer& answer);

}  // namespace fsknn
