#pragma once

// A balanced tree of points. Points that are near each other become neighbours
// in its order, so that the points of a tile have a small box.

#include <cstdint>
#include <vector>

#include "core/rows/prepared.hpp"

namespace fsknn {
namespace cpu {

/// The places of all points, or of those at `places`, in the order of their
/// tree. Each node is halved along the feature whose values vary most, at whole
/// strata, tiles of columns or tiles of rows. The rows must be held.
std::vector<std::int32_t> tree_order(const PreparedPoints& points,
                                     int num_threads);
std::vector<std::int32_t> tree_order(const PreparedPoints& points,
                                     std::vector<std::int32_t> places,
                                     int num_threads);

/// The places of the points that share tiles with a point in the order of the
/// tree.
struct TreeTiles {
  std::vector<std::int32_t> rows, columns;
};

/// The tiles of each of these points, in the tree of the points at `places`.
std::vector<TreeTiles> tree_tiles(const PreparedPoints& points,
                                  std::vector<std::int32_t> places,
                                  const std::vector<Place>& of,
                                  int num_threads);

/// The places of all points, ascending.
std::vector<std::int32_t> all_places(const PreparedPoints& points);

/// Puts the points in another order, in place. place_at: their present places.
void rearrange(PreparedPoints& points,
               const std::vector<std::int32_t>& place_at, int num_threads);

}  // namespace cpu
}  // namespace fsknn
