// What gpu_faults.R does to a GPU: takes its memory, or a kernel writes to
// where nothing is, which CUDA does not recover from in that process.

#include <cuda_runtime.h>

__global__ void write_nowhere(int* nowhere) { *nowhere = 1; }

static void* taken = nullptr;

// All memory but so many bytes; gives what is free then.
extern "C" void take_memory(int* device, double* leave, double* free) {
  cudaSetDevice(*device);
  std::size_t now = 0, total = 0;
  cudaMemGetInfo(&now, &total);
  cudaMalloc(&taken, now - static_cast<std::size_t>(*leave));
  cudaMemGetInfo(&now, &total);
  *free = static_cast<double>(now);
}

extern "C" void spoil(int* device, int* code) {
  cudaSetDevice(*device);
  write_nowhere<<<1, 1>>>(nullptr);
  *code = static_cast<int>(cudaDeviceSynchronize());
}
