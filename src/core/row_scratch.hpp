#pragma once

#include "core/medians.hpp"
#include "core/ranks.hpp"

namespace fsknn {

/// What one thread needs besides a row to prepare it.
struct RowScratch {
  AverageRanks ranks;
  Medians medians;
};

}  // namespace fsknn
