// A ring of two slots, guarded by Hopper's barriers as in warpgroup_pairs.cuh:
// one thread copies tiles in, a warp reads them. Each read is ordered before
// the copy that overwrites it, by the barrier "empty". compute-sanitizer's
// racecheck (CUDA 13.0) reports races here, so that it does not follow these
// barriers:
//   make build/ring ARCH=sm_90a && compute-sanitizer --tool racecheck
//   build/ring

#include <cstdio>

#include "cuda/device/copies.cuh"
#include "cuda/device/hopper.cuh"

using namespace fsknn::cuda;

namespace {

constexpr int kTile = 256, kTiles = 12;

// In: `tiles` tiles. Out: the sum of all. Grid: 1. Block: 64. Shared: 2 KB,
// static.
__global__ void sum_ring(const float* from, int tiles, float* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kSlots = 2;
  __shared__ alignas(128) float slots[kSlots][kTile];
  __shared__ alignas(8) unsigned long long barriers[2 * kSlots];
  const auto full = [&](int slot) {
    return shared_address(barriers) + 8 * slot;
  };
  const auto empty = [&](int slot) { return full(kSlots + slot); };
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      make_barrier(full(slot), 1);
      make_barrier(empty(slot), 1);
    }
    show_barriers();
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x >= 32) {
    for (int tile = 0; lane == 0 && tile < tiles; ++tile) {
      const int slot = tile % kSlots;
      wait_for_barrier(empty(slot), (tile / kSlots & 1) ^ 1);
      expect_bytes(full(slot), sizeof(slots[0]));
      copy_bulk(shared_address(slots[slot]), from + tile * kTile,
                sizeof(slots[0]), full(slot));
    }
    return;
  }
  float sum = 0.0f;
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = tile % kSlots;
    wait_for_barrier(full(slot), tile / kSlots & 1);
    for (int i = lane; i < kTile; i += 32) sum += slots[slot][i];
    __syncwarp();
    if (lane == 0) arrive_at(empty(slot), 0);
  }
  atomicAdd(out, sum);
#endif
}

}  // namespace

int main() {
  float *from = nullptr, *out = nullptr;
  cudaMallocManaged(&from, kTiles * kTile * sizeof(float));
  cudaMallocManaged(&out, sizeof(float));
  for (int i = 0; i < kTiles * kTile; ++i) from[i] = 1.0f;
  *out = 0.0f;
  sum_ring<<<1, 64>>>(from, kTiles, out);
  const cudaError_t code = cudaDeviceSynchronize();
  std::printf("%s, sum %g of %d\n", cudaGetErrorString(code), *out,
              kTiles * kTile);
  return code == cudaSuccess && *out == kTiles * kTile ? 0 : 1;
}
