// Converts points to halves or whole numbers, selects the others of an apex by
// a bound on pairs, and computes their X.
#include <cmath>

#include "core/search/triples.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/triples/triple_bound.hpp"
#include "cuda/triples/triple_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kPiece = 8;  // halves that are read together

// In: x [size], non-negative. Out: largest. Grid: any, x. Block: kThreads.
__global__ void __launch_bounds__(kThreads)
    find_largest(const double* x, std::int64_t size, double* largest) {
  double most = 0.0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < size; i += step)
    most = x[i] > most ? x[i] : most;
  for (int gap = kWarp / 2; gap > 0; gap /= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, most, gap);
    most = other > most ? other : most;
  }
  // Non-negative doubles order as their bits do.
  if (threadIdx.x % kWarp == 0)
    atomicMax(reinterpret_cast<unsigned long long*>(largest),
              static_cast<unsigned long long>(__double_as_longlong(most)));
}

/// Rounds a non-negative scaled value down.
struct Halves {
  using Number = __half;
  // Avoids -0, whose bits are those of a large whole number.
  __device__ static __half below(double y) {
    return __float2half_rz(y > 0.0 ? __double2float_rz(y) : 0.0f);
  }
};
struct Words {
  using Number = std::uint16_t;
  __device__ static std::uint16_t below(double y) {
    return static_cast<std::uint16_t>(__double2uint_rz(fmin(y, kLargestWord)));
  }
};

// One warp handles a row. In: the points' rows. Out: cut [count]. Grid: any, x.
// Block: kThreads.
__global__ void __launch_bounds__(kThreads)
    cut_words(const TriplePoints points, const PowerOfTwo scale, double* cut) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  for (std::int64_t place =
           static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
       place < points.count; place += step) {
    double sum = 0.0;
    for (std::int64_t f = lane; f < points.padded; f += kWarp) {
      const double x = points.rows[place * points.padded + f];
      sum += fmax(0.0, (x * scale.first) * scale.second - kLargestWord);
    }
    for (int gap = kWarp / 2; gap > 0; gap /= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, gap);
    if (lane == 0) cut[place] = sum;
  }
}

// In: the points' rows. Out: to [count x depth]. Grid: any, x. Block: kThreads.
template <class Form>
__global__ void __launch_bounds__(kThreads)
    make_numbers(const TriplePoints points, const PowerOfTwo scale,
                 typename Form::Number* to) {
  const std::int64_t size = points.count * points.depth;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < size; i += step) {
    const std::int64_t place = i / points.depth, f = i % points.depth;
    const double x =
        f < points.padded ? points.rows[place * points.padded + f] : 0.0;
    to[i] = Form::below((x * scale.first) * scale.second);
  }
}

/// Non-negative halves order as their bits do.
__device__ inline uint4 larger_numbers(const uint4& a, const uint4& b) {
  return {__vmaxu2(a.x, b.x), __vmaxu2(a.y, b.y), __vmaxu2(a.z, b.z),
          __vmaxu2(a.w, b.w)};
}

__device__ inline float sum_of(unsigned halves) {
  __half2 h;
  memcpy(&h, &halves, sizeof h);
  const float2 x = __half22float2(h);
  return x.x + x.y;
}

__device__ inline bool is_other(const TriplePoints& points, std::int64_t apex,
                                std::int64_t place) {
  if (place == apex) return false;
  return place > apex ||
         (points.contained != nullptr && points.contained[place] == 0);
}

/// Returns whether the point may be the lower of the other two in a triple of
/// the job.
__device__ inline bool is_lower(const TriplePoints& points,
                                const TripleJob& job, std::int64_t place) {
  if (place < job.begin || place >= job.end) return false;
  return points.contained == nullptr ||
         is_in_stage(place / kStageBlock, points.stage, points.stages);
}

/// Adds the larger ones of eight halves, or counts the bits of the union of 128
/// bits. Pairs are requested in these forms alone.
struct HalfSums {
  using Sum = float;
  static const void* of(const TriplePoints& points) { return points.numbers; }
  __device__ static float sum(const uint4& a, const uint4& b) {
    const uint4 x = larger_numbers(a, b);
    return (sum_of(x.x) + sum_of(x.y)) + (sum_of(x.z) + sum_of(x.w));
  }
};
struct CodeSums {
  using Sum = int;
  static const void* of(const TriplePoints& points) { return points.codes; }
  __device__ static int sum(const uint4& a, const uint4& b) {
    return (__popc(a.x | b.x) + __popc(a.y | b.y)) +
           (__popc(a.z | b.z) + __popc(a.w | b.w));
  }
};
/// Adds products of values from 0 to `bits`.
template <int bits>
struct ProductSums : CodeSums {
  __device__ static int common(unsigned a, unsigned b) { return __popc(a & b); }
  __device__ static int sum(const uint4& a, const uint4& b) {
    int sum = (common(a.x, b.x) + common(a.y, b.y)) +
              (common(a.z, b.z) + common(a.w, b.w));
    if (bits == 2)
      sum += (common(a.x, b.y) + common(a.y, b.x)) +
             (common(a.z, b.w) + common(a.w, b.z));
    return sum;
  }
};

// One warp handles a pair of an apex and a place. In: all, the points' rows.
// Out: sums [jobs x count], written only for others. Grid: x over places, y
// over jobs. Block: kThreads.
template <class Rows>
__global__ void __launch_bounds__(kThreads)
    sum_pairs(const uint4* all, const TriplePoints points,
              const TripleJob* jobs, float* sums) {
  const TripleJob& job = jobs[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t pieces = points.own_depth / kPiece;
  const uint4* const own = all + job.apex * pieces;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  std::int64_t place =
      static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  for (; place < points.count; place += step) {
    if (!is_other(points, job.apex, place)) continue;
    const uint4* const other = all + place * pieces;
    typename Rows::Sum sum = 0;
    for (std::int64_t p = lane; p < pieces; p += kWarp)
      sum += Rows::sum(__ldg(own + p), __ldg(other + p));
    for (int gap = kWarp / 2; gap > 0; gap /= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, gap);
    if (lane == 0)
      sums[static_cast<std::int64_t>(blockIdx.y) * points.count + place] =
          static_cast<float>(sum);
  }
}

/// Returns the largest entry in floats that the apex and the place allow.
__device__ inline double most_of_pair(const TriplePoints& points,
                                      std::int64_t apex, std::int64_t place,
                                      float pair_sum) {
  return most_of_row(
      points.table,
      triple_table_row(points.table, static_cast<double>(pair_sum),
                       points.sums[apex], points.sums[place]));
}

/// Applies the bound on one pair: see the vignette "proofs".
__device__ inline bool has_room(const TriplePoints& points,
                                const TripleJob& job, std::int64_t place,
                                float pair_sum, const TripleChoice& choice) {
  if (points.pair_sums != nullptr)
    return !(most_of_pair(points, job.apex, place, pair_sum) <
             static_cast<double>(job.limit));
  const double both = points.sums[job.apex] + points.sums[place];
  const double third =
      fmin(choice.largest_sum, fmax(job.third * both, kNearlyEmpty));
  const double most = job.share * (1.0 + 0x1p-40) * (both + third);
  if (most < 0x1p-1020) return true;
  return !(static_cast<double>(pair_sum) >
           ((most * choice.scale.first) * choice.scale.second) * choice.up);
}

/// Returns the pair sums of a job's apex, by place.
__device__ inline const float* pair_sums_of(const TriplePoints& points,
                                            const TripleJob& job,
                                            const float* of_jobs) {
  if (points.pair_sums != nullptr)
    return points.pair_sums +
           static_cast<std::int64_t>(job.apex) * points.count;
  return of_jobs + static_cast<std::int64_t>(blockIdx.x) * points.count;
}

/// Returns the number of preceding threads of the block that are `set`, and
/// their total in `count`.
__device__ inline int rank_of(bool set, int* of_warps, int& count) {
  const unsigned mask = __ballot_sync(0xffffffffu, set);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  __syncthreads();
  if (lane == 0) of_warps[warp] = __popc(mask);
  __syncthreads();
  int before = 0;
  count = 0;
  for (int w = 0; w < kWarps; ++w) {
    before += w < warp ? of_warps[w] : 0;
    count += of_warps[w];
  }
  return before + __popc(mask & ((1u << lane) - 1u));
}

// In: sums [jobs x count]. Out: lists and their sizes. Grid: x over jobs.
// Block: kThreads.
__global__ void __launch_bounds__(kThreads)
    list_others(const TriplePoints points, const TripleJob* jobs,
                const TripleChoice choice, const TripleLists to) {
  __shared__ int of_warps[kWarps];
  const TripleJob& job = jobs[blockIdx.x];
  const std::int64_t base =
      static_cast<std::int64_t>(blockIdx.x) * points.count;
  const float* const pair_sums = pair_sums_of(points, job, to.pair_sums);
  int columns = 0, rows = 0;
  const std::int64_t first =
      points.contained != nullptr ? 0 : job.apex / kThreads * kThreads;
  for (std::int64_t at = first; at < points.count; at += kThreads) {
    const std::int64_t place = at + threadIdx.x;
    const bool taken = place < points.count &&
                       is_other(points, job.apex, place) &&
                       (!choice.by_pairs ||
                        has_room(points, job, place, pair_sums[place], choice));
    int count = 0;
    const int column = columns + rank_of(taken, of_warps, count);
    columns += count;
    if (taken) to.others[base + column] = static_cast<std::int32_t>(place);
    const bool lower = taken && is_lower(points, job, place);
    const int row = rows + rank_of(lower, of_warps, count);
    rows += count;
    if (lower) to.lowers[base + row] = column;
  }
  if (threadIdx.x == 0) {
    to.sizes[2 * blockIdx.x] = columns;
    to.sizes[2 * blockIdx.x + 1] = rows;
  }
}

// Chooses one point a round. In: sums [jobs x count of points]. Out: alike
// [jobs x count]. Grid: x over jobs. Block: kThreads.
__global__ void __launch_bounds__(kThreads)
    choose_alike(const TriplePoints points, const TripleJob* jobs,
                 const float* sums, std::int64_t count, std::int32_t* alike) {
  using Key = unsigned long long;
  __shared__ Key of_warps[kWarps];
  constexpr Key none = ~Key{0};
  const std::int64_t apex = jobs[blockIdx.x].apex;
  const float* const own = pair_sums_of(points, jobs[blockIdx.x], sums);
  Key last = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Key least = none;
    for (std::int64_t p = threadIdx.x; p < points.count; p += kThreads) {
      if (p == apex) continue;
      // Non-negative floats order as their bits do.
      const float unlike =
          points.pair_sums != nullptr
              ? static_cast<float>(
                    1.0 / (most_of_pair(points, apex, p, own[p]) + 1e-30))
              : own[p] / (points.most[apex] + points.most[p]);
      const Key key = (static_cast<Key>(__float_as_uint(unlike)) << 32 |
                       static_cast<Key>(p)) +
                      1;
      if (key > last && key < least) least = key;
    }
    for (int gap = kWarp / 2; gap > 0; gap /= 2) {
      const Key other = __shfl_xor_sync(0xffffffffu, least, gap);
      least = other < least ? other : least;
    }
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = least;
    __syncthreads();
    for (int w = 0; w < kWarps; ++w)
      least = of_warps[w] < least ? of_warps[w] : least;
    __syncthreads();
    last = least;
    if (threadIdx.x == 0)
      alike[static_cast<std::int64_t>(blockIdx.x) * count + i] =
          static_cast<std::int32_t>((least - 1) & 0xffffffffu);
  }
}

// One warp handles a row of the pool. Grid: x over rows of a job, y over jobs.
// Block: kThreads.
__global__ void __launch_bounds__(kThreads)
    fill_pool(const TriplePoints points, const TripleJob* jobs,
              const std::int32_t* others, const TriplePool to) {
  const TripleJob& job = jobs[blockIdx.y];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= job.columns) return;
  const std::int64_t place =
      others[static_cast<std::int64_t>(job.list) * points.count + row];
  const std::int64_t pieces = points.depth / kPiece;
  const uint4* const all = static_cast<const uint4*>(points.numbers);
  const uint4* const own = all + job.apex * pieces;
  uint4* const x = reinterpret_cast<uint4*>(to.x) + (job.offset + row) * pieces;
  for (std::int64_t p = lane; p < pieces; p += kWarp)
    x[p] = larger_numbers(__ldg(own + p), __ldg(all + place * pieces + p));
  if (lane > 0) return;
  to.places[job.offset + row] = static_cast<std::int32_t>(place);
  to.most[job.offset + row] = points.most[place];
}

unsigned blocks_for(std::int64_t count, std::int64_t most) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

}  // namespace

void start_largest_value(const double* rows, std::int64_t size, double* largest,
                         cudaStream_t stream) {
  find_largest<<<blocks_for(size, 2048), kThreads, 0, stream>>>(rows, size,
                                                                largest);
  CUDA_CHECK(cudaGetLastError());
}

void start_cutting_words(const TriplePoints& points, PowerOfTwo scale,
                         double* cut, cudaStream_t stream) {
  cut_words<<<blocks_for(points.count * kWarp, 65536), kThreads, 0, stream>>>(
      points, scale, cut);
  CUDA_CHECK(cudaGetLastError());
}

void start_triple_numbers(const TriplePoints& points, PowerOfTwo scale,
                          __half* to, cudaStream_t stream) {
  const unsigned blocks = blocks_for(points.count * points.depth, 65536);
  if (points.form == TripleForm::words)
    make_numbers<Words><<<blocks, kThreads, 0, stream>>>(
        points, scale, reinterpret_cast<std::uint16_t*>(to));
  else
    make_numbers<Halves><<<blocks, kThreads, 0, stream>>>(points, scale, to);
  CUDA_CHECK(cudaGetLastError());
}

void start_triple_pair_sums(const TriplePoints& points, const TripleJob* jobs,
                            std::int64_t num_jobs, float* pair_sums,
                            cudaStream_t stream) {
  const dim3 grid(blocks_for(points.count * kWarp, 1024),
                  static_cast<unsigned>(num_jobs));
  const auto start = [&](auto rows) {
    using Rows = decltype(rows);
    sum_pairs<Rows><<<grid, kThreads, 0, stream>>>(
        static_cast<const uint4*>(Rows::of(points)), points, jobs, pair_sums);
  };
  if (points.table.copies == 2.0)
    start(ProductSums<2>());
  else if (points.table.copies == 1.0)
    start(ProductSums<1>());
  else if (points.bits > 0)
    start(CodeSums());
  else
    start(HalfSums());
  CUDA_CHECK(cudaGetLastError());
}

void start_triple_lists(const TriplePoints& points, const TripleJob* jobs,
                        std::int64_t num_jobs, const TripleChoice& choice,
                        const TripleLists& to, cudaStream_t stream) {
  list_others<<<static_cast<unsigned>(num_jobs), kThreads, 0, stream>>>(
      points, jobs, choice, to);
  CUDA_CHECK(cudaGetLastError());
}

void start_most_alike(const TriplePoints& points, const TripleJob* jobs,
                      std::int64_t num_jobs, const float* pair_sums,
                      std::int64_t count, std::int32_t* alike,
                      cudaStream_t stream) {
  choose_alike<<<static_cast<unsigned>(num_jobs), kThreads, 0, stream>>>(
      points, jobs, pair_sums, count, alike);
  CUDA_CHECK(cudaGetLastError());
}

void start_triple_pool(const TriplePoints& points, const TripleJob* jobs,
                       std::int64_t num_jobs, std::int64_t most_columns,
                       const TripleLists& lists, const TriplePool& to,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((most_columns + kWarps - 1) / kWarps),
                  static_cast<unsigned>(num_jobs));
  fill_pool<<<grid, kThreads, 0, stream>>>(points, jobs, lists.others, to);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
