#include <algorithm>
#include <type_traits>

#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/exact/candidates.hpp"
#include "cuda/exact/exact_step.cuh"
#include "cuda/exact/pair_sum.cuh"
#include "cuda/exact/shared_pairs.cuh"
#include "cuda/exact/sorting.cuh"
#include "cuda/exact/warp_lists.cuh"
#include "cuda/plan/units.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kRankThreads = 256;

// For lists up to this length a small block handles a row, and has room for all
// entries.
constexpr std::int32_t kFewCandidates = 1024;
// Up to this many candidates are compared pairwise; more are sorted.
constexpr int kMostCompared = 256;

// Computes the contract's distances of a row's candidates and places each at
// its rank. In and out: see ExactStep. Grid: one block a slot. Block:
// Block::threads. Shared: `room` distances and numbers, dynamic; a row with a
// longer list is recomputed.
template <class Rule, class Block>
__global__ void __launch_bounds__(Block::threads)
    rank_candidates(const ExactStep step, const int room) {
  using Sum = typename Rule::Sum;
  extern __shared__ __align__(16) unsigned char memory[];
  const Entries found = {
      reinterpret_cast<double*>(memory),
      reinterpret_cast<std::int32_t*>(memory + sizeof(double) * room)};
  const CandidateLists& lists = step.lists;
  const std::int64_t slot = step.first_slot.value + blockIdx.x;
  const std::int32_t count = to_rank(step, slot, room);
  if (count == 0) return;
  const std::int32_t place = lists.places[slot];
  const std::int64_t k = step.nearest.k;
  const int tid = static_cast<int>(threadIdx.x);

  const Candidate* const list = lists.entries + slot * lists.capacity;
  const double* const row = step.rows + place * step.padded;
  const double row_sum = step.row_sums[place];
  constexpr bool by_overlap = std::is_same<Sum, SmallerSum>::value;
  constexpr bool by_difference = std::is_same<Sum, AbsoluteDifference>::value ||
                                 std::is_same<Sum, SquaredDifference>::value;
  const bool told = (by_overlap || by_difference) && step.sums_given;
  // One thread handles a pair.
  for (int at = told ? tid : count; at < count; at += Block::threads) {
    const Candidate candidate = list[at];
    const std::int64_t other = lists.column_places[candidate.slot];
    const double other_sum = step.column_sums[other];
    const double sum =
        by_difference ? -2.0 * static_cast<double>(candidate.similarity)
                      : given_sum(candidate.similarity, row_sum, other_sum);
    found.set(at, {finished(Rule(), sum, row_sum, other_sum, step.undo),
                   lists.column_ids[other]});
  }
  for (int first = told ? count : 0; first < count; first += Block::pairs) {
    // Threads past the end repeat the last pair, because the reduction needs
    // the whole warp.
    const int own = first + tid / Block::pair_threads;
    const int at = min(own, count - 1);
    const std::int64_t other = lists.column_places[list[at].slot];
    const double sum = pair_sum<Sum>(row, step.columns + other * step.padded,
                                     step.padded, tid % Block::pair_threads);
    if (tid % Block::pair_threads != 0 || own >= count) continue;
    const double distance =
        finished(Rule(), sum, row_sum, step.column_sums[other], step.undo);
    found.set(at, {distance, lists.column_ids[other]});
  }
  __syncthreads();

  const Entries nearest = neighbours_of(step, place, slot);
  if (tid == 0) count_exact(step, slot, count);
  if (count > kMostCompared) {
    sort_gathered<Block::threads>(found, count);
    for (int rank = tid; rank < k; rank += Block::threads)
      nearest.set(rank, found.get(rank));
    return;
  }
  for (int a = tid; a < count; a += Block::threads) {
    const Entry mine = found.get(a);
    int rank = 0;
    for (int b = 0; b < count; ++b) rank += comes_before(found.get(b), mine);
    if (rank < k) nearest.set(rank, mine);
  }
}

// Does the same, one warp a row, where lists of neighbours are no longer than a
// warp: with few candidates a row, most of a block would be idle. It processes
// the first candidates, which the last cut placed there, then the others that
// are near enough for the k-th so far. only_first: it skips the others, and the
// lists remain. A row is recomputed if its k-th distance does not confirm its
// estimated threshold. In and out: see ExactStep. Grid: x over slots, a warp
// each. Block: kRankThreads. Shared: static. A row whose list is longer than
// `room` is recomputed.
template <class Rule, bool only_first>
__global__ void __launch_bounds__(kRankThreads)
    rank_in_warps(const ExactStep step, const int room, const Rule rule) {
  using Sum = typename Rule::Sum;
  using Threads = ExactBlock<kWarp>;
  __shared__ std::int32_t wanted_slots[kRankThreads / kWarp][kWarp];
  const CandidateLists& lists = step.lists;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::int32_t* const slots = wanted_slots[threadIdx.x / kWarp];
  const std::int64_t slot =
      step.first_slot.value +
      (static_cast<std::int64_t>(blockIdx.x) * kRankThreads + threadIdx.x) /
          kWarp;
  if (slot >= step.end_slot.value) return;
  const std::int32_t place = lists.places[slot];
  if (place < 0) return;
  const std::int32_t count = lists.counts[slot];
  if (is_overflowed(count)) return;
  const int k = static_cast<int>(step.nearest.k);
  if (count < k || count > room) {
    if (!only_first && lane == 0) leave_list(step, place, slot);
    return;
  }

  Candidate* const list = lists.entries + slot * lists.capacity;
  const double* const row = step.rows + place * step.padded;
  const double row_sum = step.row_sums[place];
  const Entries to = neighbours_of(step, place, slot);
  const bool tells =
      step.limits.of != LimitOf::nothing &&
      (step.row_slack == nullptr || step.row_slack[slot] < CUDART_INF_F);
  // k, rounded up to whole turns.
  const int leading =
      (k + Threads::pairs - 1) / Threads::pairs * Threads::pairs;
  const int end = only_first ? min(count, leading) : count;
  const float used = lists.thresholds[slot];
  float threshold = used, certain = step.estimated ? lists.bounds[slot] : used;
  LaneEntry nearest = LaneEntry::none();
  if (step.begun && lane < k) {
    const Entry before = to.get(lane);
    nearest = {before.distance, before.index};
  }
  int made = 0;
  for (int first = 0, some = leading; first < end;
       first += some, some = kWarp) {
    const int at = first + lane;
    const bool there = lane < some && at < end;
    const Candidate own = there ? list[at] : Candidate{0.0f, 0};
    const bool wanted =
        there && !is_reranked(own) && own.similarity >= threshold;
    const unsigned all_wanted = __ballot_sync(kWholeWarp, wanted);
    if (all_wanted == 0) continue;
    const int num_wanted = __popc(all_wanted);
    made += num_wanted;
    if (wanted) slots[__popc(all_wanted & ((1u << lane) - 1))] = own.slot;
    if (only_first && wanted)
      list[at].slot = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(own.slot) | kReranked);
    __syncwarp();
    LaneEntry found = LaneEntry::none();
    for (int turn = 0; turn * Threads::pairs < num_wanted; ++turn) {
      // Threads past the end repeat the last pair, because the reduction needs
      // the whole warp.
      const int pair = turn * Threads::pairs + lane / Threads::pair_threads;
      const std::int64_t other =
          lists.column_places[slots[min(pair, num_wanted - 1)]];
      const double sum =
          pair_sum<Sum>(row, step.columns + other * step.padded, step.padded,
                        lane % Threads::pair_threads);
      const double distance =
          finished(rule, sum, row_sum, step.column_sums[other], step.undo);
      LaneEntry entry = {distance, lists.column_ids[other]};
      if (pair >= num_wanted) entry = LaneEntry::none();
      // Moves each distance to the lane that has the candidate's number.
      const LaneEntry mine =
          entry.from(lane % Threads::pairs * Threads::pair_threads);
      if (lane / Threads::pairs == turn) found = mine;
    }
    __syncwarp();
    nearest = merged(nearest, sorted(found, lane), lane);
    const double limit = nearest.from(k - 1).distance;
    // All pairs within this limit reach this similarity: see limit_rule.hpp.
    const float reached =
        tells ? threshold_at(step.limits, limit) : -CUDART_INF_F;
    if (!(reached < CUDART_INF_F)) continue;
    threshold = fmaxf(threshold, reached);
    certain = fmaxf(certain, reached);
  }
  if (lane < k) to.set(lane, {nearest.distance, nearest.index});
  if (lane > 0) return;
  if (only_first) lists.thresholds[slot] = threshold;
  if (step.estimated) lists.bounds[slot] = certain;
  // An estimate that was too high may have dropped neighbours.
  if (!only_first && used > certain) do_again(step.redo, place, slot);
  count_exact(step, slot, made);
}

static_assert(kMostReranked == kLongestWarpList, "as the plan takes it");

// Where similarities give the sums, a pair never needs more than one thread.
bool in_warps(const ExactStep& step) {
  return step.nearest.k <= kLongestWarpList &&
         step.lists.capacity <= kFewCandidates && !step.sums_given;
}

unsigned blocks_of_warps(const ExactStep& step) {
  return static_cast<unsigned>(ceil_div(
      step.end_slot.value - step.first_slot.value, kRankThreads / kWarp));
}

template <bool only_first>
void start_warps(const MetricEntry& metric, const ExactStep& step, int room,
                 cudaStream_t stream) {
  with_any_sign(metric, [&](auto rule) {
    rank_in_warps<decltype(rule), only_first>
        <<<blocks_of_warps(step), kRankThreads, 0, stream>>>(step, room, rule);
  });
  CUDA_CHECK(cudaGetLastError());
}

void start_lists(const MetricEntry& metric, const ExactStep& step,
                 cudaStream_t stream) {
  const std::int64_t slots = step.end_slot.value - step.first_slot.value;
  if (slots == 0) return;
  const unsigned grid = static_cast<unsigned>(slots);
  // After the last cut a long list has few entries beyond k.
  const std::int32_t capacity = step.lists.capacity;
  const int room = capacity <= kFewCandidates ? capacity : capacity / 2;
  const int bytes =
      room * static_cast<int>(sizeof(double) + sizeof(std::int32_t));
  if (in_warps(step)) return start_warps<false>(metric, step, room, stream);
  with_pair_rule(metric, [&](auto rule) {
    const auto start = [&](auto block) {
      using Block = decltype(block);
      rank_candidates<decltype(rule), Block>
          <<<grid, Block::threads, bytes, stream>>>(step, room);
    };
    if (capacity <= kFewCandidates)
      start(ExactBlock<128>());
    else
      start(ExactBlock<256>());
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

bool may_rerank(const ExactStep& step) {
  return in_warps(step) && step.limits.of != LimitOf::nothing;
}

void start_reranking_lists(const MetricEntry& metric, const ExactStep& step,
                           cudaStream_t stream) {
  if (step.end_slot.value == step.first_slot.value) return;
  start_warps<true>(metric, step, step.lists.capacity, stream);
}

void run_exact(const MetricEntry& metric, const ExactStep& step,
               const Stream& stream) {
  if (step.lists.capacity > kFewCandidates && may_share_pairs(step)) {
    run_exact_shared(metric, step, stream);
    return;
  }
  in_turns(step, stream, [&](const ExactStep& part) {
    start_lists(metric, part, stream.get());
  });
}

}  // namespace cuda
}  // namespace fsknn
