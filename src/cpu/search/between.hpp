#pragma once

#include "core/search/between.hpp"

namespace fsknn {
namespace cpu {

/// The k nearest among the pairs of two blocks, by the filter, from their
/// limits on. Equal to core's brute_between(), bit for bit. progress and stats
/// may be null.
void find_between(const Request& request, const Between& between,
                  const RowSource& points, WithinRows& answer,
                  Progress* progress, Stats* stats);

}  // namespace cpu
}  // namespace fsknn
