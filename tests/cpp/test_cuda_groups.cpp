// Tests the search by groups on GPUs as far as it needs no GPU: the slots of
// points, the order in which blocks are compared, and the plan.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda/plan/group_pairs.hpp"
#include "cuda/plan/plan.hpp"

using namespace fsknn;
using namespace fsknn::cuda;
using Lists = PointGroups::Lists;

namespace {

GroupMeetings meetings_of(Lists lists, std::int64_t k) {
  GroupMeetings meetings;
  meetings.lists = lists;
  meetings.k = k;
  meetings.depth = 320;
  meetings.most_blocks = 40;
  meetings.span = 5;
  return meetings;
}

/// How often the lists of a block meet another block, and how many entries fill
/// them.
struct Met {
  // The key is (block, list), then block.
  std::map<std::pair<int, int>, std::map<int, int>> times;
  bool in_bounds = true, filled_first = true, launches_whole = true;
  bool within_room = true;
  double most_expected = 0;  ///< expected candidates of a list in a round

  void add(const GroupBatch& batch, std::int32_t capacity, double k) {
    const int blocks = static_cast<int>(batch.blocks.size());
    std::vector<std::vector<int>> filled(batch.blocks.size());
    // The number of blocks that each list has met: in earlier rounds, and in
    // this one.
    std::vector<double> before(batch.blocks.size()), now(batch.blocks.size());
    const auto meet = [&](int row, int column) {
      const ListBlock& of = batch.blocks[static_cast<std::size_t>(row)];
      ++times[{of.block, of.list}]
             [batch.blocks[static_cast<std::size_t>(column)].block];
      ++now[static_cast<std::size_t>(row)];
    };
    std::int64_t next = 0;
    bool filling = true;
    for (const GroupLaunch& launch : batch.launches) {
      launches_whole = launches_whole && launch.first_job == next &&
                       launch.end_job > next &&
                       launch.end_job - next <= kMostListedJobs;
      next = launch.end_job;
      filled_first = filled_first && (filling || !launch.fill) &&
                     !(launch.fill && launch.symmetric);
      filling = launch.fill;
      for (std::int64_t j = launch.first_job; j < launch.end_job; ++j) {
        const ListedJob& job = batch.jobs[static_cast<std::size_t>(j)];
        for (int d = job.first_delta; d < job.end_delta; ++d) {
          const int column = job.column_block + d - job.first_delta;
          in_bounds = in_bounds && job.row_block >= 0 &&
                      job.row_block < blocks && column >= 0 && column < blocks;
          if (!in_bounds) return;
          meet(job.row_block, column);
          if (launch.symmetric) meet(column, job.row_block);
          if (launch.fill)
            filled[static_cast<std::size_t>(job.row_block)].push_back(d);
        }
      }
      if (!launch.ends_round) continue;
      for (std::size_t b = 0; b < now.size(); ++b) {
        if (!launch.fill)
          most_expected = std::max(most_expected, k * (1 + now[b] / before[b]));
        before[b] += now[b];
        now[b] = 0;
      }
    }
    launches_whole = launches_whole &&
                     next == static_cast<std::int64_t>(batch.jobs.size()) &&
                     batch.launches.back().ends_round;
    for (std::size_t b = 0; b < filled.size(); ++b) {
      // Each of the first entries is written once.
      std::sort(filled[b].begin(), filled[b].end());
      for (std::size_t f = 0; f < filled[b].size(); ++f)
        within_room = within_room && filled[b][f] == static_cast<int>(f);
      const std::int32_t entries =
          static_cast<std::int32_t>(filled[b].size()) * 256;
      within_room = within_room && entries == batch.blocks[b].filled &&
                    entries <= capacity && entries <= batch.most_filled;
    }
  }
};

}  // namespace

TEST_CASE("each list meets each block in which it looks once") {
  const std::vector<std::vector<std::int64_t>> cases = {
      {1000, 1000},         {5000, 700},
      {300, 257, 256, 255}, {20, 4000, 21},
      {2500, 2400, 0, 900}, {1, 3000, 3000},
      {70, 70, 70, 70},     {6000},
      {513, 1, 1, 1, 2000}, {40000, 100, 9000},
      {1536, 1536, 512},    {90000, 30000}};
  for (const std::vector<std::int64_t>& sizes : cases) {
    const GroupBlocks blocks(sizes);
    for (const Lists lists : {Lists::each, Lists::others, Lists::together})
      for (const std::int64_t k : {1, 20, 32, 64, 65, 300, 2048})
        for (const int devices : {1, 3}) {
          const GroupMeetings meetings = meetings_of(lists, k);
          const std::int32_t capacity = candidates_for(k);
          Met met;
          std::size_t largest = 0;
          for (const auto& of_device : group_batches(blocks, meetings, devices))
            for (const GroupBatch& batch : of_device) {
              if (batch.jobs.empty()) continue;
              met.add(batch, capacity, static_cast<double>(k));
              largest = std::max(largest, batch.blocks.size());
            }
          CAPTURE(sizes.size());
          CAPTURE(sizes[0]);
          CAPTURE(k);
          CAPTURE(static_cast<int>(lists));
          CHECK(met.in_bounds);
          CHECK(met.filled_first);
          CHECK(met.launches_whole);
          CHECK(met.within_room);
          // Lists are cut only at the end of a round. With one list for all
          // groups the blocks differ in size, and small ones come in random
          // order.
          if (lists != Lists::together)
            CHECK(met.most_expected <= 0.8 * capacity);
          CHECK(static_cast<std::int64_t>(largest) <=
                most_list_blocks(blocks, meetings));
          const std::int64_t count = blocks.num_groups();
          bool right = true;
          std::size_t num_lists = 0;
          for (std::int64_t own = 0; own < count; ++own)
            for (std::int64_t target = 0; target < count; ++target) {
              const bool one = lists == Lists::together;
              if (one ? target > 0 : lists == Lists::others && target == own)
                continue;
              const std::int64_t list = one                    ? 0
                                        : lists == Lists::each ? target
                                        : target > own         ? target - 1
                                                               : target;
              std::map<int, int> expected;
              for (const std::int32_t b :
                   looked_in(blocks, one ? -1 : target, own))
                expected[b] = 1;
              if (expected.empty()) continue;
              for (std::int64_t b =
                       blocks.first_block[static_cast<std::size_t>(own)];
                   b < blocks.first_block[static_cast<std::size_t>(own) + 1];
                   ++b, ++num_lists)
                right =
                    right &&
                    met.times[{static_cast<int>(b), static_cast<int>(list)}] ==
                        expected;
            }
          CHECK(right);
          CHECK(met.times.size() == num_lists);
        }
  }
}

TEST_CASE("points of a group have blocks of their own, as full as each other") {
  const std::vector<std::int64_t> sizes = {300, 0, 256, 1, 5000};
  const GroupBlocks blocks(sizes);
  const std::vector<std::int32_t> places = blocks.places();
  CHECK(blocks.num_points() == 5557);
  CHECK(static_cast<std::int64_t>(places.size()) == blocks.num_slots());
  std::int32_t next = 0;
  for (std::int64_t g = 0; g < blocks.num_groups(); ++g) {
    std::set<std::int64_t> counts;
    for (std::int64_t b = blocks.first_block[static_cast<std::size_t>(g)];
         b < blocks.first_block[static_cast<std::size_t>(g) + 1]; ++b) {
      std::int64_t count = 0;
      for (std::int64_t s = b * kFilterBlock; s < (b + 1) * kFilterBlock; ++s)
        if (places[static_cast<std::size_t>(s)] >= 0) {
          CHECK(places[static_cast<std::size_t>(s)] == next++);
          ++count;
        }
      counts.insert(count);
    }
    CHECK(counts.size() <= 2);
    if (!counts.empty()) CHECK(*counts.rbegin() - *counts.begin() <= 1);
  }
  CHECK(next == 5557);
}

namespace {

GpuFacts gpu_with(double bytes_free) {
  GpuFacts gpu;
  gpu.bytes_free = bytes_free;
  gpu.capability = 90;
  gpu.shared_bytes = 232448;
  gpu.multiprocessors = 132;
  return gpu;
}

PlanInput by_groups(std::vector<std::int64_t> sizes, Lists lists,
                    std::int64_t k) {
  PlanInput in;
  in.num_points = 0;
  for (const std::int64_t size : sizes) in.num_points += size;
  in.num_features = 295;
  in.k = k;
  in.unit_dot = in.correlation = true;
  in.group_sizes = std::move(sizes);
  in.lists = lists;
  return in;
}

}  // namespace

TEST_CASE("a graph by groups is planned as one search where it can be") {
  const std::vector<std::int64_t> sizes = {60000, 30000, 10000};
  const double all = 100000.0 * 99999 / 2;
  const double own =
      60000.0 * 59999 / 2 + 30000.0 * 29999 / 2 + 10000.0 * 9999 / 2;
  for (const Lists lists : {Lists::each, Lists::others, Lists::together}) {
    const std::int64_t num_lists = lists == Lists::each     ? 3
                                   : lists == Lists::others ? 2
                                                            : 1;
    const PlanInput in = by_groups(sizes, lists, 7);
    const CudaPlan plan = plan_cuda(in, gpu_with(140e9));
    CHECK(plan.groups_at_once);
    CHECK(plan.filtered);
    CHECK(plan.num_pairs == (lists == Lists::each ? all : all - own));
    CHECK(plan.bytes_result == 100000.0 * 7 * 20 * num_lists);
    CHECK(plan.list_blocks >= GroupBlocks(sizes).num_blocks());
    CHECK(plan.padded_points >= 100000 + kChunkUnit);
    // With less memory fewer groups meet at a time, at least the largest two.
    const double needed = plan.bytes_peak;
    bool at_once = true;
    for (double bytes = needed; at_once && bytes > 1e7; bytes *= 0.9) {
      const CudaPlan less = plan_cuda(in, gpu_with(bytes / 0.9));
      at_once = less.groups_at_once;
      CHECK(less.bytes_peak <= bytes);
      CHECK(less.bytes_result == plan.bytes_result);
      if (at_once) {
        CHECK(less.num_pairs == plan.num_pairs);
      } else {
        // Pairs of different groups are compared twice.
        CHECK(less.num_pairs ==
              (lists == Lists::each ? own : 0) + 2 * (all - own));
        CHECK(bytes < needed);
      }
    }
    CHECK_FALSE(at_once);
  }
}

TEST_CASE("groups that a filter would not gain by are searched one by one") {
  const GpuFacts gpu = gpu_with(140e9);
  // Few points; tiny groups; too many neighbours; queries; no tensor cores.
  CHECK_FALSE(
      plan_cuda(by_groups({900, 900}, Lists::each, 3), gpu).groups_at_once);
  CHECK_FALSE(
      plan_cuda(by_groups(std::vector<std::int64_t>(3000, 2), Lists::others, 1),
                gpu)
          .groups_at_once);
  CHECK_FALSE(plan_cuda(by_groups({9000, 9000}, Lists::each, 2049), gpu)
                  .groups_at_once);
  PlanInput queries = by_groups({9000, 9000}, Lists::each, 3);
  queries.num_queries = 500;
  const CudaPlan plan = plan_cuda(queries, gpu);
  CHECK_FALSE(plan.groups_at_once);
  CHECK(plan.num_pairs == 18000.0 * 500);
  CHECK(plan.bytes_result == 500.0 * 2 * 3 * 20);
  GpuFacts old = gpu;
  old.capability = 70;
  CHECK_FALSE(
      plan_cuda(by_groups({9000, 9000}, Lists::each, 3), old).groups_at_once);
  // One list for all groups needs one device; other lists are divided.
  PlanInput many = by_groups({90000, 90000, 90000}, Lists::together, 3);
  many.num_workers = 2;
  CHECK_FALSE(plan_cuda(many, gpu).groups_at_once);
  many.lists = Lists::others;
  CHECK(plan_cuda(many, gpu).groups_at_once);
  CHECK(plan_cuda(many, gpu).num_workers == 2);
  CHECK(plan_cuda(by_groups({9000, 9000}, Lists::together, 3), gpu)
            .groups_at_once);
  // Another check reports groups that are too small for their lists.
  CHECK_FALSE(
      plan_cuda(by_groups({9000, 3}, Lists::each, 3), gpu).groups_at_once);
  CHECK(plan_cuda(by_groups({9000, 4}, Lists::each, 3), gpu).groups_at_once);
}
