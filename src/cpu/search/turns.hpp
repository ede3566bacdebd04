#pragma once

// The exact step in turns that are short for any number of features, so that an
// interrupt is noticed soon.

#include <algorithm>
#include <cstdint>

#include "core/base/poll.hpp"
#include "cpu/kernels/kernels.hpp"

namespace fsknn {
namespace cpu {

inline void exact_in_turns(const Kernels& kernels, Accumulation accumulation,
                           const double* rows_a, const double* rows_b,
                           std::int64_t padded, const Pair* pairs,
                           std::int64_t count, double* sums) {
  const std::int64_t turn =
      std::max<std::int64_t>(8, (std::int64_t{1} << 25) / padded);
  for (std::int64_t first = 0; first < count; first += turn) {
    const std::int64_t pairs_now = std::min(turn, count - first);
    kernels.exact(accumulation, rows_a, rows_b, padded, pairs + first,
                  pairs_now, sums + first);
    poll_after(static_cast<double>(pairs_now) * static_cast<double>(padded));
  }
}

/// The approximate nanoseconds of a micro-tile of the filter on a slow machine.
inline double tile_cost(std::int64_t steps) {
  return 30.0 * static_cast<double>(steps);
}

}  // namespace cpu
}  // namespace fsknn
