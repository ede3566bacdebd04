#pragma once

// The rounds of a filtered search: who stands where, and the one loop that
// starts the pairs of a schedule, cuts the lists, and lets other devices know.

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

/// Where each point of a filtered graph stands: its slot, and the row of the
/// lists of neighbours that its owner keeps in the order of the user's numbers.
struct FilterLayout {
  FilterLayout(const FilterBlocks& blocks, std::int64_t first_block,
               std::int64_t end_block, const PointOrder& order);
  std::int64_t num_owned() const {
    return static_cast<std::int64_t>(row_ids.size());
  }

  std::int64_t num_slots = 0;
  Slot first_slot, end_slot;         ///< owned
  std::vector<std::int32_t> places;  ///< [num_slots]; -1: padding
  std::vector<std::int32_t> slots;   ///< by place
  // Of owned points, in the order of the user's numbers.
  std::vector<std::int32_t> row_ids, row_places;
  std::vector<std::int32_t> list_rows;  ///< by place; -1: not owned
};

FilterLayout layout_of(const Search& search, const FilterTeam& team, int own);

/// [columns] the slot of each place.
std::vector<std::int32_t> slots_of(const std::vector<std::int32_t>& places,
                                   std::int64_t num_points);

/// The rounds of a graph, for a device of the team, and of so many queries on
/// the current device.
FilterRounds rounds_of_graph(const Search& search, const FilterTeam& team,
                             int own);
FilterRounds rounds_of_queries(const Search& search, std::int64_t num_rows);

/// Launches that these rounds take.
std::int64_t num_launches(const FilterRounds& rounds);

/// A pass of a filter over all pairs of its rows.
struct FilterPass {
  PairFilter* filter = nullptr;
  /// RowsInForm::slot_bytes(), as the plan has them.
  std::int64_t slot_bytes = 0;
  FilterRounds rounds;
  FilterWork work;  ///< but for its jobs
  Cut cut;          ///< but for what depends on the round
  /// The exact step of the lists, by which they are reranked before some of the
  /// rounds, and for which metric; null: they are not.
  const ExactStep* reranked = nullptr;
  const MetricEntry* metric = nullptr;
  /// With other devices of a graph; null: alone.
  Exchange* exchange = nullptr;
  /// Given after each launch; null: nobody, and launches do not wait for
  /// others.
  Workers* workers = nullptr;
  enum class Part { all, first_round, after_first } part = Part::all;
  TwoUnderWay under_way = {};
};

/// The pass and its exact step, of which all is known but what is told here:
/// what distances mean to its similarities, whether thresholds are estimated,
/// and whether lists are reranked by rounds. num_lists: of step.nearest. May
/// wait for the stream.
void begin_reranking(const Search& search, FilterPass& pass, ExactStep& step,
                     std::int64_t num_lists, const Stream& stream);

/// In which order blocks of rows meet blocks of columns: the one place where
/// pairs may be left out by whole tiles.
struct FilterSchedule {
  std::vector<FilterJobs> launches;
  /// What a launch needs, to the stream before it. Null: nothing.
  std::function<void(const FilterJobs& jobs, std::size_t launch)> before;
  /// After it was put there; gives the pieces of work that it ends. Null: one.
  std::function<std::int64_t(std::size_t launch)> after;
};

/// Starts the pass on the stream: each launch, and after each round the cut of
/// the lists. Returns whether to go on; if not, and nobody has failed, nothing
/// is under way.
bool run_schedule(FilterPass& pass, const FilterSchedule& schedule,
                  const Stream& stream);

/// The same by the pass's rounds.
bool run_rounds(FilterPass& pass, const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
