#pragma once

// Products of rows of doubles on tensor cores, tile by tile, and the memory
// that they need. Plain numbers.

#include <cstdint>

#include "core/contract/scaling.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

/// A block of threads computes a tile of pairs, one of the contract's eight
/// lanes after another. Each warp has a part of the tile's sums in registers.
struct LaneTile {
  static constexpr int side = 128;  ///< rows, and columns
  static constexpr int depth = 16;  ///< features of one lane at a time
  static constexpr int stages = 6;  ///< of `depth` features in shared memory
  static constexpr int warps_down = 2, warps_across = 4;
  static constexpr int warp_rows = side / warps_down;
  static constexpr int warp_columns = side / warps_across;
  static constexpr int threads = 32 * warps_down * warps_across;
  static constexpr int part = side * depth;  ///< doubles of one side's stage
  static constexpr int stage_bytes = 2 * part * 8;
  /// Each stage has a barrier.
  static constexpr int shared_bytes = stages * (stage_bytes + 8);
  /// The most sums of lanes that wait while others are joined.
  static constexpr int levels = 3;
  static constexpr std::int64_t waiting = std::int64_t{levels} * side * side;
};

/// The features of a lane in whole stages: zeros precede the actual features.
inline std::int64_t lane_length(std::int64_t padded) {
  return round_up(padded / kLanes, LaneTile::depth);
}

/// The doubles of that many rows, lane by lane, in whole tiles.
inline std::int64_t lane_doubles(std::int64_t num_rows, std::int64_t padded) {
  return round_up(num_rows, LaneTile::side) * kLanes * lane_length(padded);
}

/// The bytes that a device holds besides a chunk's distances. same: rows are
/// columns.
inline double bytes_of_lanes(std::int64_t num_rows, std::int64_t num_columns,
                             bool same, std::int64_t padded, int blocks) {
  return 8.0 *
         static_cast<double>(lane_doubles(num_rows, padded) +
                             (same ? 0 : lane_doubles(num_columns, padded)) +
                             blocks * LaneTile::waiting);
}

}  // namespace cuda
}  // namespace fsknn
