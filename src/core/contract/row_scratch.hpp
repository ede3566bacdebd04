#pragma once

#include "core/contract/medians.hpp"
#include "core/contract/ranks.hpp"

namespace fsknn {

/// What one thread needs besides a row to prepare it.
struct RowScratch {
  AverageRanks ranks;
  Medians medians;
  /// Out: whether covariates left the last row anything. If not, the row is
  /// constant but for them, and has no form.
  bool varies = true;
};

}  // namespace fsknn
