#pragma once

// CUDA's error codes as exceptions.

#include <cuda_runtime.h>

namespace fsknn {
namespace cuda {

/// Throws CudaFailure (call, file, line, CUDA's words, the current device)
/// unless `code` is success.
void check(cudaError_t code, const char* call, const char* file, int line);

/// As check(), after an allocation of `bytes` on the current device: the
/// failure says how many bytes were asked for and how many are free.
void check_allocation(cudaError_t code, double bytes);

}  // namespace cuda
}  // namespace fsknn

#define CUDA_CHECK(call) ::fsknn::cuda::check((call), #call, __FILE__, __LINE__)
