#pragma once

// The places of points in the filter: blocks of slots.

#include <cstdint>
#include <vector>

#include "core/base/numbers.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

/// The filter's rows and columns come in blocks of this many points.
static constexpr std::int64_t kFilterBlock = 256;
static constexpr std::int64_t kFilterSlab = kFilterBlock / 2;
static constexpr std::int64_t kSlabsABlock = kFilterBlock / kFilterSlab;

/// Points in the filter's blocks, whose number is odd. In round delta block I
/// is compared with block I + delta, so that each unordered pair of blocks is
/// compared once. The points are spread evenly: block I has those from place
/// first_place(I) on.
struct FilterBlocks {
  explicit FilterBlocks(std::int64_t points)
      : num_points(points),
        count((points + kFilterBlock - 1) / kFilterBlock | 1) {}
  std::int64_t num_points, count;

  std::int64_t num_slots() const { return count * kFilterBlock; }
  Place first_place(std::int64_t block) const {
    return {block * (num_points / count) +
            block * (num_points % count) / count};
  }
  Slot first_slot(std::int64_t block) const { return {block * kFilterBlock}; }
  /// [num_slots()] the place of the point in each slot; -1: padding.
  std::vector<std::int32_t> places() const;
};

/// The first block of a device's segment, among `count` devices.
inline std::int64_t first_block_of(const FilterBlocks& blocks, int device,
                                   int count) {
  return blocks.count * device / count;
}

/// Slots of queries: whole blocks.
inline std::int64_t query_slots(std::int64_t num_queries) {
  return round_up(num_queries, kFilterBlock);
}

}  // namespace cuda
}  // namespace fsknn
