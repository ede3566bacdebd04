#pragma once

// Recomputes rows where the points come in panels. The filter's memory is freed
// between the two ways, to make room for the second.

#include <cstdint>
#include <vector>

#include "cuda/prepare/panel_stream.hpp"
#include "cuda/search/wide_filter.hpp"

namespace fsknn {
namespace cuda {

/// Candidates that wait for the exact step, on the host.
struct WideCandidates {
  std::vector<std::int32_t> counts;   ///< of each row; 0: too many, or too few
  std::vector<std::int32_t> columns;  ///< panel places, row after row
};

/// Filters the rows with these numbers (ascending) by longer lists. lists: the
/// search's, which are no longer needed; panel_places [column slots], device
/// memory. Waits for the stream. Returns whether to continue.
bool filter_widely(const FilterPass& pass, const CandidateLists& lists,
                   const RedoneRows& rows, const std::vector<std::int32_t>& ids,
                   const std::int32_t* panel_places, const Panels& panels,
                   const Stream& stream, WideCandidates& found);

/// k neighbours of each of some rows, on the host; correlations only if
/// requested.
struct RowsInDoubles {
  std::vector<double> distance, correlation;
  std::vector<std::int32_t> index;
};

/// Compares the points with these numbers (ascending) with all, most_rows at a
/// time. Waits for the stream. Returns whether to continue.
bool redo_in_doubles(const Search& search, const std::vector<std::int32_t>& ids,
                     std::int64_t most_rows, const Panels& panels,
                     Workers& workers, const Stream& stream,
                     RowsInDoubles& found, Stats& stats);

}  // namespace cuda
}  // namespace fsknn
