#include "cuda/plan/rounds.hpp"

#include <algorithm>

#include "cuda/plan/estimates.hpp"
#include "cuda/plan/filter_shape.hpp"

namespace fsknn {
namespace cuda {
namespace {

// The largest growth of a round after an estimate, for lists of the usual
// capacity. A growth of 1 + k / rank yields as many candidates as a doubling
// round without an estimate, but the errors of bounds add more. The fewer the
// rank counts, the more their number varies.
constexpr double kMostGrowth = 4.0;

/// The rank of the estimate after a round, where first_delta is the next block.
/// 0: no estimate.
std::int32_t estimate_before(const FilterRounds& rounds,
                             std::int64_t first_delta, std::int64_t end_delta) {
  if (rounds.risk <= 0.0 || first_delta >= end_delta) return 0;
  const std::int64_t met = rounds.symmetric ? 2 * first_delta - 1 : first_delta;
  const std::int64_t rank = estimated_rank(
      rounds.k,
      static_cast<double>(met) / static_cast<double>(rounds.num_blocks),
      rounds.risk);
  return rank < rounds.k ? static_cast<std::int32_t>(rank) : 0;
}

double growth_after(const FilterRounds& rounds, std::int32_t estimate_rank) {
  if (estimate_rank == 0) return rounds.growth;
  const double room = static_cast<double>(rounds.room);
  return std::min(room * kMostGrowth,
                  1.0 + room * static_cast<double>(rounds.k) /
                            static_cast<double>(estimate_rank));
}

}  // namespace

void use_capacity(FilterRounds& rounds, std::int32_t capacity) {
  rounds.room = capacity / candidates_for(rounds.k);
  // Fewer blocks than a list has room for, and an odd number of them.
  if (rounds.room > 1)
    rounds.fill_blocks = std::max(rounds.fill_blocks, (rounds.room - 1) | 1);
}

std::int64_t jobs_a_launch(const FilterRounds& rounds, std::int64_t span) {
  const double work = static_cast<double>(span) *
                      static_cast<double>(rounds.depth) * kFilterBlock *
                      kFilterBlock;
  return round_up(std::max<std::int64_t>(
                      1, static_cast<std::int64_t>(kFilterLaunchWork / work)),
                  round_up(rounds.multiprocessors, 2));
}

std::vector<FilterJobs> schedule_filter(const FilterRounds& rounds) {
  std::vector<FilterJobs> launches;
  const std::int64_t end_delta =
      rounds.symmetric ? rounds.num_blocks / 2 + 1 : rounds.num_blocks;
  // If thresholds are known, the first cuts only tighten them.
  const std::int64_t first_round =
      rounds.fill_blocks > 0
          ? rounds.fill_blocks
          : std::max<std::int64_t>(1,
                                   std::min(end_delta / 32, rounds.most_first));
  double growth = rounds.growth;
  for (std::int64_t first = 0; first < end_delta;) {
    FilterJobs jobs;
    jobs.num_blocks = rounds.num_blocks;
    jobs.first_slab = rounds.first_slab;
    jobs.num_slabs = rounds.num_slabs;
    jobs.symmetric = rounds.symmetric;
    jobs.fill = first == 0 && rounds.fill_blocks > 0;
    jobs.first_delta = first;
    // Row block I is compared with I - F + 1 .. I + F - 1, each from its own
    // side.
    const std::int64_t to_either_side = rounds.fill_blocks / 2;
    if (jobs.fill && rounds.symmetric) {
      jobs.symmetric = false;
      jobs.shift = rounds.num_blocks - to_either_side;
    }
    // The first round is the shortest. Each later one has as many blocks as all
    // before it, or more.
    jobs.end_delta = std::min(
        end_delta,
        first == 0
            ? first_round
            : std::max(first + 1, static_cast<std::int64_t>(
                                      static_cast<double>(first) * growth)));
    // Pairs that fill lists are all for the lists of their rows; some are
    // padding or the row itself. In a graph no later pair is.
    jobs.filled = jobs.fill
                      ? static_cast<std::int32_t>(jobs.end_delta * kFilterBlock)
                      : 0;
    jobs.all_valid = jobs.symmetric;
    const std::int64_t deltas = jobs.end_delta - first;
    // Long jobs save launch time; several for each multiprocessor balance their
    // ends.
    jobs.span = std::max<std::int64_t>(
        1, std::min(ceil_div(rounds.chunk_size, kFilterBlock),
                    deltas * jobs.num_slabs / (4 * rounds.multiprocessors)));
    const std::int64_t next =
        jobs.fill && rounds.symmetric ? to_either_side + 1 : jobs.end_delta;
    jobs.estimate_rank = estimate_before(rounds, next, end_delta);
    growth = growth_after(rounds, jobs.estimate_rank);
    const std::int64_t num_jobs = jobs.num_slabs * ceil_div(deltas, jobs.span);
    const std::int64_t a_launch = jobs_a_launch(rounds, jobs.span);
    for (std::int64_t job = 0; job < num_jobs; job += a_launch) {
      jobs.first_job = job;
      jobs.end_job = std::min(job + a_launch, num_jobs);
      jobs.ends_round = jobs.end_job == num_jobs;
      launches.push_back(jobs);
    }
    first = next;
  }
  int rounds_left = 0;
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) {
    if (!launch->ends_round) continue;
    launch->reranks = rounds_left > 0 &&
                      rounds_left <= rounds.reranked_rounds &&
                      launch->estimate_rank == 0;
    ++rounds_left;
  }
  return launches;
}

}  // namespace cuda
}  // namespace fsknn
