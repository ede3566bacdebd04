#pragma once

// How a filter compares points by group, each pair once and for both points. A
// point has a list of neighbours for each group, or one for all groups but its
// own. Plain C++.
//
// The groups' points are in separate blocks of slots. A list block refers to
// such a block, with lists for the neighbours in one group. The filter treats
// it as any block of slots; a table tells which block has its rows. Two groups
// that are compared have list blocks for each other, so that a slot's
// neighbours go to its list for the other group.

#include <cstdint>
#include <vector>

#include "core/contract/groups.hpp"
#include "core/rows/order.hpp"
#include "cuda/plan/filter_shape.hpp"
#include "cuda/plan/rounds.hpp"

namespace fsknn {
namespace cuda {

/// The places of the points in a search by groups: group by group, each in this
/// order.
PointOrder order_by_group(const PointGroups& groups, const PointOrder& order);

/// The slots of points. Places are in the order of the groups; each group has
/// its own blocks of slots, with nearly equal numbers of points.
struct GroupBlocks {
  explicit GroupBlocks(const std::vector<std::int64_t>& sizes);
  std::vector<std::int64_t> first_place, first_block;  ///< [groups + 1]

  std::int64_t num_groups() const {
    return static_cast<std::int64_t>(first_block.size()) - 1;
  }
  std::int64_t size(std::int64_t group) const {
    return at(first_place, group + 1) - at(first_place, group);
  }
  std::int64_t blocks(std::int64_t group) const {
    return at(first_block, group + 1) - at(first_block, group);
  }
  std::int64_t num_points() const { return first_place.back(); }
  std::int64_t num_blocks() const { return first_block.back(); }
  std::int64_t num_slots() const { return num_blocks() * kFilterBlock; }
  /// [num_slots()] the place of the point in each slot; -1: padding.
  std::vector<std::int32_t> places() const;

 private:
  static std::int64_t at(const std::vector<std::int64_t>& of,
                         std::int64_t group) {
    return of[static_cast<std::size_t>(group)];
  }
};

/// A block of slots with its own lists.
struct ListBlock {
  std::int32_t block;   ///< the block of GroupBlocks that has its points
  std::int32_t list;    ///< the number of the list among its points' lists
  std::int32_t target;  ///< the group of the neighbours; -1: all but the own
  std::int32_t filled;  ///< entries of each list that the first round writes
};

/// Jobs of one launch of the filter: jobs[first_job .. end_job - 1] of the
/// batch, whose blocks are list blocks.
struct GroupLaunch {
  std::int64_t first_job, end_job;
  bool symmetric, fill;
  bool ends_round;
};

/// Groups that are compared at the same time.
struct GroupBatch {
  std::vector<ListBlock> blocks;
  std::vector<ListedJob> jobs;
  std::vector<GroupLaunch> launches;
  std::int32_t most_filled = 0;
};

struct GroupMeetings {
  PointGroups::Lists lists = PointGroups::Lists::each;
  std::int64_t k = 0;
  std::int64_t depth = 0;        ///< features of the filter's rows
  std::int64_t most_blocks = 0;  ///< list blocks of a batch, if possible
  std::int64_t span = 1;         ///< the most column blocks of a job
};

/// The growth, in a round, of the number of blocks that points have met. A
/// round adds k candidates for each multiple of the blocks before it. Lists of
/// few neighbours have room for more than k at a time, which saves cuts.
inline std::int64_t growth_of_rounds(std::int64_t k) {
  return 16 * k <= candidates_for(k) ? 4 : 2;
}

/// The most jobs in a launch: a table of 4 MiB.
static constexpr std::int64_t kMostListedJobs = std::int64_t{1} << 18;

/// The number of list blocks in the largest batch.
std::int64_t most_list_blocks(const GroupBlocks& blocks,
                              const GroupMeetings& meetings);

/// The batches of each of `count` devices, with about equal work.
std::vector<std::vector<GroupBatch>> group_batches(
    const GroupBlocks& blocks, const GroupMeetings& meetings, int count);

/// The blocks that are searched for each list of `target`: all of a group, or,
/// for -1, of all groups but `own`.
std::vector<std::int32_t> looked_in(const GroupBlocks& blocks,
                                    std::int64_t target, std::int64_t own);

}  // namespace cuda
}  // namespace fsknn
