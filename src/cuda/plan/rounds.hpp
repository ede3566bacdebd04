#pragma once

// The order in which the filter meets blocks of points: rounds, in launches.

#include <cstdint>
#include <vector>

#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

/// One launch of the filter, so that an interrupt waits for 0.1 s or so.
static constexpr double kFilterLaunchWork = 1.0e13;

/// Jobs that follow no rule: a block of rows against successive blocks of
/// columns, whose pairs a filled list has from first_delta blocks on.
struct ListedJob {
  std::int32_t row_block, column_block, first_delta, end_delta;
};

/// Jobs first_job .. end_job - 1 of a round. Job j is a slab, half a block, of
/// rows, the (j mod num_slabs)-th from first_slab on, against `span` successive
/// blocks of columns: row block I meets column block I + delta.
struct FilterJobs {
  std::int64_t num_blocks = 0;  ///< of columns
  std::int64_t first_slab = 0, num_slabs = 0;
  std::int64_t first_delta = 0, end_delta = 0;  ///< the round's
  std::int64_t span = 1;
  /// Row block I meets column block I + delta + shift.
  std::int64_t shift = 0;
  std::int64_t first_job = 0, end_job = 0;
  bool ends_round = false;
  /// The end of a round after which lists are settled.
  bool settles = false;
  /// And after which thresholds are guessed, by so many candidates; 0: they are
  /// not. See GuessRule.
  std::int32_t guess_rank = 0;
  /// Rows and columns are the same slots, and a pair is for both its lists.
  bool symmetric = true;
  /// Thresholds are not known yet: all pairs are written to their row's list,
  /// delta's at delta blocks from its start. Not with `symmetric`: what a graph
  /// fills it meets once from each side.
  bool fill = false;
  /// Of the cut after the round, where lists are cut: see Cut.
  std::int32_t filled = 0;
  bool counted = false;
  bool all_valid = false;
  /// Device memory; job j is a slab of listed[j / 2], the j % 2-th of its
  /// block. Null: jobs follow the rule.
  const ListedJob* listed = nullptr;
};

/// What jobs are to be made of.
struct FilterRounds {
  std::int64_t num_blocks = 0;  ///< of columns
  std::int64_t first_slab = 0, num_slabs = 0;
  bool symmetric = true;
  /// Whether the first round fills lists, with so many blocks to each; an odd
  /// number where symmetric.
  std::int64_t fill_blocks = 1;
  /// Where thresholds are known, and the first round fills nothing, no more
  /// blocks than these are met in it.
  std::int64_t most_first = INT64_MAX;
  std::int64_t depth = 0;  ///< features of the filter's rows
  std::int64_t chunk_size = 0;
  int multiprocessors = 1;
  /// What points have met after a round, to what they had before; at most 2.
  double growth = 2.0;
  /// Lists are settled before each of so many rounds, the last ones.
  /// Where thresholds are guessed none is.
  int settled_rounds = 0;
  /// Neighbours; and with what probability the guess that a round ends with may
  /// leave one out. 0: there are no guesses.
  std::int64_t k = 0;
  double risk = 0.0;
};

/// Jobs of so many blocks of columns that one launch has.
std::int64_t jobs_a_launch(const FilterRounds& rounds, std::int64_t span);

/// All jobs, in launches that are each a fraction of a second. Rounds double:
/// each lets a point meet as many others as all rounds before it; or more,
/// where by the guess before it no more than k of them become candidates.
/// Rounds are the same whichever slabs are asked for.
std::vector<FilterJobs> schedule_filter(const FilterRounds& rounds);

}  // namespace cuda
}  // namespace fsknn
