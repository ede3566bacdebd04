#pragma once

// All pairs in doubles: which chunks a device makes of its splits.

#include <algorithm>
#include <cstdint>

namespace fsknn {
namespace cuda {

/// How a plan without a filter goes through the pairs.
struct PairsInDouble {
  /// Of threads, that make products on tensor cores; 0: without these.
  int blocks = 0;
  /// Splits whose lists a device holds at a time, a band: two points of one
  /// band of a graph meet once, for both.
  std::int64_t splits_at_once = 1;
};

/// Successive splits, and how their chunks are met.
struct PairBand {
  std::int64_t first, end;
  bool graph;  ///< splits down are splits across

  enum class Meeting {
    made,     ///< the chunk's pairs are another chunk's of this band
    rows,     ///< for the rows' lists alone
    both,     ///< for those of the columns too
    own_rows  ///< rows are columns: each pair for both
  };
  Meeting meeting(std::int64_t split, std::int64_t column) const {
    if (!graph || column < first || column >= end) return Meeting::rows;
    return column < split    ? Meeting::made
           : column == split ? Meeting::own_rows
                             : Meeting::both;
  }
  /// Chunks that are made, of so many in a split.
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
