#pragma once

// Whether blocks of points may be pruned by boxes, and the nodes of the tree
// that orders the points. Plain C++.

#include <cstdint>
#include <vector>

#include "cuda/plan/filter_blocks.hpp"
#include "cuda/plan/filter_shape.hpp"

namespace fsknn {
namespace cuda {

/// With fewer points, a sample takes too long beside the search.
static constexpr std::int64_t kLeastTreePoints = std::int64_t{1} << 18;
/// More features leave too little to prune.
static constexpr std::int64_t kMostTreeFeatures = 128;
/// The points of the sample that decides.
static constexpr std::int64_t kTreeSample = std::int64_t{1} << 15;
/// The most pairs of blocks that are listed at a time: 64 MiB.
static constexpr std::int64_t kMostListedTiles = std::int64_t{1} << 24;

/// Whether a search of held points may use boxes: a graph by squared distances
/// on one device, whose lists are filled by the points' own block.
inline TreeUse tree_use(const PlanInput& in, const FilterShape& shape,
                        int num_devices) {
  const bool suits = in.squares && in.num_queries == 0 && num_devices == 1 &&
                     in.group_sizes.empty() && shape.usable() &&
                     shape.fill_blocks == 1 &&
                     in.num_features <= kMostTreeFeatures;
  if (!suits) return TreeUse::never;
  if (in.order == AskedOrder::tree) return TreeUse::always;
  return in.order == AskedOrder::as_it_pays && in.num_points >= kLeastTreePoints
             ? TreeUse::if_it_pays
             : TreeUse::never;
}
/// The largest share of blocks left in a sample for which a tree pays.
static constexpr double kMostLeftByTree = 0.5;

/// The capacity of a list in the order of a tree. Near points come first, and
/// all of a block may be nearer than the k-th so far.
inline std::int32_t candidates_in_tree(std::int64_t k) {
  return 2 * candidates_for(k);
}

/// The device memory to make and use a tree.
inline double bytes_tree(std::int64_t num_points, std::int64_t padded,
                         std::int64_t k) {
  const FilterBlocks all(num_points);
  const double blocks = static_cast<double>(all.count);
  const double longer =
      static_cast<double>(candidates_in_tree(k) - candidates_for(k));
  // Keys and places, both twice; longer lists; boxes, limits and nodes; listed
  // blocks, their bits and jobs; the sample's distances, and what sorting
  // needs.
  return 16.0 * static_cast<double>(num_points) +
         8.0 * longer * static_cast<double>(all.num_slots()) +
         blocks * (16.0 * static_cast<double>(padded) + 128) +
         4.0 * static_cast<double>(kMostListedTiles) * 1.75 + 0x1p24;
}

/// The nodes of a balanced tree of blocks, level by level: first_block[node],
/// and the number of blocks last. The last level has a node for each block.
class TreeLevels {
 public:
  explicit TreeLevels(std::int64_t num_blocks) {
    std::vector<std::int32_t> nodes = {0,
                                       static_cast<std::int32_t>(num_blocks)};
    for (;;) {
      levels_.push_back(nodes);
      std::vector<std::int32_t> next;
      for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
        next.push_back(nodes[i]);
        if (nodes[i + 1] - nodes[i] > 1)
          next.push_back(nodes[i] + (nodes[i + 1] - nodes[i]) / 2);
      }
      next.push_back(nodes.back());
      if (next.size() == nodes.size()) return;
      nodes = std::move(next);
    }
  }
  int count() const { return static_cast<int>(levels_.size()); }
  const std::vector<std::int32_t>& level(int at) const {
    return levels_[static_cast<std::size_t>(at)];
  }
  /// By block: its node's first block, and the end.
  std::vector<std::int32_t> starts(int at) const { return by_block(at, 0); }
  std::vector<std::int32_t> ends(int at) const { return by_block(at, 1); }

 private:
  std::vector<std::int32_t> by_block(int at, std::size_t which) const {
    const std::vector<std::int32_t>& nodes = level(at);
    std::vector<std::int32_t> of(static_cast<std::size_t>(nodes.back()));
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
      for (std::int32_t b = nodes[i]; b < nodes[i + 1]; ++b)
        of[static_cast<std::size_t>(b)] = nodes[i + which];
    return of;
  }
  std::vector<std::vector<std::int32_t>> levels_;
};

}  // namespace cuda
}  // namespace fsknn
