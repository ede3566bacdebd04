#include "cuda/device/driver.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

namespace fsknn {
namespace cuda {
namespace {

/// Returns a driver function of CUDA `version` (such as 7000); null if it does
/// not exist.
template <class Function>
Function driver_function(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  const cudaError_t code = cudaGetDriverEntryPointByVersion(
      name, &found, version, cudaEnableDefault, &result);
#else
  static_cast<void>(version);
  const cudaError_t code =
      cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (code != cudaSuccess) cudaGetLastError();
  return code == cudaSuccess && result == cudaDriverEntryPointSuccess
             ? reinterpret_cast<Function>(found)
             : nullptr;
}

using GetState = CUresult (*)(CUdevice, unsigned*, int*);
using GetContext = CUresult (*)(CUcontext*);
using SetContext = CUresult (*)(CUcontext);

}  // namespace

bool is_started(int device) {
  static const auto state =
      driver_function<GetState>("cuDevicePrimaryCtxGetState", 7000);
  unsigned flags = 0;
  int active = 0;
  // The runtime and the driver number devices alike.
  return state != nullptr && state(device, &flags, &active) == CUDA_SUCCESS &&
         active != 0;
}

void* current_context() {
  static const auto get = driver_function<GetContext>("cuCtxGetCurrent", 4000);
  CUcontext context = nullptr;
  if (get != nullptr && get(&context) != CUDA_SUCCESS) context = nullptr;
  return context;
}

void set_current_context(void* context) {
  static const auto set = driver_function<SetContext>("cuCtxSetCurrent", 4000);
  if (set != nullptr) set(static_cast<CUcontext>(context));
}

}  // namespace cuda
}  // namespace fsknn
