#pragma once

// All pairs of points within a distance: the question, and the part that
// backends share. Backends report pairs that may be within it, with their
// accumulated value. The collector counts those that are, and then stores them.

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

/// The parameters besides the Request (whose k is ignored).
struct Within {
  /// The largest distance: one for all rows, or one for each.
  std::vector<double> limits;
  /// A graph's pairs are stored once, with the lower number; else with both.
  bool once = false;
  /// A pair counts if it is within the limit of either of its points. For
  /// queries `point_limits` are the limits of the points, one for all or one
  /// for each; for a graph `limits` are.
  bool either = false;
  std::vector<double> point_limits;
  /// The number of entries that fit.
  double most = std::numeric_limits<double>::infinity();
  /// Pairs that are kept while counting, to avoid a second pass.
  std::int64_t most_kept = std::int64_t{1} << 24;

  double limit(std::int64_t row) const { return one_of(limits, row); }
  /// The largest distance that counts for a row and that point.
  double limit(std::int64_t row, std::int64_t point) const {
    return either ? std::max(limit(row), point_limit(point)) : limit(row);
  }
  /// With `either`: the limit of a point that queries are compared with.
  double point_limit(std::int64_t point) const {
    return one_of(point_limits.empty() ? limits : point_limits, point);
  }
  /// The largest of the points' limits: beyond its own limit and this, no pair
  /// of a query counts. -infinity for a graph, which reports pairs to both
  /// points.
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

/// There are more entries than fit.
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
  /// A distance within which all fit; -infinity: none.
  double fits;
};

/// A histogram of distances of any magnitude: 128 bins for each power of two,
/// so that nearly three digits are known.
class DistanceTally {
 public:
  DistanceTally();
  void add(double distance);
  void add_all(const DistanceTally& other);
  double total() const;
  /// A distance such that at most `most` of the added distances are within it;
  /// -infinity: none.
  double reach(double most) const;

 private:
  /// The counts of the bins of each power of two; empty if it has no distance.
  /// In ascending order, negative distances first.
  std::vector<std::vector<std::int64_t>> count_;
};

class WithinCollector {
 public:
  /// graph: rows are the points themselves.
  WithinCollector(const Request& request, const Within& within,
                  std::int64_t num_rows, bool graph);

  /// Collects pairs on one thread. They count once this is destroyed.
  class Taker {
   public:
    explicit Taker(WithinCollector& all) : all_(&all) {}
    Taker(Taker&& other) noexcept;
    Taker& operator=(Taker&&) = delete;
    ~Taker();
    /// Takes each pair once, by the ids of row and point. value:
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

  /// Allocates the answer after each pair was taken once. Returns true if the
  /// answer is complete; else all pairs must be taken again. Throws
  /// TooManyPairs.
  bool allocate(WithinAnswer& answer);
  /// Sorts each row's entries at the end.
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

/// A sample of the points (and of the queries). If far more pairs are within
/// the distance than fit, the sample detects this before all are counted. The
/// constructor's arguments must outlive it.
class WithinSample {
 public:
  WithinSample(const Request& request, const Within& within,
               const RowSource& points, const RowSource* queries);
  /// False if nearly all existing pairs would fit, so that no sample is needed.
  bool needed() const { return points_ != nullptr; }
  /// The sample, without points that the request skips.
  const RowSource& points() const { return *points_; }
  const RowSource* queries() const { return queries_.get(); }
  /// The limit of a row of the sample: of a query, or else of a point.
  double limit(std::int64_t row) const;
  /// inside: the distances of the sample's pairs that count; in a graph each
  /// pair counts once for each of its points. Throws TooManyPairs.
  void check(const DistanceTally& inside) const;

 private:
  const Within& within_;
  double all_;
  std::unique_ptr<RowSubset> points_, queries_;
};

/// Computes a sample's pairs by definition, one after another, and checks it.
void check_sample(const Request& asked, const Within& within,
                  const RowSource& points, const RowSource* queries);

/// The answer by definition, as brute_force(). queries: null for the graph.
void brute_within(const Request& asked, const Within& within,
                  const RowSource& points, const RowSource* queries,
                  WithinAnswer& answer);

}  // namespace fsknn
