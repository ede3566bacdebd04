#include "cuda/plan/group_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/plan/filter_shape.hpp"

namespace fsknn {
namespace cuda {
namespace {

using Lists = PointGroups::Lists;

/// The kinds of launches.
enum Kind { fill, both_sides, one_side, num_kinds };

/// Collects the jobs of a batch by round and kind.
class Rounds {
 public:
  Rounds(GroupBatch& batch, const GroupMeetings& meetings)
      : batch_(batch), meetings_(meetings) {}

  /// Adds the comparison of row block `row` with `count` blocks from `column`
  /// on. Blocks that continue the last job of the kind extend it.
  void meet(std::size_t round, Kind kind, std::int64_t row, std::int64_t column,
            std::int64_t position = 0) {
    while (jobs_.size() <= round) jobs_.emplace_back(num_kinds);
    std::vector<ListedJob>& jobs = jobs_[round][kind];
    if (!jobs.empty()) {
      ListedJob& last = jobs.back();
      const std::int64_t length = last.end_delta - last.first_delta;
      const bool follows = last.row_block == row &&
                           last.column_block + length == column &&
                           length < meetings_.span &&
                           (kind != fill || last.end_delta == position);
      if (follows) {
        ++last.end_delta;
        return;
      }
    }
    const std::int32_t first = static_cast<std::int32_t>(position);
    jobs.push_back({static_cast<std::int32_t>(row),
                    static_cast<std::int32_t>(column), first, first + 1});
  }

  /// Writes the jobs to the batch, in launches.
  void finish() {
    const double work = static_cast<double>(meetings_.depth) *
                        static_cast<double>(kFilterBlock * kFilterBlock);
    for (auto& round : jobs_) {
      bool any = false;
      for (int kind = 0; kind < num_kinds; ++kind) {
        std::vector<ListedJob>& jobs = round[static_cast<std::size_t>(kind)];
        std::int64_t met = 0;
        GroupLaunch launch = {next(), next(), kind == both_sides, kind == fill,
                              false};
        for (const ListedJob& job : jobs) {
          const bool full =
              static_cast<double>(met) * work >= kFilterLaunchWork ||
              next() - launch.first_job >= kMostListedJobs;
          if (full) {
            end(launch);
            launch.first_job = next();
            met = 0;
          }
          batch_.jobs.push_back(job);
          met += job.end_delta - job.first_delta;
        }
        any = any || !jobs.empty();
        end(launch);
        jobs = {};
      }
      if (any) batch_.launches.back().ends_round = true;
    }
  }

 private:
  std::int64_t next() const {
    return static_cast<std::int64_t>(batch_.jobs.size());
  }
  void end(GroupLaunch launch) {
    launch.end_job = next();
    if (launch.end_job > launch.first_job) batch_.launches.push_back(launch);
  }

  GroupBatch& batch_;
  const GroupMeetings& meetings_;
  std::vector<std::vector<std::vector<ListedJob>>> jobs_;
};

/// The ends of the rounds, in blocks that a list has seen: the first end fills
/// it, the last covers all blocks.
std::vector<std::int64_t> round_ends(std::int64_t k, std::int64_t first,
                                     std::int64_t all) {
  const std::int64_t growth = growth_of_rounds(k);
  std::vector<std::int64_t> ends;
  for (std::int64_t end = first; end < all; end *= growth) ends.push_back(end);
  ends.push_back(all);
  return ends;
}

/// The number of blocks that contain somewhat more than k of that many points.
std::int64_t enough_blocks(std::int64_t k, std::int64_t points,
                           std::int64_t blocks) {
  if (blocks == 0) return 0;
  const std::int64_t fewest = ceil_div(k + k / 32 + 8, points / blocks);
  // The k-th of one block would be near the median of all points, so that the
  // next round would pass half of its pairs.
  return std::min(blocks, k > kFilterBlock / 4
                              ? std::max<std::int64_t>(3, fewest)
                              : fewest);
}

class Batches {
 public:
  Batches(const GroupBlocks& blocks, const GroupMeetings& meetings)
      : blocks_(blocks), meetings_(meetings) {}

  struct Pair {
    std::int64_t a, b;
  };
  /// All pairs of groups that are compared, unless all groups share one list.
  std::vector<Pair> pairs() const {
    std::vector<Pair> pairs;
    const std::int64_t count = blocks_.num_groups();
    for (std::int64_t a = 0; a < count; ++a)
      for (std::int64_t b = a; b < count; ++b)
        if ((a != b || meetings_.lists == Lists::each) &&
            blocks_.blocks(a) > 0 && blocks_.blocks(b) > 0)
          pairs.push_back({a, b});
    return pairs;
  }
  std::int64_t list_blocks(const Pair& pair) const {
    return blocks_.blocks(pair.a) +
           (pair.a == pair.b ? 0 : blocks_.blocks(pair.b));
  }
  /// The number of pairs of blocks.
  double work(const Pair& pair) const {
    return static_cast<double>(blocks_.blocks(pair.a)) *
           static_cast<double>(blocks_.blocks(pair.b)) *
           (pair.a == pair.b ? 0.5 : 1.0);
  }

  GroupBatch batch(const std::vector<Pair>& pairs) const {
    GroupBatch batch;
    Rounds rounds(batch, meetings_);
    for (const Pair& pair : pairs) {
      if (pair.a == pair.b)
        meet_itself(batch, rounds, pair.a);
      else if (blocks_.blocks(pair.a) <= blocks_.blocks(pair.b))
        meet(batch, rounds, pair.a, pair.b);
      else
        meet(batch, rounds, pair.b, pair.a);
    }
    rounds.finish();
    return batch;
  }

  /// Compares all groups, with one list for all groups but the own. The blocks
  /// are in random order, so that consecutive blocks are of any group.
  GroupBatch together() const {
    GroupBatch batch;
    Rounds rounds(batch, meetings_);
    const std::int64_t all = blocks_.num_blocks();
    const PointOrder order = order_points(all, {}, true);
    std::vector<std::int64_t> group(static_cast<std::size_t>(all));
    std::vector<std::int64_t> filled(group.size());
    for (std::int64_t v = 0; v < all; ++v)
      group[static_cast<std::size_t>(v)] =
          group_of(order.id[static_cast<std::size_t>(v)]);
    // The end of the blocks, counted from each block, that fill its lists.
    std::int64_t most = 1;
    for (std::int64_t v = 0; v < all; ++v) {
      const std::int64_t own = group[static_cast<std::size_t>(v)];
      const std::int64_t others = blocks_.num_points() - blocks_.size(own);
      const std::int64_t fill_blocks =
          enough_blocks(meetings_.k, others, all - blocks_.blocks(own));
      std::int64_t count = 0, delta = 0;
      // Blocks of small groups have few points. So blocks are added until there
      // are enough points, or the lists are full. A list with too few points
      // takes all candidates in the next round.
      const std::int64_t room = candidates_for(meetings_.k) / kFilterBlock;
      const std::int64_t wanted = meetings_.k + meetings_.k / 32 + 8;
      std::int64_t points = 0;
      while (count < room && delta < all - 1 &&
             (count < fill_blocks || points < wanted)) {
        const std::int64_t other = (v + ++delta) % all;
        const std::int64_t of = group[static_cast<std::size_t>(other)];
        if (of == own) continue;
        rounds.meet(0, fill, v, other, count++);
        points += blocks_.size(of) / blocks_.blocks(of);
      }
      filled[static_cast<std::size_t>(v)] = delta;
      add(batch, order.id[static_cast<std::size_t>(v)], 0, -1, count);
      most = std::max(most, count);
    }
    const std::vector<std::int64_t> ends =
        round_ends(meetings_.k, most, std::max(most, all / 2 + 1));
    for (std::int64_t r = 0, delta = 1;
         r < static_cast<std::int64_t>(ends.size()); ++r) {
      const std::int64_t end =
          std::min(ends[static_cast<std::size_t>(r)], all / 2 + 1);
      for (std::int64_t v = 0; v < all; ++v)
        for (std::int64_t d = delta; d < end; ++d) {
          if (2 * d == all && v >= d) continue;
          const std::int64_t w = (v + d) % all;
          if (group[static_cast<std::size_t>(v)] ==
              group[static_cast<std::size_t>(w)])
            continue;
          meet_left(rounds, static_cast<std::size_t>(r) + 1, v, w,
                    d > filled[static_cast<std::size_t>(v)],
                    all - d > filled[static_cast<std::size_t>(w)]);
        }
      delta = std::max(delta, end);
    }
    rounds.finish();
    return batch;
  }

 private:
  std::int64_t group_of(std::int64_t block) const {
    return std::upper_bound(blocks_.first_block.begin(),
                            blocks_.first_block.end(), block) -
           blocks_.first_block.begin() - 1;
  }
  std::int64_t fill_blocks(std::int64_t group) const {
    return enough_blocks(meetings_.k, blocks_.size(group),
                         blocks_.blocks(group));
  }
  static void add(GroupBatch& batch, std::int64_t block, std::int64_t list,
                  std::int64_t target, std::int64_t fill_blocks) {
    const std::int32_t filled =
        static_cast<std::int32_t>(fill_blocks * kFilterBlock);
    batch.blocks.push_back({static_cast<std::int32_t>(block),
                            static_cast<std::int32_t>(list),
                            static_cast<std::int32_t>(target), filled});
    batch.most_filled = std::max(batch.most_filled, filled);
  }
  /// Adds the list blocks of `group` for neighbours in `target`. Returns the
  /// first.
  std::int64_t add_group(GroupBatch& batch, std::int64_t group,
                         std::int64_t target, std::int64_t fill_blocks) const {
    const std::int64_t first = static_cast<std::int64_t>(batch.blocks.size());
    const std::int64_t list = meetings_.lists == Lists::each ? target
                              : meetings_.lists == Lists::together
                                  ? 0
                                  : target - (target > group ? 1 : 0);
    for (std::int64_t b = 0; b < blocks_.blocks(group); ++b)
      add(batch, blocks_.first_block[static_cast<std::size_t>(group)] + b, list,
          target, fill_blocks);
    return first;
  }

  /// Compares two blocks for the lists of the row, of the column, of both, or
  /// of neither.
  static void meet_left(Rounds& rounds, std::size_t round, std::int64_t row,
                        std::int64_t column, bool for_row, bool for_column) {
    if (for_row && for_column)
      rounds.meet(round, both_sides, row, column);
    else if (for_row)
      rounds.meet(round, one_side, row, column);
    else if (for_column)
      rounds.meet(round, one_side, column, row);
  }

  /// Compares each row block with the column blocks from its first one on,
  /// delta by delta, modulo the number of columns. There are at least as many
  /// columns as rows, and the first columns of the rows are spread evenly. So
  /// in each round a column, too, meets as many rows as in all rounds before,
  /// or a few times as many.
  void meet(GroupBatch& batch, Rounds& rounds, std::int64_t rows,
            std::int64_t columns) const {
    const std::int64_t a = blocks_.blocks(rows), b = blocks_.blocks(columns);
    const std::int64_t fill_a = fill_blocks(columns);
    const std::int64_t fill_b = fill_blocks(rows);
    const std::int64_t first_a = add_group(batch, rows, columns, fill_a);
    const std::int64_t first_b = add_group(batch, columns, rows, fill_b);
    for (std::int64_t i = 0; i < a; ++i)
      for (std::int64_t f = 0; f < fill_a; ++f)
        rounds.meet(0, fill, first_a + i, first_b + (i * b / a + f) % b, f);
    // The columns' lists are filled by the rows that would meet them first: the
    // last row that begins no later than here, and those before it. Most of
    // these pairs of blocks are then the same.
    const auto nearest_row = [&](std::int64_t j) {
      return ((j + 1) * a - 1) / b;
    };
    for (std::int64_t j = 0; j < b; ++j)
      for (std::int64_t f = 0; f < fill_b; ++f)
        rounds.meet(0, fill, first_b + j,
                    first_a + (nearest_row(j) - f + a) % a, f);
    const std::vector<std::int64_t> ends = round_ends(meetings_.k, fill_a, b);
    for (std::size_t r = 0; r < ends.size(); ++r) {
      const std::int64_t from = r == 0 ? 0 : ends[r - 1];
      for (std::int64_t i = 0; i < a; ++i)
        for (std::int64_t delta = from; delta < ends[r]; ++delta) {
          const std::int64_t j = (i * b / a + delta) % b;
          meet_left(rounds, std::max<std::size_t>(r, 1), first_a + i,
                    first_b + j, delta >= fill_a,
                    (nearest_row(j) - i + a) % a >= fill_b);
        }
    }
  }

  /// Compares a group with itself as a graph (plan/rounds.hpp): a list is
  /// filled by blocks on both sides.
  void meet_itself(GroupBatch& batch, Rounds& rounds,
                   std::int64_t group) const {
    const std::int64_t a = blocks_.blocks(group);
    const std::int64_t fill_blocks =
        std::min(a, enough_blocks(meetings_.k, blocks_.size(group), a) | 1);
    const std::int64_t first = add_group(batch, group, group, fill_blocks);
    const bool all = fill_blocks == a;
    const std::int64_t side = all ? 0 : fill_blocks / 2;
    for (std::int64_t i = 0; i < a; ++i)
      for (std::int64_t f = 0; f < fill_blocks; ++f)
        rounds.meet(0, fill, first + i,
                    first + (all ? f : (i - side + f + a) % a), f);
    if (all) return;
    const std::vector<std::int64_t> ends =
        round_ends(meetings_.k, side + 1, a / 2 + 1);
    for (std::size_t r = 1; r < ends.size(); ++r)
      for (std::int64_t i = 0; i < a; ++i)
        for (std::int64_t delta = ends[r - 1]; delta < ends[r]; ++delta)
          if (2 * delta != a || i < delta)
            rounds.meet(r, both_sides, first + i, first + (i + delta) % a);
  }

  const GroupBlocks& blocks_;
  const GroupMeetings& meetings_;
};

}  // namespace

PointOrder order_by_group(const PointGroups& groups, const PointOrder& order) {
  const std::size_t count = static_cast<std::size_t>(groups.count());
  std::vector<std::int64_t> next(count + 1, 0);
  const auto group = [&](std::int32_t id) {
    return static_cast<std::size_t>(groups.of()[static_cast<std::size_t>(id)]);
  };
  for (const std::int32_t id : order.id) ++next[group(id) + 1];
  for (std::size_t g = 1; g <= count; ++g) next[g] += next[g - 1];
  PointOrder by_group = order;
  for (const std::int32_t id : order.id) {
    const std::int64_t place = next[group(id)]++;
    by_group.id[static_cast<std::size_t>(place)] = id;
    by_group.place[static_cast<std::size_t>(id)] =
        static_cast<std::int32_t>(place);
  }
  return by_group;
}

GroupBlocks::GroupBlocks(const std::vector<std::int64_t>& sizes)
    : first_place(1, 0), first_block(1, 0) {
  for (const std::int64_t size : sizes) {
    first_place.push_back(first_place.back() + size);
    first_block.push_back(first_block.back() + ceil_div(size, kFilterBlock));
  }
}

std::vector<std::int32_t> GroupBlocks::places() const {
  std::vector<std::int32_t> places(static_cast<std::size_t>(num_slots()), -1);
  for (std::int64_t g = 0; g < num_groups(); ++g) {
    const std::int64_t count = blocks(g), points = size(g);
    for (std::int64_t b = 0; b < count; ++b) {
      const std::int64_t first =
          b * (points / count) + b * (points % count) / count;
      const std::int64_t end =
          (b + 1) * (points / count) + (b + 1) * (points % count) / count;
      const std::int64_t slot = (at(first_block, g) + b) * kFilterBlock;
      for (std::int64_t p = first; p < end; ++p)
        places[static_cast<std::size_t>(slot + p - first)] =
            static_cast<std::int32_t>(at(first_place, g) + p);
    }
  }
  return places;
}

std::int64_t most_list_blocks(const GroupBlocks& blocks,
                              const GroupMeetings& meetings) {
  if (meetings.lists == Lists::together) return blocks.num_blocks();
  const Batches all(blocks, meetings);
  std::int64_t most = 0, sum = 0;
  for (const Batches::Pair& pair : all.pairs()) {
    most = std::max(most, all.list_blocks(pair));
    sum += all.list_blocks(pair);
  }
  return std::max(most, std::min(sum, meetings.most_blocks));
}

std::vector<std::vector<GroupBatch>> group_batches(
    const GroupBlocks& blocks, const GroupMeetings& meetings, int count) {
  std::vector<std::vector<GroupBatch>> of_device(
      static_cast<std::size_t>(count));
  const Batches all(blocks, meetings);
  if (meetings.lists == Lists::together) {
    of_device[0].push_back(all.together());
    return of_device;
  }
  // Assigns the largest pairs first, each to the device with the least work.
  std::vector<Batches::Pair> pairs = all.pairs();
  if (count > 1)
    std::stable_sort(pairs.begin(), pairs.end(),
                     [&](const Batches::Pair& a, const Batches::Pair& b) {
                       return all.work(a) > all.work(b);
                     });
  std::vector<double> work(of_device.size(), 0.0);
  std::vector<std::vector<Batches::Pair>> share(of_device.size());
  for (const Batches::Pair& pair : pairs) {
    const std::size_t least = static_cast<std::size_t>(
        std::min_element(work.begin(), work.end()) - work.begin());
    work[least] += all.work(pair);
    share[least].push_back(pair);
  }
  for (std::size_t w = 0; w < of_device.size(); ++w) {
    std::vector<Batches::Pair> now;
    std::int64_t size = 0;
    const auto close = [&] {
      if (!now.empty()) of_device[w].push_back(all.batch(now));
      now.clear();
      size = 0;
    };
    for (const Batches::Pair& pair : share[w]) {
      if (size + all.list_blocks(pair) > meetings.most_blocks) close();
      now.push_back(pair);
      size += all.list_blocks(pair);
    }
    close();
  }
  return of_device;
}

std::vector<std::int32_t> looked_in(const GroupBlocks& blocks,
                                    std::int64_t target, std::int64_t own) {
  std::vector<std::int32_t> all;
  for (std::int64_t g = 0; g < blocks.num_groups(); ++g) {
    if (target >= 0 ? g != target : g == own) continue;
    for (std::int64_t b = blocks.first_block[static_cast<std::size_t>(g)];
         b < blocks.first_block[static_cast<std::size_t>(g) + 1]; ++b)
      all.push_back(static_cast<std::int32_t>(b));
  }
  return all;
}

}  // namespace cuda
}  // namespace fsknn
