#include "cuda/prepare_rows.cuh"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "cuda/check.cuh"
#include "cuda/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

struct TurnTile {
  static constexpr int side = 32, height = 8;
};

constexpr int kRowsPerBlock = 32;
constexpr int kMakeThreads = 128;
constexpr std::int64_t kMostGridY = 65535;

// A panel as R holds a matrix to rows, by tiles. Grid: x over tiles of rows, y
// over tiles of features, again and again. Block: side x height. Shared: 8 KiB.
template <class T>
__global__ void __launch_bounds__(TurnTile::side* TurnTile::height)
    turn_columns(const T* panel, const PanelRows to) {
  using Tile = TurnTile;
  __shared__ double tile[Tile::side][Tile::side + 1];
  __shared__ std::int64_t target[Tile::side];
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x) * Tile::side;
  const int x = static_cast<int>(threadIdx.x);
  const int y0 = static_cast<int>(threadIdx.y);
  if (y0 == 0) target[x] = to.target(row0 + x);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * Tile::side;
  for (std::int64_t f0 = static_cast<std::int64_t>(blockIdx.y) * Tile::side;
       f0 < to.padded; f0 += step) {
    __syncthreads();
    for (int y = y0; y < Tile::side; y += Tile::height) {
      const std::int64_t f = f0 + y, row = row0 + x;
      tile[y][x] = f < to.num_features && row < to.count
                       ? static_cast<double>(panel[f * to.count + row])
                       : 0.0;
    }
    __syncthreads();
    for (int y = y0; y < Tile::side; y += Tile::height) {
      const std::int64_t f = f0 + x;
      if (target[y] >= 0 && f < to.padded)
        to.rows[target[y] * to.padded + f] = tile[x][y];
    }
  }
}

// Grid: x over rows. Block: any. Shared: none.
__global__ void copy_rows(const double* panel, const PanelRows to) {
  const std::int64_t r = blockIdx.x, target = to.target(r);
  if (target < 0) return;
  for (std::int64_t f = threadIdx.x; f < to.padded; f += blockDim.x)
    to.rows[target * to.padded + f] =
        f < to.num_features ? panel[r * to.num_features + f] : 0.0;
}

// Grid: x over rows. Block: any. Shared: none.
__global__ void make_metafeatures(const SmallMatrix small,
                                  const std::int32_t* ids, std::int64_t first,
                                  const PanelRows to) {
  const std::int64_t r = blockIdx.x, target = to.target(r);
  if (target < 0) return;
  const std::int64_t point = ids == nullptr ? first + r : ids[r];
  const MadeOf made =
      small.order.at(small.kept == nullptr ? point : small.kept[point]);
  const double* a = small.rows + made.first * small.stride;
  const double* b =
      made.second < 0 ? nullptr : small.rows + made.second * small.stride;
  for (std::int64_t f = threadIdx.x; f < to.padded; f += blockDim.x) {
    double value = 0.0;  // 0 / 0 of the padding is no zero
    if (f < to.num_features)
      value = b == nullptr ? a[f] : combine(made.op, a[f], b[f]);
    to.rows[target * to.padded + f] = value;
  }
}

/// The row's largest |x|, for each of the 8 threads, one a lane.
__device__ inline double joined_largest(double part) {
  double v[kLanes];
#pragma unroll
  for (int l = 0; l < kLanes; ++l)
    v[l] = __shfl_sync(0xffffffffu, part, l, kLanes);
  return join_largest(v);
}

/// largest_magnitude() of core/prepare.hpp.
__device__ inline double largest_of(const double* x, std::int64_t end,
                                    int lane) {
  double m = 0.0;
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double a = fabs(x[f]);
    m = a > m ? a : m;
  }
  return joined_largest(m);
}

/// prepare_centred_unit(). What one centring leaves is made again in each pass
/// rather than written: the same operations, so the same bits.
__device__ inline void centred_unit(double* x, std::int64_t d,
                                    std::int64_t end, int lane) {
  const PowerOfTwo scale = power_of_two(-exponent_of(largest_of(x, end, lane)));
  double s = 0.0;
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes)
    s = fma(x[f] * scale.first, scale.second, s);
  const double minus_first = -(joined<Dot>(s) / static_cast<double>(d));
  const auto once = [&](std::int64_t f) {
    return f < d ? fma(x[f] * scale.first, scale.second, minus_first) : 0.0;
  };
  s = 0.0;
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes) s = fma(once(f), 1.0, s);
  const double minus_second = -(joined<Dot>(s) / static_cast<double>(d));
  const auto twice = [&](std::int64_t f) {
    return f < d ? fma(once(f), 1.0, minus_second) : 0.0;
  };
  s = 0.0;
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double c = twice(f);
    s = fma(c, c, s);
  }
  const double length = sqrt(joined<Dot>(s));
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes) x[f] = twice(f) / length;
}

/// prepare_unit().
__device__ inline void unit(double* x, std::int64_t end, int lane) {
  const PowerOfTwo scale = power_of_two(-exponent_of(largest_of(x, end, lane)));
  double s = 0.0;
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double c = (x[f] * scale.first) * scale.second;
    s = fma(c, c, s);
  }
  const double length = sqrt(joined<Dot>(s));
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes)
    x[f] = ((x[f] * scale.first) * scale.second) / length;
}

/// prepare_raw().
__device__ inline double raw(double* x, std::int64_t end, int lane,
                             PowerOfTwo scale) {
  double s = 0.0;
#pragma unroll 4
  for (std::int64_t f = lane; f < end; f += kLanes) {
    const double half = x[f] * scale.first;
    s = fma(half, scale.second, s);
    x[f] = half * scale.second;
  }
  return joined<Dot>(s);
}

// 8 threads, one a lane, a row. In and out: at.rows; out: at.sums. Grid: x over
// rows. Block: kRowsPerBlock * 8. Shared: none.
template <RowForm form>
__global__ void __launch_bounds__(kRowsPerBlock* kLanes)
    prepare_rows(const PanelRows at, PowerOfTwo scale, bool needs_sums,
                 std::int32_t* beyond) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t target =
      at.target(static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock +
                threadIdx.x / kLanes);
  // Threads with no row go along, over no features: a warp joins together.
  const std::int64_t end = target < 0 ? 0 : at.padded;
  double* const x = at.rows + (target < 0 ? 0 : target * at.padded);
  double sum = 0.0;
  if (form == RowForm::raw)
    sum = raw(x, end, lane, scale);
  else if (form == RowForm::unit)
    unit(x, end, lane);
  else if (form != RowForm::ready)
    centred_unit(x, at.num_features, end, lane);
  if (target < 0 || lane > 0) return;
  if (at.sums != nullptr) at.sums[target] = sum;
  if (needs_sums && !(sum > 0.0)) *beyond = 1;
}

unsigned blocks_for(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

}  // namespace

template <class T>
void start_turn(const T* panel, const PanelRows& to, cudaStream_t stream) {
  using Tile = TurnTile;
  const std::int64_t tiles = (to.padded + Tile::side - 1) / Tile::side;
  const dim3 grid(blocks_for(to.count, Tile::side),
                  static_cast<unsigned>(std::min(tiles, kMostGridY)));
  turn_columns<<<grid, dim3(Tile::side, Tile::height), 0, stream>>>(panel, to);
  CUDA_CHECK(cudaGetLastError());
}

template void start_turn(const double*, const PanelRows&, cudaStream_t);
template void start_turn(const int*, const PanelRows&, cudaStream_t);

void start_copy(const double* panel, const PanelRows& to, cudaStream_t stream) {
  copy_rows<<<blocks_for(to.count, 1), kMakeThreads, 0, stream>>>(panel, to);
  CUDA_CHECK(cudaGetLastError());
}

void start_make(const SmallMatrix& small, const std::int32_t* ids,
                std::int64_t first, const PanelRows& to, cudaStream_t stream) {
  make_metafeatures<<<blocks_for(to.count, 1), kMakeThreads, 0, stream>>>(
      small, ids, first, to);
  CUDA_CHECK(cudaGetLastError());
}

void start_prepare(RowForm form, PowerOfTwo scale, const PanelRows& at,
                   bool needs_sums, std::int32_t* beyond, cudaStream_t stream) {
  const unsigned grid = blocks_for(at.count, kRowsPerBlock);
  constexpr int threads = kRowsPerBlock * kLanes;
  switch (form) {
    case RowForm::raw:
      prepare_rows<RowForm::raw>
          <<<grid, threads, 0, stream>>>(at, scale, needs_sums, beyond);
      break;
    case RowForm::unit:
      prepare_rows<RowForm::unit>
          <<<grid, threads, 0, stream>>>(at, scale, needs_sums, beyond);
      break;
    case RowForm::ready:
      prepare_rows<RowForm::ready>
          <<<grid, threads, 0, stream>>>(at, scale, needs_sums, beyond);
      break;
    default:
      prepare_rows<RowForm::centred_unit>
          <<<grid, threads, 0, stream>>>(at, scale, needs_sums, beyond);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
