#pragma once

// Rows done again where the device holds the points.

#include "cuda/exact/candidates.hpp"
#include "cuda/search/point_store.hpp"
#include "cuda/search/wide_filter.hpp"

namespace fsknn {
namespace cuda {

struct PlaceRange {
  std::int64_t first, end;
};

/// The search that is over but for these rows.
struct HeldSearch {
  const Search& search;
  const FilterPass& pass;
  const ExactStep& exact;      ///< of the search's own lists
  const CandidateLists lists;  ///< of all slots; not needed any more
  const DevicePoints& rows;
  const DevicePoints& columns;  ///< the same object for a graph
  /// Places of columns that are met; none: all.
  std::vector<PlaceRange> met = {};
  /// The columns, if all of them are met and their form is not needed any more,
  /// or is made anew; or null.
  StoredPoints* stored = nullptr;

  std::int64_t num_met() const {
    if (met.empty()) return search.columns.size();
    std::int64_t sum = 0;
    for (const PlaceRange& range : met) sum += range.end - range.first;
    return sum;
  }
};

/// The rows, ascending by place, to their lists among the nearest. Waits for
/// the stream. Returns whether to go on.
bool redo_held(const HeldSearch& held, const RedoneRows& rows,
               const Stream& stream, Stats& stats);

}  // namespace cuda
}  // namespace fsknn
