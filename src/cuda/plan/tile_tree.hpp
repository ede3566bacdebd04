#pragma once

// Whether blocks of points may be pruned by boxes, and the nodes of the tree
// that orders the points. Plain C++.

#include <algorithm>
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
/// The most pairs of blocks that are listed at a time: 512 MiB. With fewer,
/// the lists of 100 million points are made by too few threads.
static constexpr std::int64_t kMostListedTiles = std::int64_t{1} << 27;
inline std::int64_t listed_tiles(std::int64_t num_blocks) {
  return std::min(kMostListedTiles,
                  std::max(num_blocks, num_blocks * (num_blocks - 1) / 2));
}

/// Whether a search of held points may use boxes: a graph by squared distances,
/// whose lists are filled by the points' own block.
inline TreeUse tree_use(const PlanInput& in, const FilterShape& shape) {
  const bool suits = in.squares && in.num_queries == 0 &&
                     in.group_sizes.empty() && shape.usable() &&
                     shape.fill_blocks == 1 &&
                     in.num_features <= kMostTreeFeatures;
  if (!suits) return TreeUse::never;
  if (in.order == AskedOrder::tree) return TreeUse::always;
  return in.order == AskedOrder::as_it_pays && in.num_points >= kLeastTreePoints
             ? TreeUse::if_it_pays
             : TreeUse::never;
}
/// The most parts of a device. Pairs of two parts are compared twice.
static constexpr std::int64_t kMostTreeParts = 64;
/// The largest share of blocks left in a sample for which a tree pays.
static constexpr double kMostLeftByTree = 0.5;

/// The device memory to make and use a tree, besides the lists.
inline double bytes_tree(std::int64_t num_points, std::int64_t padded) {
  const std::int64_t blocks = FilterBlocks(num_points).count;
  // Keys and places, both twice; boxes, limits and nodes; listed blocks, their
  // bits and jobs; the sample's distances, and what sorting needs.
  return 16.0 * static_cast<double>(num_points) +
         static_cast<double>(blocks) *
             (16.0 * static_cast<double>(padded) + 128) +
         4.0 * static_cast<double>(listed_tiles(blocks)) * 1.75 + 0x1p24;
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

/// A round for a part of the blocks (search/tree_schedule.hpp). It compares
/// blocks of the nodes of `level` that are in different nodes of `inner`, the
/// level of an earlier round: those behind, or before the part.
struct TreeRound {
  int level, inner;
  bool before;
};

/// The rounds of a part that begins with block `first_block`.
inline std::vector<TreeRound> tree_rounds(const TreeLevels& levels,
                                          std::int64_t first_block) {
  // Near blocks bring many candidates: their nodes grow slowly.
  constexpr int slow_rounds = 4;
  std::vector<TreeRound> rounds;
  int inner = levels.count() - 1;
  for (int number = 1; inner > 0; ++number) {
    const int level = std::max(0, inner - (number < slow_rounds ? 1 : 2));
    rounds.push_back({level, inner, false});
    // No block is before a part that begins its node.
    const std::int32_t node =
        levels.starts(level)[static_cast<std::size_t>(first_block)];
    if (node < first_block) rounds.push_back({level, inner, true});
    inner = level;
  }
  return rounds;
}

/// By block: the blocks that a round compares with it, from `first` to
/// `end` - 1. Columns are those of a block of rows, and rows those of a block
/// of columns. Rounds of blocks before the part have no such rows.
struct TreeRanges {
  std::vector<std::int32_t> columns_first, columns_end, rows_first, rows_end;

  TreeRanges() = default;
  TreeRanges(const TreeLevels& levels, const TreeRound& round,
             std::int64_t first_block) {
    if (!round.before) {
      columns_first = levels.ends(round.inner);
      columns_end = levels.ends(round.level);
      rows_first = levels.starts(round.level);
      rows_end = levels.starts(round.inner);
      return;
    }
    columns_first = levels.starts(round.level);
    columns_end = levels.starts(round.inner);
    const std::int32_t part = static_cast<std::int32_t>(first_block);
    for (std::int32_t& first : columns_first) first = std::min(first, part);
    for (std::int32_t& end : columns_end) end = std::min(end, part);
  }
};

}  // namespace cuda
}  // namespace fsknn
