#pragma once

// How a filter meets points by group, where each point has a list of neighbours
// for each group, or one for all groups but its own: each pair of points once,
// for both. Plain C++.
//
// The groups' points stand in blocks of slots that no two groups share. A list
// block is such a block once more, with lists for what it finds in one group:
// to the filter it is a block of slots as any other, and which block's rows it
// has, a table says. Two groups that meet have list blocks for each other, so
// that what is found for a slot goes to its list of the other's group.

#include <cstdint>
#include <vector>

#include "core/contract/groups.hpp"
#include "core/rows/order.hpp"
#include "cuda/plan/filter_shape.hpp"
#include "cuda/plan/rounds.hpp"

namespace fsknn {
namespace cuda {

/// The places of the points of a search by groups: by group, each in this
/// order.
PointOrder order_by_group(const PointGroups& groups, const PointOrder& order);

/// Where points stand: places in the order of the groups, and each group in
/// blocks of slots of its own, nearly as many points in each.
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

/// A block of slots with lists of its own.
struct ListBlock {
  std::int32_t block;   ///< of GroupBlocks: whose points
  std::int32_t list;    ///< which of its points' lists
  std::int32_t target;  ///< the group in which it looks; -1: all but its own
  std::int32_t filled;  ///< entries that the first round writes to each list
};

/// Jobs of one launch of the filter: jobs[first_job .. end_job - 1] of the
/// batch, whose blocks are list blocks.
struct GroupLaunch {
  std::int64_t first_job, end_job;
  bool symmetric, fill;
  bool ends_round;
};

/// Groups that meet at the same time.
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
  std::int64_t most_blocks = 0;  ///< list blocks of a batch, if it can be
  std::int64_t span = 1;         ///< blocks of columns of a job, at most
};

/// What points have met after a round, to what they had before. A round brings
/// k times as many candidates as it meets blocks for each before; lists of few
/// neighbours have room for more than k at a time, which saves cuts.
inline std::int64_t growth_of_rounds(std::int64_t k) {
  return 16 * k <= candidates_for(k) ? 4 : 2;
}

/// Jobs of a launch, at most: a table of 4 MiB.
static constexpr std::int64_t kMostListedJobs = std::int64_t{1} << 18;

/// List blocks that the largest batch has.
std::int64_t most_list_blocks(const GroupBlocks& blocks,
                              const GroupMeetings& meetings);

/// The batches of each of `count` devices: about as much work for each.
std::vector<std::vector<GroupBatch>> group_batches(
    const GroupBlocks& blocks, const GroupMeetings& meetings, int count);

/// Blocks in which each list of `target` looks, all of a group, or, of -1, of
/// all but `own`.
std::vector<std::int32_t> looked_in(const GroupBlocks& blocks,
                                    std::int64_t target, std::int64_t own);

}  // namespace cuda
}  // namespace fsknn
