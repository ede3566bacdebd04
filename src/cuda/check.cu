#include "cuda/check.cuh"

#include <string>

#include "core/errors.hpp"

namespace fsknn {
namespace cuda {
namespace {

int current_device() {
  int device = -1;
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

double bytes_free_now() {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess
             ? static_cast<double>(free)
             : 0.0;
}

}  // namespace

void check(cudaError_t code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  // The runtime keeps the last error until it is read: the next call that is
  // checked must not find this one.
  cudaGetLastError();
  const std::string words = cudaGetErrorString(code);
  throw CudaFailure(std::string(call) + " failed at " + file + ":" +
                        std::to_string(line) + ": " + words,
                    current_device(), 0.0, 0.0, words);
}

void check_allocation(cudaError_t code, double bytes) {
  if (code == cudaSuccess) return;
  cudaGetLastError();
  const std::string words = cudaGetErrorString(code);
  throw CudaFailure("device memory could not be had: " + words,
                    current_device(), bytes, bytes_free_now(), words);
}

}  // namespace cuda
}  // namespace fsknn
