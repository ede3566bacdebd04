#pragma once

// Discretisation of rows by minimum description length, given classes (Fayyad
// and Irani 1993).

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/rows/source.hpp"

namespace fsknn {

/// The result for one row.
struct RowCuts {
  std::vector<double> cuts;  ///< increasing; a value <= a cut is below it
  double gain = 0.0;  ///< information of the intervals on the class in bits
};

/// classes: [num_features] 0 .. num_classes - 1, the class of each column. The
/// values are finite. progress (may be null) is only asked whether to continue.
std::vector<RowCuts> discretise(const RowSource& source,
                                const std::vector<int>& classes,
                                int num_classes, int num_threads,
                                Progress* progress = nullptr);

/// Levels from 1: one more than the number of cuts below a value; `missing` for
/// a NaN. levels: [rows x num_features], column-major. cuts: one vector for
/// each of `rows`.
void assign_levels(const RowSource& source,
                   const std::vector<std::int64_t>& rows,
                   const std::vector<std::vector<double>>& cuts,
                   int num_threads, int missing, int* levels,
                   Progress* progress = nullptr);

}  // namespace fsknn
