#include "cuda/exact/emit.hpp"

#include "cuda/device/check.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

struct TurnTile {
  static constexpr int side = 32, height = 8;
};

constexpr int kPairsPerBlock = 32;

// Transposes lists by tiles. In and out: see Slice. Grid: x over tiles of rows,
// y over tiles of ranks. Block: side x height. Shared: 13 KiB, static.
__global__ void __launch_bounds__(TurnTile::side* TurnTile::height)
    turn_lists(const Slice s) {
  using T = TurnTile;
  __shared__ double distance[T::side][T::side + 1];
  __shared__ std::int32_t index[T::side][T::side + 1];
  const std::int64_t tile_row = static_cast<std::int64_t>(blockIdx.x) * T::side;
  const std::int64_t tile_rank =
      static_cast<std::int64_t>(blockIdx.y) * T::side;
  const int x = static_cast<int>(threadIdx.x);
  for (int y = static_cast<int>(threadIdx.y); y < T::side; y += T::height) {
    const std::int64_t row = tile_row + y, rank = tile_rank + x;
    if (row >= s.num_rows || rank >= s.num_ranks) continue;
    const std::int64_t at = (s.row0 + row) * s.lists.k + s.rank0.value + rank;
    distance[y][x] = s.lists.distance[at];
    index[y][x] = s.lists.index[at];
  }
  __syncthreads();
  for (int y = static_cast<int>(threadIdx.y); y < T::side; y += T::height) {
    const std::int64_t row = tile_row + x, rank = tile_rank + y;
    if (row >= s.num_rows || rank >= s.num_ranks) continue;
    const std::int64_t at = rank * s.num_rows + row;
    s.distance[at] = distance[x][y];
    s.index[at] = index[x][y];
  }
}

// Computes the contract's r of each neighbour: 8 threads, one a lane, compute a
// pair. In: the slice's indices; see CorrelationOf. Out: correlations. Grid: x
// over pairs. Block: kPairsPerBlock * 8. Shared: none.
__global__ void __launch_bounds__(kPairsPerBlock* kLanes)
    correlate_neighbours(const Slice s, const CorrelationOf from) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t pair =
      static_cast<std::int64_t>(blockIdx.x) * kPairsPerBlock +
      threadIdx.x / kLanes;
  // Threads past the end, and at empty places, run over no features, because
  // the reduction needs the whole warp.
  std::int32_t point = kNoPoint;
  std::int64_t row = 0;
  if (pair < s.size) {
    point = s.transposed ? s.index[pair] : s.lists.index[s.first_entry + pair];
    row = s.transposed ? s.row0 + pair % s.num_rows
                       : (s.first_entry + pair) / s.lists.k;
  }
  double part = 0.0, row_sum = 0.0, column_sum = 0.0;
  if (point != kNoPoint) {
    const std::int64_t column =
        from.places == nullptr ? point : from.places[point];
    if (from.row_places != nullptr) row = from.row_places[row];
    part =
        lane_sum<Dot>(from.rows + row * from.padded,
                      from.columns + column * from.padded, from.padded, lane);
    row_sum = from.row_sums[row];
    column_sum = from.column_sums[column];
  }
  const double r =
      clamp_to_one(unit_similarity(joined<Dot>(part), row_sum, column_sum));
  if (lane == 0 && pair < s.size) s.correlation[pair] = r;
}

// Grid: x over entries of the slice. Block: any. Shared: none.
__global__ void turn_given(const Slice s, const double* given) {
  const std::int64_t at =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= s.size) return;
  s.correlation[at] =
      given[s.transposed ? (s.row0 + at % s.num_rows) * s.lists.k +
                               s.rank0.value + at / s.num_rows
                         : s.first_entry + at];
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

void start_slice(const Slice& slice, cudaStream_t stream) {
  using T = TurnTile;
  const dim3 grid(static_cast<unsigned>(ceil_div(slice.num_rows, T::side)),
                  static_cast<unsigned>(ceil_div(slice.num_ranks, T::side)));
  turn_lists<<<grid, dim3(T::side, T::height), 0, stream>>>(slice);
  CUDA_CHECK(cudaGetLastError());
}

void start_correlations(const Slice& slice, const CorrelationOf& from,
                        cudaStream_t stream) {
  if (from.given != nullptr) {
    turn_given<<<static_cast<unsigned>(ceil_div(slice.size, 256)), 256, 0,
                 stream>>>(slice, from.given);
    CUDA_CHECK(cudaGetLastError());
    return;
  }
  correlate_neighbours<<<static_cast<unsigned>(
                             ceil_div(slice.size, kPairsPerBlock)),
                         kPairsPerBlock * kLanes, 0, stream>>>(slice, from);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
