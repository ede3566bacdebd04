#pragma once

// How the filter meets all pairs for a search within a distance: one round, in
// stretches of jobs, each with no more candidates than their list has room for.
// Plain C++.

#include <algorithm>
#include <cstdint>

#include "cuda/plan/rounds.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

/// All jobs of one device, some at a time.
class WithinJobs {
 public:
  /// Two jobs, the fewest that are met at a time, never have more pairs than
  /// this, of one block of columns.
  static constexpr std::int64_t kLeastCapacity = kFilterBlock * kFilterBlock;

  /// rounds: which slabs, how many blocks of columns, and whether these are the
  /// same slots; of the rest depth, chunk_size and multiprocessors.
  WithinJobs(const FilterRounds& rounds, std::int64_t capacity)
      : capacity_(capacity) {
    FilterJobs& j = jobs_;
    j.num_blocks = rounds.num_blocks;
    j.first_slab = rounds.first_slab;
    j.num_slabs = rounds.num_slabs;
    j.end_delta =
        rounds.symmetric ? rounds.num_blocks / 2 + 1 : rounds.num_blocks;
    j.span = std::max<std::int64_t>(
        1,
        std::min({ceil_div(rounds.chunk_size, kFilterBlock),
                  capacity / kLeastCapacity,
                  j.end_delta * j.num_slabs / (4 * rounds.multiprocessors)}));
    num_jobs_ = j.num_slabs * ceil_div(j.end_delta, j.span);
    most_ = jobs_a_launch(rounds, j.span);
    // At first as many as the device does at once: a sample.
    wanted_ = std::min(most_, round_up(rounds.multiprocessors, 2));
  }

  /// A slab of rows by a block of columns each.
  std::int64_t num_tiles() const { return jobs_.num_slabs * jobs_.end_delta; }
  bool done() const { return jobs_.first_job == num_jobs_; }
  /// The jobs to be done now.
  const FilterJobs& next() {
    jobs_.end_job = std::min(jobs_.first_job + wanted_, num_jobs_);
    return jobs_;
  }
  /// Pairs of slots of these, at most.
  double pairs() const {
    return static_cast<double>(jobs_.end_job - jobs_.first_job) *
           static_cast<double>(jobs_.span) * (kFilterSlab * kFilterBlock);
  }
  /// How many candidates they had. Returns whether there was room for all;
  /// fewer of these jobs are next if not.
  bool had(std::int64_t candidates) {
    const std::int64_t jobs = jobs_.end_job - jobs_.first_job;
    // Half of what there would be room for.
    const double room =
        static_cast<double>(capacity_) / 2 * static_cast<double>(jobs) /
        static_cast<double>(std::max<std::int64_t>(1, candidates));
    const bool fits = candidates <= capacity_;
    wanted_ =
        room < static_cast<double>(most_)
            ? std::max<std::int64_t>(2, static_cast<std::int64_t>(room) / 2 * 2)
            : most_;
    if (!fits) return false;
    jobs_.first_job = jobs_.end_job;
    return true;
  }

 private:
  FilterJobs jobs_;
  std::int64_t capacity_, num_jobs_, most_, wanted_;
};

}  // namespace cuda
}  // namespace fsknn
