#pragma once

// The rounds of a filtered search: the places of points, and the one loop that
// starts the pairs of a schedule, cuts the lists, and informs other devices.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuda/device/two_under_way.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/filter/pair_filter.hpp"
#include "cuda/search/exchange.hpp"
#include "cuda/search/search.hpp"

namespace fsknn {
namespace cuda {

/// The position of each point of a filtered graph: its slot, and the row of the
/// lists of neighbours that its owner keeps, part by part, in the order of the
/// user's numbers.
struct FilterLayout {
  FilterLayout() = default;
  /// part_blocks: the first block of each part that is owned, and the end.
  /// of_slots: the points' places.
  FilterLayout(const FilterBlocks& blocks,
               const std::vector<std::int64_t>& part_blocks,
               const PointOrder& order, std::vector<std::int32_t> of_slots,
               int num_threads = 1);
  std::int64_t num_owned() const {
    return static_cast<std::int64_t>(row_ids.size());
  }

  std::int64_t num_slots = 0;
  Slot first_slot = {0}, end_slot = {0};  ///< owned
  std::vector<std::int32_t> places;       ///< [num_slots]; -1: padding
  std::vector<std::int32_t> slots;        ///< by place
  // For owned points, in the order of the parts and of the user's numbers.
  std::vector<std::int32_t> row_ids, row_places;
  std::vector<std::int64_t> part_rows;  ///< where each part begins, and the end
  /// By place: the row in its part; -1: not owned.
  std::vector<std::int32_t> list_rows;
};

/// Returns the layout of a device's part, with points in random order.
FilterLayout layout_of(const Search& search, const FilterTeam& team, int own);
/// Returns the number of points that a device of a team owns.
std::int64_t owned_points(const Search& search, const FilterTeam& team,
                          int own);

/// [count] first, first + 1, ...
std::vector<std::int32_t> counting(std::int64_t first, std::int64_t count);

/// [columns] the slot of each place.
std::vector<std::int32_t> slots_of(const std::vector<std::int32_t>& places,
                                   std::int64_t num_points,
                                   int num_threads = 1);

/// Return the rounds of a graph for a device of the team, and of this many
/// queries on the current device.
FilterRounds rounds_of_graph(const Search& search, const FilterTeam& team,
                             int own);
FilterRounds rounds_of_queries(const Search& search, std::int64_t num_rows);

/// Returns the number of launches in these rounds.
std::int64_t num_launches(const FilterRounds& rounds);

/// A pass of a filter over all pairs of its rows.
struct FilterPass {
  PairFilter* filter = nullptr;
  /// RowsInForm::slot_bytes() of the plan.
  std::int64_t slot_bytes = 0;
  FilterRounds rounds;
  FilterWork work;  ///< without its jobs
  Cut cut;          ///< without the round's settings
  /// The exact step that re-ranks lists before some of the rounds, and its
  /// metric; null: there is no re-ranking.
  const ExactStep* reranked = nullptr;
  const MetricEntry* metric = nullptr;
  /// The exchange with other devices of a graph; null: there are none.
  Exchange* exchange = nullptr;
  /// Receives progress after each launch; null: there is none, and launches do
  /// not wait for others.
  Workers* workers = nullptr;
  enum class Part { all, first_round, after_first } part = Part::all;
  TwoUnderWay under_way = {};
};

/// Completes the pass and its exact step: the conversion of distances to its
/// similarities, whether thresholds are estimated, and whether rounds re-rank
/// lists. num_lists: of step.nearest. May wait for the stream.
void begin_reranking(const Search& search, FilterPass& pass, ExactStep& step,
                     std::int64_t num_lists, const Stream& stream);

/// The work of a search around each launch, which has a number from 0.
struct AroundLaunch {
  /// Prepares a launch on the stream before it. Null: nothing to prepare.
  std::function<void(const FilterJobs& jobs, std::size_t launch)> before;
  /// Is called after the launch; returns the pieces of work that it completes,
  /// or kStop. Null: one.
  std::function<std::int64_t(std::size_t launch)> after;
  static constexpr std::int64_t kStop = -1;
};

/// Starts the pass on the stream: each launch, and after each round the cut of
/// the lists. Where candidates are pairs in one list, there are no rounds, and
/// `around` takes them. Returns whether to continue. If not, and no device has
/// failed, no work is in progress.
bool run_schedule(FilterPass& pass, FilterSchedule& schedule,
                  const AroundLaunch& around, const Stream& stream);

/// Does the same with the pass's rounds.
bool run_rounds(FilterPass& pass, const Stream& stream);

/// Returns the first thresholds where limits are known. places: of the slots;
/// limit_at(place) returns a point's limit. Infinity for points that accept no
/// pair, NaN for padding.
template <class LimitAt>
std::vector<float> thresholds_of_limits(const MetricEntry& metric,
                                        const DistanceRule& rule,
                                        const SimilarityUnits& units,
                                        const std::vector<std::int32_t>& places,
                                        LimitAt limit_at) {
  std::vector<float> thresholds(places.size(), std::nanf(""));
  // Usually all limits are equal.
  double last = -HUGE_VAL;
  float threshold = HUGE_VALF;
  for (std::size_t slot = 0; slot < places.size(); ++slot) {
    if (places[slot] < 0) continue;
    const double limit = limit_at(places[slot]);
    if (limit != last) {
      last = limit;
      threshold = threshold_of_limit(metric, rule, units, limit);
    }
    thresholds[slot] = threshold;
  }
  return thresholds;
}

}  // namespace cuda
}  // namespace fsknn
