#pragma once

// The schedule of a graph whose points are in the order of a tree: pairs of
// blocks that their boxes exclude are pruned.
//
// A round compares the blocks of a node of the tree that earlier rounds have
// not compared: first each block with itself, which fills the lists, then
// within nodes of 2 blocks, of 4, and so on. Before a round, kernels list the
// pairs of blocks to compare, by the thresholds so far. A pair is pruned if
// each block's points cannot reach the box of the other (plan/tree_reach.hpp).
// In large nodes each point is tested by its own threshold, in small ones a
// block by the largest reach of its points. Later thresholds are not below
// earlier ones, so that a pair pruned by one is pruned by all.
//
// A row that will be recomputed has an infinite threshold: it reaches nothing,
// and its search does not use this schedule.
//
// The schedule is for a part of the blocks, whose lists are there. A pair of
// blocks of the part serves both. A block of the part is also compared with all
// other blocks, for its own lists: the thresholds of other points are infinite,
// so that these points accept nothing and reach no box. In a node's round the
// part's blocks meet the node's later blocks, and then, if the part does not
// begin with the first block, those before the part. Each pair of a block of
// the part and another block is thus met once. Other parts, of this device or
// of others, meet the pair from the other side.

#include <cstdint>
#include <vector>

#include "cuda/device/resources.hpp"
#include "cuda/plan/tree_reach.hpp"
#include "cuda/search/rounds.hpp"
#include "cuda/search/tile_tree.hpp"

namespace fsknn {
namespace cuda {

/// The points of a tree's blocks, device memory, and what their thresholds
/// mean.
struct TreeRows {
  PreparedRows prepared;                 ///< by place
  const std::int32_t* places = nullptr;  ///< by slot; -1: padding
  ReachRule rule;
};

class TreeSchedule : public FilterSchedule {
 public:
  /// pass: with its lists, whose thresholds decide, and with the rounds of the
  /// part, blocks first .. end - 1. The stream must be the pass's. pieces: of
  /// work, for progress.
  TreeSchedule(const TileTree& tree, const TreeRows& rows,
               const FilterPass& pass, std::int64_t first, std::int64_t end,
               std::int64_t pieces, const Stream& stream);

  /// Waits for the stream where it lists pairs of blocks.
  const FilterJobs* next() override;
  /// Returns the pieces of work that the last launch completes.
  std::int64_t take_pieces();
  /// Returns the number of pairs of points that were compared. Waits for the
  /// stream.
  double pairs() const;

 private:
  /// Blocks from `first` to `end` - 1, for each block.
  struct Ranges {
    explicit Ranges(std::int64_t blocks) : first(blocks), end(blocks) {}
    DeviceBuffer<std::int32_t> first, end;
  };

  bool begin_round();
  bool is_done() const {
    return round_ == rounds_.size() && row_ == end_block_;
  }
  void list_tiles();
  void start_marking(std::int64_t first_row, std::int64_t end_row);
  void launch(std::int64_t num_jobs);

  const TileTree& tree_;
  const TreeRows rows_;
  const FilterPass& pass_;
  const std::int64_t first_block_, end_block_;  ///< of the part
  const std::int64_t pieces_;
  const Stream& stream_;
  const std::vector<TreeRound> rounds_;
  std::size_t round_ = 0;  ///< after the present one
  std::int64_t row_ = 0;   ///< the next block of the round
  // The blocks that the round compares with each block, as a block of rows or
  // of columns.
  TreeRanges ranges_;
  Ranges columns_of_, rows_of_;
  std::vector<FilterJobs> launches_;
  std::size_t next_launch_ = 0;
  bool uncut_ = false;  ///< since the last cut there were jobs
  double all_tiles_, tiles_done_ = 0.0;
  std::int64_t pieces_taken_ = 0;
  // The pairs of blocks at hand: a bit for each, by block of rows.
  std::vector<std::int32_t> first_bits_;
  DeviceBuffer<std::int32_t> first_bit_;
  DeviceBuffer<std::uint32_t> marked_;
  DeviceBuffer<std::int32_t> columns_;
  DeviceBuffer<ListedJob> jobs_;
  DeviceBuffer<float> reach_;
  DeviceBuffer<unsigned long long> counts_;
};

}  // namespace cuda
}  // namespace fsknn
