#include "cuda/exact/rerank.hpp"

#include <math_constants.h>

#include <algorithm>

#include "core/base/select.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kRankThreads = 128;
constexpr unsigned kWholeWarp = 0xffffffffu;

// One warp handles an owned point. Grid: x over points. Block: kThreads.
// Shared: none.
__global__ void __launch_bounds__(kThreads)
    list_waiting(const PairsFromLists from, const WaitingPairs to) {
  const std::int64_t own = warp_number();
  if (own >= from.num_owned) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Candidate* const list =
      from.lists.entries +
      static_cast<std::int64_t>(from.own_slots[own]) * from.lists.capacity;
  const std::int64_t first = to.first[own];
  const std::int64_t count = to.first[own + 1] - first;
  for (std::int64_t at = lane; at < count; at += kWarp)
    to.columns[first + at] = from.panel_places[list[at].slot];
}

/// A warp ranks the pairs of 32 / row_threads owned points from `own` on
/// exactly, each by row_threads threads. These examine that many pairs
/// together. Of those whose rows are present, each group of 8 threads (one a
/// lane) computes one.
template <class Rule, int row_threads>
__device__ inline void rerank_rows(const Reranking& s, std::int64_t own) {
  using Sum = typename Rule::Sum;
  constexpr int at_a_time = row_threads / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first_lane = lane / row_threads * row_threads;
  const int own_lane = lane - first_lane, group = own_lane / kLanes;
  own += lane / row_threads;
  const bool there = own < s.end_owned;
  const std::int64_t row =
      there ? s.pairs.own_places[own] - s.rows.first.value : 0;
  const std::int64_t end = there ? s.pairs.first[own + 1] : 0;
  std::int64_t at = there ? s.pairs.first[own] : 0;
  for (; __any_sync(kWholeWarp, at < end); at += row_threads) {
    const std::int64_t column =
        at + own_lane < end
            ? s.pairs.columns[at + own_lane] - s.columns.first.value
            : -1;
    unsigned left =
        __ballot_sync(kWholeWarp, column >= 0 && column < s.columns.count);
    if (row_threads < kWarp)
      left = (left >> first_lane) & ((1u << row_threads % kWarp) - 1);
    while (__any_sync(kWholeWarp, left != 0)) {
      // Each group takes its own of the next pairs; surplus groups have none,
      // but take part in the shuffles.
      int which = -1;
      for (int skip = 0; skip < at_a_time && left != 0; ++skip) {
        if (skip == group) which = __ffs(static_cast<int>(left)) - 1;
        left &= left - 1;
      }
      const std::int64_t other = __shfl_sync(
          kWholeWarp, static_cast<int>(column), first_lane + max(which, 0));
      double part = 0.0;
      if (which >= 0)
        part = lane_sum<Sum>(s.rows.rows + row * s.padded,
                             s.columns.rows + other * s.padded, s.padded,
                             lane % kLanes);
      const double sum = joined<Sum>(part);
      if (which >= 0 && lane % kLanes == 0)
        s.pairs.values[at + which] = found_value<Rule>(
            Sum::checked(sum, s.rows.rows + row * s.padded,
                         s.columns.rows + other * s.padded, s.padded),
            s.rows.sums[row], s.columns.sums[other], s.undo);
    }
  }
}

// The first blocks use a warp for each point of `few`, the others a warp for
// four of `many`. In and out: see Reranking. Grid: as many blocks as that
// takes. Block: kThreads. Shared: none.
template <class Rule>
__global__ void __launch_bounds__(kThreads)
    rerank_pairs(const Reranking few, const unsigned few_blocks,
                 const Reranking many) {
  constexpr int warps = kThreads / kWarp, rows = kWarp / kLanes;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (blockIdx.x < few_blocks) {
    const std::int64_t own =
        few.first_owned + static_cast<std::int64_t>(blockIdx.x) * warps + warp;
    if (own < few.end_owned) rerank_rows<Rule, kWarp>(few, own);
  } else {
    const std::int64_t at =
        static_cast<std::int64_t>(blockIdx.x - few_blocks) * warps + warp;
    const std::int64_t own = many.first_owned + at * rows;
    if (own < many.end_owned) rerank_rows<Rule, kLanes>(many, own);
  }
}

// One block handles an owned point and moves each of its pairs to its rank: the
// number of pairs that precede it. Panel places are in the order of the user's
// numbers. In and out: see Ranking. Block: kRankThreads. Shared: most_pairs x
// 12 bytes, rounded up to a multiple of 16, dynamic. At 16 blocks of a
// multiprocessor it takes 32 registers and not 34.
template <bool unit>
__global__ void __launch_bounds__(kRankThreads, 16)
    rank_pairs(const Ranking r, const Sign sign) {
  extern __shared__ double distance[];
  std::int32_t* const point =
      reinterpret_cast<std::int32_t*>(distance + r.most_pairs);
  const std::int64_t own = r.first_owned + blockIdx.x, k = r.nearest.k;
  const std::int64_t out =
      (r.rows != nullptr ? r.rows[own] - r.first_row
                         : static_cast<std::int64_t>(blockIdx.x)) *
      k;
  const std::int64_t first = r.pairs.first[own];
  const int count = static_cast<int>(r.pairs.first[own + 1] - first);
  const int tid = static_cast<int>(threadIdx.x);
  for (std::int64_t at = count + tid; at < k; at += kRankThreads) {
    r.nearest.distance[out + at] = CUDART_INF;
    r.nearest.index[out + at] = kNoPoint;
  }
  for (int a = tid; a < count; a += kRankThreads) {
    distance[a] = found_distance<unit>(r.pairs.values[first + a], sign);
    point[a] = r.pairs.columns[first + a];
  }
  __syncthreads();
  for (int a = tid; a < count; a += kRankThreads) {
    int rank = 0;
    for (int b = 0; b < count; ++b)
      rank += nearer(distance[b], point[b], distance[a], point[a]);
    if (rank >= k) continue;
    r.nearest.distance[out + rank] = distance[a];
    r.nearest.index[out + rank] = r.ids != nullptr ? r.ids[point[a]] : point[a];
    if (r.correlation != nullptr)
      r.correlation[out + rank] = clamp_to_one(r.pairs.values[first + a]);
  }
}

// One warp handles a slot. Grid: x over slots. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    narrow_lists(const CandidateLists from, const CandidateLists to,
                 Slot first_slot, Slot end_slot) {
  const std::int64_t slot = first_slot.value + warp_number();
  if (slot >= end_slot.value || to.places[slot] < 0) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int32_t count = to.counts[slot];
  const Candidate* const longer = from.entries + slot * from.capacity;
  Candidate* const list = to.entries + slot * to.capacity;
  for (int at = lane; at < min(count, to.capacity); at += kWarp)
    list[at] = longer[at];
  if (lane == 0 && count > to.capacity) to.counts[slot] = to.capacity + 1;
}

}  // namespace

void start_waiting(const PairsFromLists& from, const WaitingPairs& to,
                   cudaStream_t stream) {
  if (from.num_owned == 0) return;
  list_waiting<<<blocks_of_warps(from.num_owned), kThreads, 0, stream>>>(from,
                                                                         to);
  CUDA_CHECK(cudaGetLastError());
}

void start_reranking(const MetricEntry& metric, const Reranking& reranking,
                     cudaStream_t stream) {
  start_reranking(metric, reranking, Reranking(), stream);
}

void start_reranking(const MetricEntry& metric, const Reranking& few,
                     const Reranking& many, cudaStream_t stream) {
  constexpr std::int64_t rows = kWarp / kLanes;
  const unsigned few_blocks = blocks_of_warps(
      std::max<std::int64_t>(0, few.end_owned - few.first_owned));
  const unsigned many_blocks =
      blocks_of_warps((many.end_owned - many.first_owned + rows - 1) / rows);
  if (few_blocks + many_blocks == 0) return;
  with_any_sign(metric, [&](auto rule) {
    rerank_pairs<decltype(rule)>
        <<<few_blocks + many_blocks, kThreads, 0, stream>>>(few, few_blocks,
                                                            many);
  });
  CUDA_CHECK(cudaGetLastError());
}

void start_ranking(const MetricEntry& metric, const Ranking& ranking,
                   cudaStream_t stream) {
  const std::int64_t count = ranking.end_owned - ranking.first_owned;
  if (count <= 0) return;
  // Rounded up to 16 bytes: ptxas reads two points at once, the last of which
  // may be beyond an odd number of pairs. memcheck stops the program for that.
  const std::size_t bytes =
      (static_cast<std::size_t>(ranking.most_pairs) * 12 + 15) / 16 * 16;
  with_unit(metric, [&](auto unit) {
    rank_pairs<unit()>
        <<<static_cast<unsigned>(count), kRankThreads, bytes, stream>>>(
            ranking, metric.sign);
  });
  CUDA_CHECK(cudaGetLastError());
}

void start_narrowing(const CandidateLists& from, const CandidateLists& to,
                     Slot first_slot, Slot end_slot, cudaStream_t stream) {
  narrow_lists<<<blocks_of_warps(end_slot.value - first_slot.value), kThreads,
                 0, stream>>>(from, to, first_slot, end_slot);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
