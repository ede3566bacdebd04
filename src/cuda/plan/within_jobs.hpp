#pragma once

// How the filter compares all pairs in a search within a distance: one round,
// in ranges of jobs whose candidates fit in their list. Plain C++.

#include <algorithm>
#include <cstdint>

#include "cuda/plan/rounds.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

/// All jobs of one device, a range at a time.
class WithinJobs : public FilterSchedule {
 public:
  /// Two jobs, the smallest range, never have more pairs than this with one
  /// block of columns.
  static constexpr std::int64_t kLeastCapacity = kFilterBlock * kFilterBlock;

  /// rounds: the slabs, the number of column blocks, whether rows and columns
  /// are the same slots, depth, chunk_size and multiprocessors are used.
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
    // The first range has as many jobs as the device runs at once, as a sample.
    wanted_ = std::min(most_, round_up(rounds.multiprocessors, 2));
  }

  /// The number of tiles, each a slab of rows by a block of columns.
  std::int64_t num_tiles() const { return jobs_.num_slabs * jobs_.end_delta; }
  const FilterJobs* next() override {
    if (jobs_.first_job == num_jobs_) return nullptr;
    jobs_.end_job = std::min(jobs_.first_job + wanted_, num_jobs_);
    return &jobs_;
  }
  /// The number of tiles in the jobs that next() returned, and an upper bound
  /// on their pairs of slots.
  std::int64_t tiles() const {
    return (jobs_.end_job - jobs_.first_job) * jobs_.span;
  }
  double pairs() const {
    return static_cast<double>(tiles()) * (kFilterSlab * kFilterBlock);
  }
  /// Takes the number of candidates of these jobs. Returns whether all had
  /// room; if not, fewer of these jobs come next.
  bool had(std::int64_t candidates) {
    const std::int64_t jobs = jobs_.end_job - jobs_.first_job;
    // The next range should fill half of the room.
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
