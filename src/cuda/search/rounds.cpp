#include "cuda/search/rounds.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/pieces.hpp"
#include "cuda/device/check.hpp"
#include "cuda/plan/estimates.hpp"
#include "cuda/plan/pieces.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/plan/tile_tree.hpp"

namespace fsknn {
namespace cuda {
namespace {

constexpr std::int64_t kRanges = 64;

/// Calls work(range, first, end) for each of the ranges of so many numbers.
template <class Work>
void for_ranges(std::int64_t count, int num_threads, Work work) {
  constexpr double operations = 20.0;  // of a number
  PieceTeam team(
      kRanges,
      useful_threads(num_threads, operations * static_cast<double>(count)),
      [&](std::int64_t, std::int64_t range) {
        work(range, static_cast<std::size_t>(count * range / kRanges),
             static_cast<std::size_t>(count * (range + 1) / kRanges));
      });
  team.begin(1);
  team.release(1);
  team.finish(0);
}

double risk_of(const Search& search, const FilterRounds& rounds,
               std::int64_t num_rows) {
  return asked_for_haste(search.request)
             ? kHastyRisk
             : risk_of_estimates(num_rows, search.columns.size(), rounds.depth);
}

/// Whether all rounds take a millisecond at most. Then the host puts them on
/// the stream at once: to be woken after each round takes as long as the round.
bool are_brief(const FilterRounds& rounds) {
  constexpr double most = 1.0e11;
  const double slots = static_cast<double>(rounds.num_slabs * kFilterSlab);
  return slots * static_cast<double>(rounds.num_blocks * kFilterBlock) *
             static_cast<double>(rounds.depth) <
         most;
}

/// Makes the rounds without the ranges of slabs.
FilterRounds rounds_on(const Search& search, int device) {
  FilterRounds rounds;
  rounds.num_blocks = FilterBlocks(search.columns.size()).count;
  rounds.depth = search.plan.shape.rows.work;
  rounds.fill_blocks = fill_blocks_for(search.columns.size(), search.plan.k);
  rounds.chunk_size = search.plan.chunk_size;
  rounds.k = search.plan.k;
  rounds.multiprocessors = attribute_of(cudaDevAttrMultiProcessorCount, device);
  return rounds;
}

/// Cuts the lists after a round, together with other devices. Returns whether
/// to continue.
bool end_round(const FilterPass& pass, const FilterJobs& jobs,
               const Stream& stream) {
  if (pass.exchange != nullptr && !jobs.fill && !pass.exchange->gather(stream))
    return false;
  Cut cut = pass.cut;
  cut.filled = jobs.filled;
  cut.counted = jobs.counted;
  cut.all_valid = jobs.all_valid;
  cut.estimate.rank = cut.estimate.may ? jobs.estimate_rank : 0;
  cut.estimate.certain = jobs.fill || cut.estimate.rank == 0;
  cut.estimate.confirms = pass.cut.estimate.confirms && jobs.ends_schedule;
  start_cut(cut, stream.get());
  if (jobs.reranks && pass.reranked != nullptr)
    start_reranking_lists(*pass.metric, *pass.reranked, stream.get());
  return pass.exchange == nullptr || pass.exchange->publish(stream);
}

}  // namespace

std::vector<std::int32_t> counting(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(first));
  return numbers;
}

std::vector<std::int32_t> slots_of(const std::vector<std::int32_t>& places,
                                   std::int64_t num_points, int num_threads) {
  std::vector<std::int32_t> slots(static_cast<std::size_t>(num_points));
  for_ranges(static_cast<std::int64_t>(places.size()), num_threads,
             [&](std::int64_t, std::size_t first, std::size_t end) {
               for (std::size_t slot = first; slot < end; ++slot)
                 if (places[slot] >= 0)
                   slots[static_cast<std::size_t>(places[slot])] =
                       static_cast<std::int32_t>(slot);
             });
  return slots;
}

FilterLayout::FilterLayout(const FilterBlocks& blocks,
                           const std::vector<std::int64_t>& part_blocks,
                           const PointOrder& order,
                           std::vector<std::int32_t> of_slots, int num_threads)
    : num_slots(blocks.num_slots()),
      first_slot(blocks.first_slot(part_blocks.front())),
      end_slot(blocks.first_slot(part_blocks.back())),
      places(std::move(of_slots)),
      slots(slots_of(places, blocks.num_points, num_threads)),
      list_rows(static_cast<std::size_t>(blocks.num_points), -1) {
  // Visiting the numbers from the first to the last is faster than sorting.
  // Slots are unordered, and each is looked up once.
  constexpr std::uint8_t none = 255;
  static_assert(kMostTreeParts < none, "a part is a byte");
  const std::int64_t num_ids = static_cast<std::int64_t>(order.place.size());
  const std::size_t parts = part_blocks.size() - 1;
  std::vector<std::uint8_t> part_of(order.place.size(), none);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(kRanges) * parts, 0);
  const auto at = [&](std::int64_t range, std::size_t part) -> std::int64_t& {
    return rows[static_cast<std::size_t>(range) * parts + part];
  };
  for_ranges(
      num_ids, num_threads,
      [&](std::int64_t range, std::size_t first, std::size_t end) {
        for (std::size_t id = first; id < end; ++id) {
          const std::int32_t place = order.place[id];
          if (place < 0) continue;
          const std::int32_t slot = slots[static_cast<std::size_t>(place)];
          if (slot < first_slot.value || slot >= end_slot.value) continue;
          const auto after = std::upper_bound(
              part_blocks.begin(), part_blocks.end(), slot / kFilterBlock);
          const auto part = after - part_blocks.begin() - 1;
          part_of[id] = static_cast<std::uint8_t>(part);
          ++at(range, static_cast<std::size_t>(part));
        }
      });
  std::int64_t next = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    part_rows.push_back(next);
    for (std::int64_t range = 0; range < kRanges; ++range)
      next += std::exchange(at(range, part), next);
  }
  part_rows.push_back(next);
  row_ids.resize(static_cast<std::size_t>(next));
  row_places.resize(static_cast<std::size_t>(next));
  for_ranges(num_ids, num_threads,
             [&](std::int64_t range, std::size_t first, std::size_t end) {
               for (std::size_t id = first; id < end; ++id) {
                 const std::size_t part = part_of[id];
                 if (part == none) continue;
                 const std::int64_t row = at(range, part)++;
                 const std::int32_t place = order.place[id];
                 row_ids[static_cast<std::size_t>(row)] =
                     static_cast<std::int32_t>(id);
                 row_places[static_cast<std::size_t>(row)] = place;
                 list_rows[static_cast<std::size_t>(place)] =
                     static_cast<std::int32_t>(row - part_rows[part]);
               }
             });
}

FilterLayout layout_of(const Search& search, const FilterTeam& team, int own) {
  const FilterBlocks blocks(search.columns.size());
  return FilterLayout(blocks,
                      {first_block_of(blocks, own, team.size()),
                       first_block_of(blocks, own + 1, team.size())},
                      search.columns.order, blocks.places());
}

std::int64_t owned_points(const Search& search, const FilterTeam& team,
                          int own) {
  const FilterBlocks blocks(search.columns.size());
  const auto first = [&](int device) {
    return blocks.first_place(first_block_of(blocks, device, team.size()))
        .value;
  };
  return first(own + 1) - first(own);
}

FilterRounds rounds_of_graph(const Search& search, const FilterTeam& team,
                             int own) {
  const FilterBlocks blocks(search.columns.size());
  const std::int64_t first = first_block_of(blocks, own, team.size());
  const std::int64_t end = first_block_of(blocks, own + 1, team.size());
  FilterRounds rounds =
      rounds_on(search, team.shares[static_cast<std::size_t>(own)].device);
  rounds.first_slab = first * kSlabsABlock;
  rounds.num_slabs = (end - first) * kSlabsABlock;
  rounds.risk = risk_of(search, rounds, search.columns.size());
  return rounds;
}

FilterRounds rounds_of_queries(const Search& search, std::int64_t num_rows) {
  FilterRounds rounds = rounds_on(search, current_device());
  rounds.num_slabs = query_slots(num_rows) / kFilterSlab;
  rounds.symmetric = false;
  use_capacity(rounds,
               candidates_for_queries(search.plan.k, search.rows.size()));
  rounds.risk = risk_of(search, rounds, num_rows);
  return rounds;
}

std::int64_t num_launches(const FilterRounds& rounds) {
  return static_cast<std::int64_t>(schedule_filter(rounds).size());
}

void begin_reranking(const Search& search, FilterPass& pass, ExactStep& step,
                     std::int64_t num_lists, const Stream& stream) {
  const SimilarityUnits units = pass.filter->units(pass.cut, stream);
  step.limits = limit_rule(*search.request.metric, search.redo, units);
  step.row_slack = pass.cut.row_slack;
  const bool distances_tell = may_rerank(step);
  EstimateRule estimate;
  // Where bounds are wide, lists are re-ranked often and thresholds are not
  // estimated.
  constexpr double slow_growth = 1.5;
  constexpr int many_rounds = 8;
  if (units.wide && distances_tell) {
    pass.rounds.risk = 0.0;
    pass.rounds.growth = slow_growth;
  }
  estimate.may = step.estimated = pass.rounds.risk > 0.0;
  estimate.confirms = estimate.may && !distances_tell;
  pass.rounds.reranked_rounds =
      units.wide ? many_rounds : pass.filter->reranked_rounds();
  if (distances_tell)
    estimate.error_part = estimated_error_part(pass.rounds.reranked_rounds > 0);
  pass.cut.estimate = estimate;
  step.begun = pass.rounds.reranked_rounds > 0 && distances_tell;
  pass.reranked = nullptr;
  if (!step.begun) return;
  pass.reranked = &step;
  pass.metric = search.request.metric;
  start_clear(step.nearest, num_lists, stream.get());
}

bool run_schedule(FilterPass& pass, FilterSchedule& schedule,
                  const AroundLaunch& around, const Stream& stream) {
  using Part = FilterPass::Part;
  const bool waits = pass.workers != nullptr &&
                     (around.before || around.after ||
                      pass.exchange != nullptr || !are_brief(pass.rounds));
  for (std::size_t launch = 0;; ++launch) {
    const FilterJobs* const next = schedule.next();
    if (next == nullptr) return true;
    const FilterJobs jobs = *next;
    if (jobs.fill && pass.part == Part::after_first) continue;
    if (!jobs.fill && pass.part == Part::first_round) return true;
    if (waits) pass.under_way.begin();
    if (around.before) around.before(jobs, launch);
    pass.work.jobs = jobs;
    if (jobs.first_job < jobs.end_job)
      pass.filter->start(pass.work, stream.get());
    if (jobs.ends_round && !end_round(pass, jobs, stream)) return false;
    const std::int64_t pieces = around.after ? around.after(launch) : 1;
    if (pieces == AroundLaunch::kStop) return false;
    if (pass.workers == nullptr) continue;
    if (waits) pass.under_way.end(stream);
    if (!pass.workers->go_on(pieces)) {
      stream.wait();
      return false;
    }
  }
}

bool run_rounds(FilterPass& pass, const Stream& stream) {
  KnownSchedule schedule(schedule_filter(pass.rounds));
  return run_schedule(pass, schedule, {}, stream);
}

}  // namespace cuda
}  // namespace fsknn
