#pragma once

// How a filter meets two blocks of points, each pair once and for both its
// points: where points stand, and in which order slots meet. Plain C++.

#include <cstdint>
#include <vector>

#include "cuda/plan/rounds.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

/// The two sides in the filter's blocks of slots: first those of the columns,
/// by place, then those of the rows, whose places follow. A filter's jobs take
/// column blocks modulo their number: so row block I, counted from the rows'
/// first one, meets column block I + delta, and in as many rounds as there are
/// column blocks each pair of blocks meets once. There are no fewer columns
/// than rows: in one round no block meets two others.
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
  /// The place of the point in each slot; -1: none.
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
    rounds.first_slab = column_blocks * (kFilterBlock / kFilterSlab);
    rounds.num_slabs = row_blocks * (kFilterBlock / kFilterSlab);
    rounds.depth = depth;
    rounds.chunk_size = chunk_size;
    rounds.multiprocessors = multiprocessors;
    // As of queries, by rounds that begin with one block; but no list is
    // filled, and each pair is for both.
    rounds.symmetric = false;
    rounds.fill_blocks = 1;
    std::vector<FilterJobs> all = schedule_filter(rounds);
    for (FilterJobs& jobs : all) {
      // What comes into a list are pairs of two points, one of either side.
      jobs.symmetric = jobs.all_valid = true;
      jobs.fill = false;
      jobs.filled = 0;
    }
    return all;
  }
};

}  // namespace cuda
}  // namespace fsknn
