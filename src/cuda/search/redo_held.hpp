#pragma once

// Recomputes rows where the device holds the points.

#include "cuda/exact/candidates.hpp"
#include "cuda/search/point_store.hpp"
#include "cuda/search/wide_filter.hpp"

namespace fsknn {
namespace cuda {

struct PlaceRange {
  std::int64_t first, end;
};

/// A search that is finished except for these rows.
struct HeldSearch {
  const Search& search;
  const FilterPass& pass;
  const ExactStep& exact;      ///< of the search's own lists
  const CandidateLists lists;  ///< of all slots; no longer needed
  const DevicePoints& rows;
  const DevicePoints& columns;  ///< the same object for a graph
  /// Ranges of places of the columns to compare; none: all.
  std::vector<PlaceRange> met = {};
  /// The columns, if all of them are compared and their form is no longer
  /// needed, or will be remade; otherwise null.
  StoredPoints* stored = nullptr;

  std::int64_t num_met() const {
    if (met.empty()) return search.columns.size();
    std::int64_t sum = 0;
    for (const PlaceRange& range : met) sum += range.end - range.first;
    return sum;
  }
};

/// Computes the lists of the rows (ascending by place) and stores them in the
/// nearest. Waits for the stream. Returns whether to continue.
bool redo_held(const HeldSearch& held, const RedoneRows& rows,
               const Stream& stream, Stats& stats);

}  // namespace cuda
}  // namespace fsknn
