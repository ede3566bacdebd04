#pragma once

// All pairs in doubles: the chunks that a device computes for its splits.

#include <algorithm>
#include <cstdint>

namespace fsknn {
namespace cuda {

/// How a plan without a filter computes the pairs.
struct PairsInDouble {
  /// Blocks of threads for products on tensor cores; 0: without these.
  int blocks = 0;
  /// The number of splits whose lists a device holds at a time, a band. Two
  /// points in one band of a graph are compared once, for both.
  std::int64_t splits_at_once = 1;
};

/// Consecutive splits, and how their chunks are computed.
struct PairBand {
  std::int64_t first, end;
  bool graph;  ///< rows and columns are the same splits

  enum class Meeting {
    made,     ///< another chunk of this band has the same pairs
    rows,     ///< only for the rows' lists
    both,     ///< also for the columns' lists
    own_rows  ///< rows are columns: each pair for both
  };
  Meeting meeting(std::int64_t split, std::int64_t column) const {
    if (!graph || column < first || column >= end) return Meeting::rows;
    return column < split    ? Meeting::made
           : column == split ? Meeting::own_rows
                             : Meeting::both;
  }
  /// The number of chunks to compute, with `across` chunks in a split.
  std::int64_t num_chunks(std::int64_t across) const {
    const std::int64_t size = end - first;
    return size * across - (graph ? size * (size - 1) / 2 : 0);
  }
};

/// Calls use(band) for the bands of a device's splits, until it returns false.
template <class Use>
void for_bands(std::int64_t first_split, std::int64_t end_split,
               std::int64_t splits_at_once, bool graph, Use use) {
  for (std::int64_t s = first_split; s < end_split; s += splits_at_once)
    if (!use(PairBand{s, std::min(end_split, s + splits_at_once), graph}))
      return;
}

}  // namespace cuda
}  // namespace fsknn
