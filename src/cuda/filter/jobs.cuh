#pragma once

// The slots that a block of threads compares in a job.

#include <cstdint>

#include "cuda/plan/rounds.hpp"

namespace fsknn {
namespace cuda {

/// A job of this block: a slab of rows against blocks of columns.
struct FilterJob {
  static constexpr int slabs = static_cast<int>(kFilterBlock / kFilterSlab);
  std::int64_t slab, column_block, first_delta, end_delta;

  __device__ FilterJob(const FilterJobs& jobs, std::int64_t job) {
    if (jobs.listed != nullptr) {
      const ListedJob listed = jobs.listed[job / slabs];
      slab = static_cast<std::int64_t>(listed.row_block) * slabs + job % slabs;
      first_delta = listed.first_delta;
      end_delta = listed.end_delta;
      column_block = jobs.column_blocks == nullptr
                         ? listed.column_block
                         : jobs.column_blocks[first_delta];
      return;
    }
    slab = jobs.first_slab + job % jobs.num_slabs;
    first_delta = jobs.first_delta + job / jobs.num_slabs * jobs.span;
    end_delta = min(first_delta + jobs.span, jobs.end_delta);
    column_block = (slab / slabs + first_delta + jobs.shift) % jobs.num_blocks;
  }
  /// Returns the block after the one at `delta`.
  __device__ static std::int64_t next(const FilterJobs& jobs,
                                      std::int64_t column_block,
                                      std::int64_t delta) {
    if (jobs.column_blocks != nullptr) return jobs.column_blocks[delta + 1];
    return column_block + 1 == jobs.num_blocks ? 0 : column_block + 1;
  }
};

}  // namespace cuda
}  // namespace fsknn
