#pragma once

// What a test of the filter let pass.

#include <cstdint>
#include <vector>

#include "cpu/kernels.hpp"

namespace fsknn {
namespace cpu {

/// The pairs of a micro-tile that `keep` has bits for, numbered within the
/// chunk, to the end of `hits`: without those past the chunk's end, and on the
/// diagonal each pair from one side and no row with itself.
inline void collect_hits(const std::uint64_t* keep, std::int64_t row,
                         std::int64_t column, std::int64_t num_rows,
                         std::int64_t num_columns, bool diagonal,
                         std::vector<Pair>& hits) {
  for (int r = 0; r < Tile::rows; ++r) {
    for (std::uint64_t mask = keep[r]; mask != 0; mask &= mask - 1) {
      const Pair pair = {
          static_cast<std::int32_t>(row + r),
          static_cast<std::int32_t>(column + __builtin_ctzll(mask))};
      if (pair.row >= num_rows || pair.column >= num_columns ||
          (diagonal && pair.row >= pair.column))
        continue;
      hits.push_back(pair);
    }
  }
}

}  // namespace cpu
}  // namespace fsknn
