// The plain C++ part of the search within a distance on a GPU: jobs come in
// ranges whose candidates fit in their list.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/plan/within_jobs.hpp"

using namespace fsknn::cuda;

namespace {

/// Counts how often each slab of rows meets each block of columns.
class Met {
 public:
  explicit Met(const FilterRounds& rounds)
      : num_blocks_(rounds.num_blocks),
        first_slab_(rounds.first_slab),
        times_(static_cast<std::size_t>(rounds.num_slabs * rounds.num_blocks),
               0) {}
  /// Reads jobs as the kernels do.
  void add(const FilterJobs& jobs) {
    for (std::int64_t job = jobs.first_job; job < jobs.end_job; ++job) {
      const std::int64_t slab = jobs.first_slab + job % jobs.num_slabs;
      const std::int64_t first =
          jobs.first_delta + job / jobs.num_slabs * jobs.span;
      const std::int64_t end = std::min(first + jobs.span, jobs.end_delta);
      for (std::int64_t delta = first; delta < end; ++delta) {
        const std::int64_t column =
            (slab / 2 + delta + jobs.shift) % jobs.num_blocks;
        ++times_[static_cast<std::size_t>((slab - first_slab_) * num_blocks_ +
                                          column)];
      }
    }
  }
  int of(std::int64_t slab, std::int64_t column) const {
    return times_[static_cast<std::size_t>((slab - first_slab_) * num_blocks_ +
                                           column)];
  }

 private:
  std::int64_t num_blocks_, first_slab_;
  std::vector<int> times_;
};

FilterRounds rounds_of(std::int64_t blocks, std::int64_t slabs, bool graph,
                       int multiprocessors, std::int64_t chunk_size) {
  FilterRounds rounds;
  rounds.num_blocks = blocks;
  rounds.num_slabs = slabs;
  rounds.symmetric = graph;
  rounds.depth = 320;
  rounds.multiprocessors = multiprocessors;
  rounds.chunk_size = chunk_size;
  return rounds;
}

}  // namespace

TEST_CASE("a search within a distance meets each pair of blocks once") {
  constexpr std::int64_t capacity = std::int64_t{1} << 22;
  for (const bool graph : {true, false})
    for (const std::int64_t blocks : {17, 79, 391})
      for (const int processors : {1, 132})
        for (const std::int64_t chunk_size : {64, 16384})
          // The share of candidates among pairs, from none to all.
          for (const double part : {0.0, 1e-4, 0.03, 0.4, 1.0}) {
            const std::int64_t slabs = graph ? 2 * blocks : 6;
            const FilterRounds rounds =
                rounds_of(blocks, slabs, graph, processors, chunk_size);
            Met met(rounds);
            WithinJobs jobs(rounds, capacity);
            std::int64_t most = 0, row_ranges = 0;
            while (const FilterJobs* next = jobs.next()) {
              const FilterJobs now = *next;
              CHECK(now.symmetric);
              CHECK(!now.fill);
              CHECK(((now.first_job | now.end_job) & 1) == 0);
              // The candidates of whole tiles; the first sample may have more
              // or fewer.
              const std::int64_t has =
                  static_cast<std::int64_t>(part * jobs.pairs());
              ++row_ranges;
              REQUIRE(row_ranges < 1000000);
              if (!jobs.had(has)) {
                CHECK(has > capacity);
                continue;
              }
              most = std::max(most, has);
              met.add(now);
            }
            CHECK(most <= capacity);
            bool once = true;
            for (std::int64_t slab = 0; slab < slabs; ++slab)
              for (std::int64_t column = 0; column < blocks; ++column) {
                const std::int64_t row = slab / 2;
                // In a graph each pair comes from one side or the other.
                const int times =
                    !graph || row == column
                        ? met.of(slab, column)
                        : met.of(slab, column) + met.of(2 * column, row);
                once = once && times == 1;
              }
            CHECK(once);
            if (part == 0.0 && processors > 1) CHECK(row_ranges < 300);
          }
}

TEST_CASE(
    "row_ranges that are full now and then are met again in smaller ones") {
  constexpr std::int64_t capacity = 4 * WithinJobs::kLeastCapacity;
  const FilterRounds rounds = rounds_of(129, 258, true, 8, 2048);
  WithinJobs jobs(rounds, capacity);
  std::int64_t turn = 0, full = 0, tiles = 0;
  while (const FilterJobs* next = jobs.next()) {
    const FilterJobs now = *next;
    // Alternates between no candidates and as many as possible.
    const bool all = ++turn % 2 == 0;
    const double pairs = all ? jobs.pairs() : 0.0;
    if (!jobs.had(static_cast<std::int64_t>(pairs))) {
      // The smallest number of jobs always fits.
      CHECK(now.end_job - now.first_job > 2);
      ++full;
      continue;
    }
    for (std::int64_t job = now.first_job; job < now.end_job; ++job)
      tiles +=
          std::min(now.span, now.end_delta - job / now.num_slabs * now.span);
    REQUIRE(turn < 100000);
  }
  CHECK(full > 0);
  CHECK(tiles == 258 * 65);
  CHECK(jobs.num_tiles() == tiles);
}
