// Computes average ranks of rows on the device. A row's ranks are counts, so
// that the method changes no bit: short rows compare all values with each
// other, long ones are sorted.

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/prepare/row_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kCountThreads = 128;
constexpr std::int64_t kMostCounted = SortShape::most_counted;
constexpr int kPerThread = static_cast<int>(kMostCounted) / kCountThreads;
constexpr int kSortThreads = 1024;
constexpr std::int64_t kSortTile = 2 * kSortThreads;
static_assert(kSortTile == SortShape::tile, "a tile is sorted at once");

// One block handles a row. In and out: at.rows. Grid: x over rows. Block:
// kCountThreads. Shared: 8 KiB.
__global__ void __launch_bounds__(kCountThreads)
    count_ranks(const PanelRows at) {
  __shared__ double row[kMostCounted];
  const std::int64_t target = at.target(blockIdx.x);
  if (target < 0) return;
  double* const x = at.rows + target * at.padded;
  const int d = static_cast<int>(at.num_features);
  for (int f = static_cast<int>(threadIdx.x); f < d; f += kCountThreads)
    row[f] = x[f];
  __syncthreads();
  double mine[kPerThread];
  int below[kPerThread], equal[kPerThread];
#pragma unroll
  for (int q = 0; q < kPerThread; ++q) {
    const int f = q * kCountThreads + static_cast<int>(threadIdx.x);
    mine[q] = f < d ? row[f] : 0.0;
    below[q] = equal[q] = 0;
  }
  const int num_mine = (d + kCountThreads - 1) / kCountThreads;
  for (int j = 0; j < d; ++j) {
    const double other = row[j];
#pragma unroll
    for (int q = 0; q < kPerThread; ++q) {
      if (q >= num_mine) break;
      below[q] += other < mine[q];
      equal[q] += other == mine[q];
    }
  }
#pragma unroll
  for (int q = 0; q < kPerThread; ++q) {
    const int f = q * kCountThreads + static_cast<int>(threadIdx.x);
    // Equal values share ranks below + 1 .. below + equal; their average is a
    // multiple of one half.
    if (f < d) x[f] = 0.5 * static_cast<double>(2 * below[q] + equal[q] + 1);
  }
}

/// Rows row0 .. of a panel during sorting.
struct Sorting {
  PanelRows at;
  std::int64_t row0 = 0;
  double* values = nullptr;        ///< [.. x width]
  std::int32_t* origin = nullptr;  ///< the same
  std::int64_t width = 0;          ///< a power of two
};

// Grid: x over tiles of a row, y over rows. Block: any. Shared: none.
__global__ void load_values(const Sorting s) {
  const std::int64_t f =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t r = blockIdx.y, target = s.at.target(s.row0 + r);
  if (f >= s.width) return;
  const bool there = target >= 0 && f < s.at.num_features;
  s.values[r * s.width + f] =
      there ? s.at.rows[target * s.at.padded + f] : CUDART_INF;
  s.origin[r * s.width + f] = static_cast<std::int32_t>(f);
}

/// Does one exchange of the bitonic network: entries i and j = i + gap of a run
/// of `run` entries, in ascending or descending order.
__device__ inline void exchange(double* values, std::int32_t* origin,
                                std::int64_t i, std::int64_t j, bool up) {
  const double a = values[i], b = values[j];
  if ((a > b) != up || a == b) return;
  values[i] = b;
  values[j] = a;
  const std::int32_t o = origin[i];
  origin[i] = origin[j];
  origin[j] = o;
}

/// Returns the lower entry of a pair of entries that are `gap` apart.
__device__ inline std::int64_t lower_of(std::int64_t pair, std::int64_t gap) {
  return pair / gap * (2 * gap) + pair % gap;
}

// Does a stage of the network with a wide gap. Grid: x over pairs of a row, y
// over rows. Block: any. Shared: none.
__global__ void sort_step(const Sorting s, std::int64_t run, std::int64_t gap) {
  const std::int64_t pair =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pair >= s.width / 2) return;
  const std::int64_t i = lower_of(pair, gap), row = blockIdx.y * s.width;
  exchange(s.values + row, s.origin + row, i, i + gap, (i & run) == 0);
}

// Does all stages from run first_run to last_run whose gap fits a tile. Grid: x
// over tiles of a row, y over rows. Block: kSortThreads. Shared: 24 KiB.
__global__ void __launch_bounds__(kSortThreads)
    sort_tile(const Sorting s, std::int64_t first_run, std::int64_t last_run) {
  __shared__ double values[kSortTile];
  __shared__ std::int32_t origin[kSortTile];
  const std::int64_t tile0 = static_cast<std::int64_t>(blockIdx.x) * kSortTile;
  const std::int64_t from = blockIdx.y * s.width + tile0;
  const int t = static_cast<int>(threadIdx.x);
  for (int i = t; i < kSortTile; i += kSortThreads) {
    values[i] = s.values[from + i];
    origin[i] = s.origin[from + i];
  }
  for (std::int64_t run = first_run; run <= last_run; run *= 2)
    for (std::int64_t gap = run / 2 < kSortThreads ? run / 2 : kSortThreads;
         gap > 0; gap /= 2) {
      __syncthreads();
      const std::int64_t i = lower_of(t, gap);
      exchange(values, origin, i, i + gap, ((tile0 + i) & run) == 0);
    }
  __syncthreads();
  for (int i = t; i < kSortTile; i += kSortThreads) {
    s.values[from + i] = values[i];
    s.origin[from + i] = origin[i];
  }
}

// Converts sorted values to ranks. Grid and block: as load_values.
__global__ void rank_sorted(const Sorting s) {
  const std::int64_t p =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t r = blockIdx.y, target = s.at.target(s.row0 + r);
  if (target < 0 || p >= s.at.num_features) return;
  const double* sorted = s.values + r * s.width;
  const double value = sorted[p];
  std::int64_t low = 0, high = p;  // the first equal value
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (sorted[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  const std::int64_t first = low;
  low = p, high = s.at.num_features - 1;  // the last one
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (sorted[middle] > value)
      high = middle - 1;
    else
      low = middle;
  }
  s.at.rows[target * s.at.padded + s.origin[r * s.width + p]] =
      0.5 * static_cast<double>(first + low + 2);
}

}  // namespace

Ranker::Ranker(std::int64_t most_rows, std::int64_t num_features)
    : shape_(most_rows, num_features),
      values_(shape_.rows * shape_.width),
      origin_(shape_.rows * shape_.width) {}

void Ranker::start(const PanelRows& at, cudaStream_t stream) {
  if (shape_.width == 0) {
    count_ranks<<<static_cast<unsigned>(at.count), kCountThreads, 0, stream>>>(
        at);
    CUDA_CHECK(cudaGetLastError());
    return;
  }
  Sorting s;
  s.at = at;
  s.values = values_.data();
  s.origin = origin_.data();
  s.width = shape_.width;
  const unsigned tiles = static_cast<unsigned>(shape_.width / kSortTile);
  for (s.row0 = 0; s.row0 < at.count; s.row0 += shape_.rows) {
    const unsigned rows =
        static_cast<unsigned>(std::min(shape_.rows, at.count - s.row0));
    load_values<<<dim3(2 * tiles, rows), kSortThreads, 0, stream>>>(s);
    sort_tile<<<dim3(tiles, rows), kSortThreads, 0, stream>>>(s, 2, kSortTile);
    for (std::int64_t run = 2 * kSortTile; run <= shape_.width; run *= 2) {
      for (std::int64_t gap = run / 2; gap > kSortThreads; gap /= 2)
        sort_step<<<dim3(tiles, rows), kSortThreads, 0, stream>>>(s, run, gap);
      sort_tile<<<dim3(tiles, rows), kSortThreads, 0, stream>>>(s, run, run);
    }
    rank_sorted<<<dim3(2 * tiles, rows), kSortThreads, 0, stream>>>(s);
    CUDA_CHECK(cudaGetLastError());
  }
}

}  // namespace cuda
}  // namespace fsknn
