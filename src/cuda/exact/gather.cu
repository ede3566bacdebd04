#include "cuda/exact/gather.hpp"

#include "cuda/device/check.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Grid: one block a place. Block: any. Shared: none.
__global__ void gather_points(const GatheredPoints points) {
  const std::int64_t row = blockIdx.x;
  const bool there = row < points.num_rows;
  const std::int64_t place = there ? points.places[row] : 0;
  for (std::int64_t f = threadIdx.x; f < points.padded; f += blockDim.x)
    points.rows[row * points.padded + f] =
        there ? points.from[place * points.padded + f] : 0.0;
  if (!there || threadIdx.x > 0) return;
  points.sums[row] = points.from_sums[place];
  if (points.ids != nullptr) points.ids[row] = points.from_ids[place];
}

// Grid: one block a row. Block: any. Shared: none.
__global__ void scatter_lists(const Lists from, const std::int32_t* places,
                              const std::int32_t* list_rows, const Lists to) {
  const std::int64_t row = blockIdx.x, target = list_rows[places[row]];
  for (std::int64_t rank = threadIdx.x; rank < from.k; rank += blockDim.x) {
    to.distance[target * to.k + rank] = from.distance[row * from.k + rank];
    to.index[target * to.k + rank] = from.index[row * from.k + rank];
  }
}

}  // namespace

void start_gathering(const GatheredPoints& points, cudaStream_t stream) {
  if (points.num_places == 0) return;
  gather_points<<<static_cast<unsigned>(points.num_places), 128, 0, stream>>>(
      points);
  CUDA_CHECK(cudaGetLastError());
}

void start_scatter(const Lists& from, const std::int32_t* places,
                   const std::int32_t* list_rows, std::int64_t num_rows,
                   const Lists& to, cudaStream_t stream) {
  scatter_lists<<<static_cast<unsigned>(num_rows), 64, 0, stream>>>(
      from, places, list_rows, to);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
