#include "cuda/exact/gather.cuh"

#include "cuda/device/check.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Grid: one block a gathered row. Block: any. Shared: none.
__global__ void gather_rows(const Gather gather) {
  const std::int64_t row = blockIdx.x;
  const bool there = row < gather.num_rows;
  const std::int64_t place = there ? gather.places[row] : 0;
  for (std::int64_t f = threadIdx.x; f < gather.padded; f += blockDim.x)
    gather.rows[row * gather.padded + f] =
        there ? gather.from[place * gather.padded + f] : 0.0;
  if (there && threadIdx.x == 0 && gather.ids_from != nullptr)
    gather.ids[row] = gather.ids_from[place];
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

void start_gather(const Gather& gather, cudaStream_t stream) {
  gather_rows<<<static_cast<unsigned>(gather.num_places), 128, 0, stream>>>(
      gather);
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
