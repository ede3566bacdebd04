#pragma once

// How a filter compares two blocks of points, each pair once and for both its
// points: their slots, and the order of comparisons. Plain C++.

#include <cstdint>
#include <vector>

#include "cuda/plan/rounds.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

/// The two sides in the filter's blocks of slots: first the columns by place,
/// then the rows, whose places follow. A filter's jobs use column blocks modulo
/// their number. So row block I, counted from the first row block, is compared
/// with column block I + delta. In as many rounds as there are column blocks
/// each pair of blocks is compared once. There are at least as many columns as
/// rows, so that no block occurs twice in a round.
struct BlockPairs {
  BlockPairs(std::int64_t columns, std::int64_t rows)
      : num_columns(columns),
        num_rows(rows),
        column_blocks(ceil_div(columns, kFilterBlock)),
        row_blocks(ceil_div(rows, kFilterBlock)) {}
  std::int64_t num_columns, num_rows;
  std::int64_t column_blocks, row_blocks;

  std::int64_t num_slots() const {
    return (column_blocks + row_blocks) * kFilterBlock;
  }
  /// The place of the point in each slot; -1: padding.
  std::vector<std::int32_t> places() const {
    std::vector<std::int32_t> places(static_cast<std::size_t>(num_slots()), -1);
    std::int32_t place = 0;
    for (std::int64_t i = 0; i < num_columns; ++i)
      places[static_cast<std::size_t>(i)] = place++;
    const std::int64_t first = column_blocks * kFilterBlock;
    for (std::int64_t i = 0; i < num_rows; ++i)
      places[static_cast<std::size_t>(first + i)] = place++;
    return places;
  }
  /// depth, chunk_size, multiprocessors: see FilterRounds.
  std::vector<FilterJobs> jobs(std::int64_t depth, std::int64_t chunk_size,
                               int multiprocessors) const {
    FilterRounds rounds;
    rounds.num_blocks = column_blocks;
    rounds.first_slab = column_blocks * kSlabsABlock;
    rounds.num_slabs = row_blocks * kSlabsABlock;
    rounds.depth = depth;
    rounds.chunk_size = chunk_size;
    rounds.multiprocessors = multiprocessors;
    // As for queries, rounds begin with one block. But no list is filled, and
    // each pair is for both points.
    rounds.symmetric = false;
    rounds.fill_blocks = 1;
    std::vector<FilterJobs> all = schedule_filter(rounds);
    for (FilterJobs& jobs : all) {
      // Every pair in a list consists of two points, one from each side.
      jobs.symmetric = jobs.all_valid = true;
      jobs.fill = false;
      jobs.filled = 0;
    }
    return all;
  }
};

}  // namespace cuda
}  // namespace fsknn
