#include "core/contract/masked.hpp"
#include "cuda/device/check.hpp"
#include "cuda/missing/masked_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Computes core's scale_of_row() by a warp.
__device__ inline PowerOfTwo scale_of_row(const double* x,
                                          std::int64_t num_features, int lane) {
  double largest = 0.0, smallest = HUGE_VAL;
  for (std::int64_t f = lane; f < num_features; f += 32) {
    if (!has_value(x[f]) || x[f] == 0.0) continue;
    largest = fmax(largest, fabs(x[f]));
    smallest = fmin(smallest, fabs(x[f]));
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    smallest = fmin(smallest, __shfl_xor_sync(0xffffffffu, smallest, step));
  }
  return scale_of_known(largest, smallest);
}

// Does what prepare_masked_row() of core/rows/masked_points.hpp does, except
// for ranks, one warp a row. In and out: see PlacedRows. Grid: any; block: 256.
// Shared: none.
__global__ void placed_rows(const PlacedRows work) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * 8;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
       i < work.count; i += step) {
    double* x = work.rows + i * work.padded;
    const PowerOfTwo scale =
        work.own_scale ? scale_of_row(x, work.num_features, lane) : work.scale;
    std::uint64_t* mask = work.masks + i * work.words;
    for (std::int64_t word = 0; word < work.words; ++word) {
      std::uint64_t bits = 0;
      for (int half = 0; half < 2; ++half) {
        const std::int64_t f = word * 64 + half * 32 + lane;
        const bool there = f < work.num_features && has_value(x[f]);
        bits |= static_cast<std::uint64_t>(__ballot_sync(0xffffffffu, there))
                << (32 * half);
        if (f < work.padded)
          x[f] = there ? (x[f] * scale.first) * scale.second : no_correlation();
      }
      if (lane == 0) mask[word] = bits;
    }
  }
}

}  // namespace

void start_placed_rows(const PlacedRows& work, cudaStream_t stream) {
  placed_rows<<<1024, 256, 0, stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
