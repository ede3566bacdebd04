#include "cuda/prepare/row_kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "core/rows/source.hpp"
#include "cuda/device/check.hpp"
#include "cuda/prepare/row_forms.cuh"

namespace fsknn {
namespace cuda {
namespace {

struct TurnTile {
  static constexpr int side = 32, height = 8;
};

constexpr int kRowsPerBlock = 32;
constexpr std::int64_t kMostGridY = 65535;

// Transposes a panel from R's layout to rows, by tiles. Grid: x over tiles of
// rows, y over tiles of features, in a loop. Block: side x height. Shared: 8
// KiB.
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
                       ? MatrixSource<T>::as_double(panel[f * to.count + row])
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
__global__ void copy_rows(const RowsAsRead from, const PanelRows to) {
  const std::int64_t r = blockIdx.x, target = to.target(r);
  if (target < 0) return;
  const double* const row =
      from.rows + (from.ids == nullptr ? r : from.ids[r]) * from.stride;
  for (std::int64_t f = threadIdx.x; f < to.padded; f += blockDim.x) {
    double value = 0.0;
    if (f < to.num_features)
      value = row[from.features == nullptr ? f : from.features[f]];
    to.rows[target * to.padded + f] = value;
  }
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
    double value = 0.0;  // 0 / 0 in the padding is not zero
    if (f < to.num_features)
      value = b == nullptr ? a[f] : combine(made.op, a[f], b[f]);
    to.rows[target * to.padded + f] = value;
  }
}

// 8 threads, one a lane, handle a row. In and out: at.rows; out: at.sums. Grid:
// x over rows. Block: kRowsPerBlock * 8. Shared: none.
template <RowForm form, bool weighted, bool adjusted>
__global__ void __launch_bounds__(kRowsPerBlock* kLanes)
    prepare_rows(const PanelRows at, const RowRecipe recipe,
                 std::int32_t* beyond) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t target =
      at.target(static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock +
                threadIdx.x / kLanes);
  // Threads without a row run over no features, because the reduction needs the
  // whole warp.
  const std::int64_t end = target < 0 ? 0 : at.padded;
  double* const x = at.rows + (target < 0 ? 0 : target * at.padded);
  double sum = 0.0;
  if (form == RowForm::raw)
    sum = raw(x, end, lane, recipe.scale);
  else if (form == RowForm::unit)
    unit(x, end, lane);
  else if (form == RowForm::biweight_unit)
    biweight_unit(x, at.num_features, end, lane);
  else if (form == RowForm::ranked)
    sum = whole_ranks(x, at.num_features, end, lane);
  else if (form == RowForm::ready)
    sum = recipe.whole_ranks ? squares_of(x, end, lane) : 0.0;
  else
    centred_unit<weighted, adjusted>(x, at.num_features, end, lane,
                                     recipe.weights, recipe.covariates);
  if (target < 0 || lane > 0) return;
  if (at.sums != nullptr) at.sums[target] = sum;
  if (recipe.needs_sums && sum == 0.0) *beyond = 1;
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

void start_copy(const RowsAsRead& from, const PanelRows& to,
                cudaStream_t stream) {
  copy_rows<<<blocks_for(to.count, 1), kMakeThreads, 0, stream>>>(from, to);
  CUDA_CHECK(cudaGetLastError());
}

void start_make(const SmallMatrix& small, const std::int32_t* ids,
                std::int64_t first, const PanelRows& to, cudaStream_t stream) {
  make_metafeatures<<<blocks_for(to.count, 1), kMakeThreads, 0, stream>>>(
      small, ids, first, to);
  CUDA_CHECK(cudaGetLastError());
}

void start_prepare(const RowRecipe& recipe, const PanelRows& at,
                   std::int32_t* beyond, cudaStream_t stream) {
  const unsigned grid = blocks_for(at.count, kRowsPerBlock);
  constexpr int threads = kRowsPerBlock * kLanes;
  const auto start = [&](auto kernel) {
    kernel<<<grid, threads, 0, stream>>>(at, recipe, beyond);
  };
  const auto start_centred = [&](auto weighted) {
    constexpr bool w = decltype(weighted)::value;
    if (recipe.covariates.given())
      start(prepare_rows<RowForm::centred_unit, w, true>);
    else
      start(prepare_rows<RowForm::centred_unit, w, false>);
  };
  switch (recipe.form) {
    case RowForm::raw: start(prepare_rows<RowForm::raw, false, false>); break;
    case RowForm::unit: start(prepare_rows<RowForm::unit, false, false>); break;
    case RowForm::biweight_unit:
      start(prepare_rows<RowForm::biweight_unit, false, false>);
      break;
    case RowForm::ready:
      start(prepare_rows<RowForm::ready, false, false>);
      break;
    case RowForm::centred_unit:
    case RowForm::ranked:
      if (recipe.whole_ranks)
        start(prepare_rows<RowForm::ranked, false, false>);
      else if (recipe.weights.given())
        start_centred(std::true_type());
      else
        start_centred(std::false_type());
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
