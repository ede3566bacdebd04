#include <math_constants.h>

#include <algorithm>

#include "core/contract/masked.hpp"
#include "core/contract/metrics.hpp"
#include "cuda/device/check.hpp"
#include "cuda/exact/merging.cuh"
#include "cuda/exact/warp_lists.cuh"
#include "cuda/missing/masked_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Handles rows of few candidates by one warp each.
struct FewBlock {
  static constexpr int threads = 256;
  static constexpr std::int32_t most = 128;  ///< candidates
};

/// Adds the parts of 8 adjacent threads, one a lane. This is the order of
/// join_sum(), since a sum of two has the same bits either way.
__device__ inline double joined_lanes(double part, unsigned group) {
  part = part + __shfl_xor_sync(group, part, 4, kLanes);
  part = part + __shfl_xor_sync(group, part, 2, kLanes);
  return part + __shfl_xor_sync(group, part, 1, kLanes);
}

// Reading this many ahead hides the latency of memory.
constexpr int kAhead = 8;

/// Calls take(p, q) for each of the lane's features, in order, for which both
/// rows have values. a, b: [padded], NaN for missing values.
template <class Take>
__device__ inline void for_common(const double* a, const double* b,
                                  std::int64_t padded, int lane, Take take) {
  for (std::int64_t f0 = lane; f0 < padded; f0 += kAhead * kLanes) {
    double p[kAhead], q[kAhead];
#pragma unroll
    for (int e = 0; e < kAhead; ++e) {
      const std::int64_t f = f0 + e * kLanes;
      p[e] = f < padded ? a[f] : CUDART_NAN;
      q[e] = f < padded ? b[f] : CUDART_NAN;
    }
#pragma unroll
    for (int e = 0; e < kAhead; ++e)
      if (has_value(p[e]) && has_value(q[e])) take(p[e], q[e]);
  }
}

/// Computes core's masked_correlation() by 8 threads, one a lane; the first has
/// the result. group: the mask of the 8 in their warp.
__device__ inline double lane_correlation(const double* a, const double* b,
                                          std::int64_t padded,
                                          const MaskedTerms& terms, int lane,
                                          unsigned group) {
  double n = 0.0, x = 0.0, y = 0.0;
  for_common(a, b, padded, lane, [&](double p, double q) {
    n = n + 1.0;
    x = x + p;
    y = y + q;
  });
  const CommonSums sums = {joined_lanes(n, group), joined_lanes(x, group),
                           joined_lanes(y, group)};
  if (sums.n < terms.min_pairs) return no_correlation();
  const double mean_x = masked_mean(sums.x, sums.n, terms.grid);
  const double mean_y = masked_mean(sums.y, sums.n, terms.grid);
  double tx = 0.0, ty = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
  for_common(a, b, padded, lane, [&](double p, double q) {
    const double dx = p - mean_x, dy = q - mean_y;
    tx = tx + dx;
    ty = ty + dy;
    xx = fma(dx, dx, xx);
    yy = fma(dy, dy, yy);
    xy = fma(dx, dy, xy);
  });
  const CommonMoments moments = {
      joined_lanes(tx, group), joined_lanes(ty, group), joined_lanes(xx, group),
      joined_lanes(yy, group), joined_lanes(xy, group)};
  if (lane != 0) return no_correlation();
  return masked_result(a, b, padded, sums, moments, terms);
}

/// Computes core's masked_difference() in the same way.
template <class A>
__device__ inline double lane_difference(const MaskedTerms& terms,
                                         const double* a, const double* b,
                                         std::int64_t padded, int lane,
                                         unsigned group) {
  double n = 0.0, s = 0.0;
  for_common(a, b, padded, lane, [&](double p, double q) {
    n = n + 1.0;
    s = A::step(p, q, s);
  });
  const double common = joined_lanes(n, group), sum = joined_lanes(s, group);
  if (common < terms.min_pairs || !(common > 0.0)) return no_correlation();
  return scaled_to_all(lane == 0 ? A::checked(sum, a, b, padded) : sum, common,
                       terms.num_features);
}

/// Computes core's masked_pair() in the same way.
__device__ inline double lane_pair(const MaskedWork& w, const double* a,
                                   const double* b, int lane, unsigned group) {
  if (w.terms.accumulation == Accumulation::squared_difference)
    return lane_difference<SquaredDifference>(w.terms, a, b, w.padded, lane,
                                              group);
  if (w.terms.accumulation == Accumulation::absolute_difference)
    return lane_difference<AbsoluteDifference>(w.terms, a, b, w.padded, lane,
                                               group);
  return lane_correlation(a, b, w.padded, w.terms, lane, group);
}

__device__ inline unsigned group_mask() {
  return 0xffu << (threadIdx.x % 32 / kLanes * kLanes);
}

/// Converts the result of lane_pair() to a distance.
__device__ inline double distance_of(const MaskedWork& w, double pair) {
  if (w.terms.accumulation == Accumulation::squared_difference)
    return scaled(Euclidean::finish(pair, 0.0, 0.0), w.undo);
  if (w.terms.accumulation == Accumulation::absolute_difference)
    return scaled(Manhattan::finish(pair, 0.0, 0.0), w.undo);
  return unit_distance(w.sign, pair);
}

/// Computes MaskedWork::thresholds from the farthest neighbour of a full list.
__device__ inline float threshold_of(const MaskedWork& w, double distance) {
  // As in cpu::masked_threshold(), the distance was rounded once.
  if (w.terms.accumulation == Accumulation::dot)
    return __double2float_rd((1.0 - distance) - 0x1p-50);
  // As in DistanceRule::before_scaling(); the errors cover underflow.
  const double above =
      distance < CUDART_INF
          ? __longlong_as_double(__double_as_longlong(distance) + 1)
          : CUDART_INF;
  const double before = (above * w.redo.first) * w.redo.second;
  const double far = (before * w.unit.first) * w.unit.second;
  const double d = w.terms.num_features;
  const double mean = w.terms.accumulation == Accumulation::squared_difference
                          ? far / sqrt(d)
                          : far / d;
  return __double2float_ru(mean * (1.0 + 1e-6));
}

// Handles the candidates of rows that have few, with 8 threads a pair and a
// warp a row. The rows' lists are no longer than a warp. The numbers of the
// other rows go to w.rest. For ten candidates a block would sort and merge for
// longer than it computes, with most of its threads idle.
// In and out: see MaskedWork. Grid: one warp a row. Block: FewBlock::threads.
// Shared: none.
__global__ void __launch_bounds__(FewBlock::threads)
    masked_exact_few(const MaskedWork w) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (FewBlock::threads / 32) +
      threadIdx.x / 32;
  if (row >= w.num_rows) return;
  const std::int32_t count = w.counts[row];
  if (count > FewBlock::most || count > w.capacity) {
    if (lane == 0)
      w.rest[1 + atomicAdd(w.rest, 1)] = static_cast<std::int32_t>(row);
    return;
  }
  if (count == 0) return;
  const int k = static_cast<int>(w.lists.k);
  double* const distances = w.lists.distance + row * k;
  std::int32_t* const indices = w.lists.index + row * k;
  LaneEntry list = LaneEntry::none();
  if (lane < k) list = {distances[lane], indices[lane]};
  const std::int32_t own = w.own_ids[w.row0 + row];
  const double* a = w.rows.rows + (w.row0 + row) * w.padded;
  const std::int32_t* candidates = w.candidates + row * w.capacity;
  const int part = lane % kLanes, quarter = lane / kLanes;
  const unsigned group = group_mask();
  for (std::int32_t at0 = 0; at0 < count; at0 += 32) {
    const LaneEntry farthest = list.from(k - 1);
    LaneEntry found = LaneEntry::none();
    for (int step = 0; step < 8 && at0 + 4 * step < count; ++step) {
      const std::int32_t at = at0 + 4 * step + quarter;
      LaneEntry entry = LaneEntry::none();
      if (at < count) {
        const std::int64_t column = candidates[at];
        const std::int32_t id = w.columns.ids[column];
        if (id != own) {
          const double pair =
              lane_pair(w, a, w.columns.rows + column * w.padded, part, group);
          if (part == 0 && has_value(pair)) entry = {distance_of(w, pair), id};
        }
      }
      __syncwarp();
      // Candidate 4 step + quarter goes to the lane with that number.
      const LaneEntry mine = entry.from(lane % 4 * kLanes);
      if (lane / 4 == step) found = mine;
    }
    if (__any_sync(kWholeWarp, found.before(farthest)))
      list = merged(list, sorted(found, lane), lane);
  }
  if (lane < k) {
    distances[lane] = list.distance;
    indices[lane] = list.index;
  }
  const LaneEntry farthest = list.from(k - 1);
  if (lane != 0) return;
  w.counts[row] = 0;
  if (farthest.index != kNoPoint)
    w.thresholds[row] = threshold_of(w, farthest.distance);
  atomicAdd(w.pairs_exact, static_cast<unsigned long long>(count));
}

/// Handles one row by a block: see masked_exact(). Starts and ends with a
/// barrier.
__device__ inline void exact_row(const MaskedWork& w, std::int64_t row) {
  using B = SelectBlock;
  constexpr int groups = B::threads / kLanes;
  constexpr int step = 8 * groups;  // pairs between two checks of the gathered
                                    // entries
  __shared__ double gathered_distance[B::capacity];
  __shared__ std::int32_t gathered_index[B::capacity];
  __shared__ int num_gathered;
  const Entries gathered = {gathered_distance, gathered_index};

  const int tid = static_cast<int>(threadIdx.x);
  const int lane = tid % kLanes;
  const unsigned group = group_mask();
  const std::int64_t k = w.lists.k;
  const Entries list = {w.lists.distance + row * k, w.lists.index + row * k};
  const std::int32_t own = w.own_ids[w.row0 + row];
  const double* a = w.rows.rows + (w.row0 + row) * w.padded;
  const std::int32_t asked = w.counts[row];
  const bool all = asked > w.capacity;
  const std::int64_t count = all ? w.num_columns : asked;
  const std::int32_t* candidates = w.candidates + row * w.capacity;
  Entry farthest = list.get(k - 1);
  if (tid == 0) num_gathered = 0;
  __syncthreads();

  for (std::int64_t at0 = 0; at0 < count; at0 += step) {
    for (int i = 0; i < step; i += groups) {
      const std::int64_t at = at0 + i + tid / kLanes;
      if (at >= count) break;
      const std::int64_t column = all ? w.column0 + at : candidates[at];
      const std::int32_t id = w.columns.ids[column];
      if (id == own) continue;
      const double pair =
          lane_pair(w, a, w.columns.rows + column * w.padded, lane, group);
      if (lane != 0 || !has_value(pair)) continue;
      const Entry entry = {distance_of(w, pair), id};
      if (comes_before(entry, farthest))
        gathered.set(atomicAdd(&num_gathered, 1), entry);
    }
    __syncthreads();
    const int found = num_gathered;
    const bool merge_now = found > B::capacity - step || at0 + step >= count;
    __syncthreads();
    if (!merge_now || found == 0) continue;
    if (tid == 0) num_gathered = 0;
    sort_gathered<B::threads>(gathered, found);
    merge(gathered, found, list, k);
    __syncthreads();
    farthest = list.get(k - 1);
  }
  if (tid != 0) return;
  w.counts[row] = 0;
  if (farthest.index != kNoPoint)
    w.thresholds[row] = threshold_of(w, farthest.distance);
  atomicAdd(w.pairs_exact, static_cast<unsigned long long>(count));
}

// Computes the candidates of a row exactly, with 8 threads a pair, and updates
// the row's list (in the same layout as select.cu).
// In and out: see MaskedWork. Grid: one block a row; any for the rows of w.rest
// alone. Block: SelectBlock::threads. Shared: 24 KiB, static.
template <bool kRest>
__global__ void __launch_bounds__(SelectBlock::threads)
    masked_exact(const MaskedWork w) {
  if constexpr (!kRest)
    exact_row(w, blockIdx.x);
  else
    for (std::int64_t i = blockIdx.x; i < w.rest[0]; i += gridDim.x)
      exact_row(w, w.rest[1 + i]);
}

// Computes the correlations of lists. Grid: any; block: 256, 8 threads an
// entry. lists: [num_rows x k], places: by id, correlations: [num_rows x k];
// all device. Shared: none.
__global__ void masked_correlations(const MaskedWork w,
                                    const std::int32_t* places,
                                    double* correlations) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const unsigned group = group_mask();
  const std::int64_t k = w.lists.k, size = w.num_rows * k;
  const std::int64_t step =
      static_cast<std::int64_t>(gridDim.x) * (blockDim.x / kLanes);
  for (std::int64_t e =
           static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / kLanes) +
           threadIdx.x / kLanes;
       e < size; e += step) {
    const std::int32_t id = w.lists.index[e];
    if (id == kNoPoint) continue;
    const double r = lane_correlation(
        w.rows.rows + (w.row0 + e / k) * w.padded,
        w.columns.rows + static_cast<std::int64_t>(places[id]) * w.padded,
        w.padded, w.terms, lane, group);
    if (lane == 0) correlations[e] = r;
  }
}

}  // namespace

void start_masked_exact(const MaskedWork& work, cudaStream_t stream) {
  const unsigned rows = static_cast<unsigned>(work.num_rows);
  if (work.lists.k > kLongestWarpList) {
    masked_exact<false><<<rows, SelectBlock::threads, 0, stream>>>(work);
    CUDA_CHECK(cudaGetLastError());
    return;
  }
  CUDA_CHECK(cudaMemsetAsync(work.rest, 0, sizeof(std::int32_t), stream));
  constexpr unsigned at_once = FewBlock::threads / 32;
  masked_exact_few<<<(rows + at_once - 1) / at_once, FewBlock::threads, 0,
                     stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
  // This many blocks fill a device; usually there is nothing to do.
  masked_exact<true>
      <<<std::min(rows, 1024u), SelectBlock::threads, 0, stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
}

void start_masked_correlations(const MaskedWork& work,
                               const std::int32_t* places, double* correlations,
                               cudaStream_t stream) {
  masked_correlations<<<4096, 256, 0, stream>>>(work, places, correlations);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
