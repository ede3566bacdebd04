#pragma once

// The order in which the filter compares blocks of points: rounds, divided into
// launches.

#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

/// The work of one launch of the filter, so that an interrupt waits for about
/// 0.1 s.
static constexpr double kFilterLaunchWork = 1.0e13;

/// Jobs that follow no rule: a block of rows against consecutive blocks of
/// columns, or the blocks first_delta .. end_delta - 1 of a list of them. In a
/// list that is filled, their pairs begin at first_delta blocks.
struct ListedJob {
  std::int32_t row_block, column_block, first_delta, end_delta;
};

/// Jobs first_job .. end_job - 1 of a round, if any. Job j compares a slab of
/// rows (half a block), the (j mod num_slabs)-th from first_slab on, with
/// `span` consecutive blocks of columns. Row block I is compared with column
/// block I + delta.
struct FilterJobs {
  std::int64_t num_blocks = 0;  ///< of columns
  std::int64_t first_slab = 0, num_slabs = 0;
  std::int64_t first_delta = 0, end_delta = 0;  ///< the round's
  std::int64_t span = 1;
  /// Row block I is compared with column block I + delta + shift.
  std::int64_t shift = 0;
  std::int64_t first_job = 0, end_job = 0;
  bool ends_round = false;
  bool ends_schedule = false;
  /// Whether lists are re-ranked exactly after this end of a round.
  bool reranks = false;
  /// The rank of the candidate that gives the estimated threshold after the
  /// round; 0: no estimate. See EstimateRule.
  std::int32_t estimate_rank = 0;
  /// Whether rows and columns are the same slots, and a pair is for both lists.
  bool symmetric = true;
  /// Whether thresholds are unknown: then all pairs are written to their row's
  /// list, those of delta at delta blocks from its start. Not with `symmetric`:
  /// a graph fills lists from each side.
  bool fill = false;
  /// For the cut after the round, where lists are cut: see Cut.
  std::int32_t filled = 0;
  bool counted = false;
  bool all_valid = false;
  /// Device memory: job j is the (j % 2)-th slab of listed[j / 2]. null: jobs
  /// follow the rule.
  const ListedJob* listed = nullptr;
  /// Device memory: the column blocks of listed jobs, and one number more that
  /// is not used. null: those of a job follow column_block. Only products of
  /// tiled rows take it.
  const std::int32_t* column_blocks = nullptr;
};

/// The order in which blocks of rows are compared with blocks of columns, as
/// launches. This is the one place where whole tiles of pairs may be pruned.
class FilterSchedule {
 public:
  virtual ~FilterSchedule() = default;
  /// Returns the next launch, which is valid until the next call; null: there
  /// is none.
  virtual const FilterJobs* next() = 0;
};

/// Launches that do not depend on the candidates of earlier ones.
class KnownSchedule : public FilterSchedule {
 public:
  explicit KnownSchedule(std::vector<FilterJobs> launches)
      : launches_(std::move(launches)) {
    if (!launches_.empty()) launches_.back().ends_schedule = true;
  }
  const FilterJobs* next() override {
    return next_ < launches_.size() ? &launches_[next_++] : nullptr;
  }

 private:
  std::vector<FilterJobs> launches_;
  std::size_t next_ = 0;
};

/// The inputs of a schedule.
struct FilterRounds {
  std::int64_t num_blocks = 0;  ///< of columns
  std::int64_t first_slab = 0, num_slabs = 0;
  bool symmetric = true;
  /// The number of blocks with which the first round fills each list; 0: it
  /// fills none. Odd if symmetric.
  std::int64_t fill_blocks = 1;
  /// The capacity of the lists, as a multiple of candidates_for(k). With so
  /// many times the room, rounds may add so many times the candidates.
  std::int64_t room = 1;
  /// The most blocks in a first round that fills no list, because thresholds
  /// are known.
  std::int64_t most_first = INT64_MAX;
  std::int64_t depth = 0;  ///< features of the filter's rows
  std::int64_t chunk_size = 0;
  int multiprocessors = 1;
  /// The growth, in a round, of the number of blocks that points have met; at
  /// most 2.
  double growth = 2.0;
  /// The number of last rounds before which lists are re-ranked exactly. There
  /// are none if thresholds are estimated.
  int reranked_rounds = 0;
  /// The number of neighbours, and the probability that the estimate after a
  /// round excludes one. 0: there are no estimates.
  std::int64_t k = 0;
  double risk = 0.0;
};

/// Uses lists of at least candidates_for(k): fills more of them at once, and
/// sets their room.
void use_capacity(FilterRounds& rounds, std::int32_t capacity);

/// The number of jobs in a launch, each with `span` blocks of columns.
std::int64_t jobs_a_launch(const FilterRounds& rounds, std::int64_t span);

/// All jobs, in launches of a fraction of a second. Each round compares a point
/// with as many others as all rounds before. It compares more if, by the
/// estimate, at most k of them become candidates. Rounds do not depend on the
/// requested slabs.
std::vector<FilterJobs> schedule_filter(const FilterRounds& rounds);

}  // namespace cuda
}  // namespace fsknn
