#pragma once

// Exceptions for CUDA's error codes, and injected errors for tests.

#include <cuda_runtime.h>

#include <atomic>

namespace fsknn {
namespace cuda {

/// The device of a call that names no other.
inline constexpr int kCurrentDevice = -1;

/// Throws CudaFailure (call, file, line, CUDA's message, device) unless `code`
/// is success. The first sticky error of the process is kept (lost_device())
/// and thrown instead of all later ones. So every thread reports the same
/// device if several are lost together.
void check(cudaError_t code, const char* call, const char* file, int line,
           int device = kCurrentDevice);

/// CUDA's number of the current device, and an attribute of a device.
int current_device();
int device_if_any() noexcept;  ///< -1: CUDA fails
int attribute_of(cudaDeviceAttr which, int device);
int multiprocessors_here();  ///< of the current device

/// As check(), after an allocation of `bytes` on the current device. The
/// failure has the bytes requested and the bytes free.
void check_allocation(cudaError_t code, double bytes);

/// Whether a test makes this call fail, and with which error (faults.hpp). If
/// no fault is armed, this only reads a flag.
extern std::atomic<bool> fault_is_armed;
bool fault_is_due(const char* call, int device);
cudaError_t fault_error();

inline bool injected(const char* call, int device = kCurrentDevice) {
  return fault_is_armed.load(std::memory_order_relaxed) &&
         fault_is_due(call, device);
}

/// Allocates memory of the current device or throws CudaFailure; frees it. For
/// DeviceBuffer and other owners of such memory. All of it is counted.
struct Allocation {
  void* data = nullptr;
  double bytes = 0;
  double room = 0;  ///< the bytes there, at least `bytes`
  int device = -1;
};
Allocation allocate(double bytes);
void give_back(const Allocation& allocation) noexcept;

/// How often this process has allocated or freed device memory. Memory that is
/// kept for the next search does not count.
extern std::atomic<long> memory_changes;

/// The peak number of bytes in use on the device since the last reset.
double peak_bytes(int device);
void reset_peak_bytes(int device);

}  // namespace cuda
}  // namespace fsknn

#define CUDA_CHECK(call) \
  CUDA_CHECK_AS(::fsknn::cuda::kCurrentDevice, call, #call)

/// As CUDA_CHECK(), for a call about a device that need not be the current one.
#define CUDA_CHECK_ON(device, call) CUDA_CHECK_AS(device, call, #call)

#define CUDA_CHECK_AS(device, call, text)                    \
  ::fsknn::cuda::check(::fsknn::cuda::injected(text, device) \
                           ? ::fsknn::cuda::fault_error()    \
                           : (call),                         \
                       text, __FILE__, __LINE__, device)
