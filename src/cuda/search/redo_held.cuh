#pragma once

// Rows done again where the device holds the points.

#include "cuda/exact/candidates.cuh"
#include "cuda/search/redo.cuh"

namespace fsknn {
namespace cuda {

/// The search that is over but for these rows.
struct HeldSearch {
  const Search& search;
  const FilterPass& pass;
  const ExactStep& exact;      ///< of the search's own lists
  const CandidateLists lists;  ///< of all slots; not needed any more
  const DevicePoints& rows;
  const DevicePoints& columns;  ///< the same object for a graph
};

/// The rows, ascending by place, to their lists among the nearest. Waits for
/// the stream. Returns whether to go on.
bool redo_held(const HeldSearch& held, const RedoneRows& rows,
               const Stream& stream, Stats& stats);

}  // namespace cuda
}  // namespace fsknn
