// Computes triples in the contract's doubles (core/contract/triple_sums.hpp),
// bit for bit.
#include "core/contract/arithmetic.hpp"
#include "core/contract/triple_sums.hpp"
#include "cuda/device/check.hpp"
#include "cuda/exact/pair_sum.cuh"
#include "cuda/triples/triple_counts.cuh"
#include "cuda/triples/triple_table.cuh"

namespace fsknn {
namespace cuda {
namespace {

using Block = ExactBlock<256>;

/// Computes sum_of_largest() by 4 adjacent threads with two lanes each; all of
/// a warp must call it.
__device__ inline double sum_of_three(const double* a, const double* b,
                                      const double* c, std::int64_t padded,
                                      int part) {
  const auto larger = [](double x, double y) { return x > y ? x : y; };
  double first = 0.0, second = 0.0;
#pragma unroll 4
  for (std::int64_t f = 2 * part; f < padded; f += kLanes) {
    const double2 x = __ldg(reinterpret_cast<const double2*>(a + f));
    const double2 y = __ldg(reinterpret_cast<const double2*>(b + f));
    const double2 z = __ldg(reinterpret_cast<const double2*>(c + f));
    first += larger(larger(x.x, y.x), z.x);
    second += larger(larger(x.y, y.y), z.y);
  }
  double v[kLanes];
#pragma unroll
  for (int l = 0; l < kLanes; l += 2) {
    v[l] = __shfl_sync(0xffffffffu, first, l / 2, kLanes / 2);
    v[l + 1] = __shfl_sync(0xffffffffu, second, l / 2, kLanes / 2);
  }
  return join_sum(v);
}

/// Calls each(candidate, similarity, flag) for all candidates, by all threads
/// of a warp. The flag tells whether it is a candidate and this thread the
/// first of its four.
template <class Each>
__device__ inline void for_reranked(const TripleTileWork& work,
                                    const Each& each) {
  const unsigned long long found = *work.num_candidates;
  // The host repeats this with fewer tiles at a time.
  if (found > static_cast<unsigned long long>(work.capacity)) return;
  const std::int64_t count = static_cast<std::int64_t>(found);
  const TriplePoints& p = work.points;
  const int part = static_cast<int>(threadIdx.x) % Block::pair_threads;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Block::pairs;
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * Block::pairs +
                       threadIdx.x / 32 * (32 / Block::pair_threads);
  for (; first < count; first += step) {
    const std::int64_t at = first + threadIdx.x % 32 / Block::pair_threads;
    const bool there = at < count;
    const TripleCandidate candidate = work.candidates[there ? at : first];
    const std::int32_t apex = work.jobs[candidate.job].apex;
    if (p.pair_sums != nullptr) {
      each(candidate,
           similarity_of_table(p, candidate.sum, apex, candidate.lower,
                               candidate.higher),
           there && part == 0);
      continue;
    }
    // For whole numbers the contract's sum is available already.
    const double sum = p.bits > 0
                           ? static_cast<double>(candidate.sum)
                           : sum_of_three(p.rows + apex * p.padded,
                                          p.rows + candidate.lower * p.padded,
                                          p.rows + candidate.higher * p.padded,
                                          p.padded, part);
    const double similarity = similarity_of_three(
        sum, total_of_three(p.sums[apex], p.sums[candidate.lower],
                            p.sums[candidate.higher]));
    each(candidate, similarity, there && part == 0);
  }
}

// In: candidates. Out: hits, whose number is num_hits. Grid: any, x. Block:
// Block::threads.
__global__ void __launch_bounds__(Block::threads)
    rerank_triples(const TripleTileWork work, TripleHit* hits,
                   unsigned long long* num_hits) {
  for_reranked(work, [&](const TripleCandidate& candidate, double similarity,
                         bool counts) {
    const bool is_hit = counts && similarity >= work.jobs[candidate.job].least;
    const unsigned mask = __ballot_sync(0xffffffffu, is_hit);
    if (mask == 0) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned long long at = 0;
    if (lane == 0)
      at = atomicAdd(num_hits, static_cast<unsigned long long>(__popc(mask)));
    at = __shfl_sync(0xffffffffu, at, 0) +
         static_cast<unsigned>(__popc(mask & ((1u << lane) - 1u)));
    if (!is_hit) return;
    const TripleJob& job = work.jobs[candidate.job];
    hits[at] = {job.apex, candidate.lower, candidate.higher, job.number,
                similarity};
  });
}

constexpr int kExactCountBytes = 32768;

// In: candidates. Out: counts of bins. Grid: any, x. Block: Block::threads.
__global__ void __launch_bounds__(Block::threads)
    count_reranked(const TripleTileWork work, const TripleBins bins) {
  __shared__ double shared[kExactCountBytes / sizeof(double)];
  BlockCounts counts(bins, shared, kExactCountBytes);
  for_reranked(work,
               [&](const TripleCandidate&, double similarity, bool is_one) {
                 if (is_one) counts.add(counts.bin_of(similarity), 1);
               });
  counts.finish();
}

// Enough blocks to fill a device, at little cost for few candidates.
constexpr unsigned kBlocks = 1056;

}  // namespace

void start_reranking_triples(const TripleTileWork& work, TripleHit* hits,
                             unsigned long long* num_hits,
                             cudaStream_t stream) {
  rerank_triples<<<kBlocks, Block::threads, 0, stream>>>(work, hits, num_hits);
  CUDA_CHECK(cudaGetLastError());
}

void start_counting_reranked(const TripleTileWork& work, const TripleBins& bins,
                             cudaStream_t stream) {
  count_reranked<<<kBlocks, Block::threads, 0, stream>>>(work, bins);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
