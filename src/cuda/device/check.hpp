#pragma once

// CUDA's error codes as exceptions, and a way to make them up for tests.

#include <cuda_runtime.h>

#include <atomic>

namespace fsknn {
namespace cuda {

/// What the call is about, where it names no other.
inline constexpr int kCurrentDevice = -1;

/// Throws CudaFailure (call, file, line, CUDA's words, the device) unless
/// `code` is success. The first error after which CUDA does nothing more in
/// this process is remembered (lost_device()), and thrown in place of all such
/// that follow: devices that are lost together are told of as one, by every
/// thread.
void check(cudaError_t code, const char* call, const char* file, int line,
           int device = kCurrentDevice);

/// CUDA's own number of the current device; and what a device has of something.
int current_device();
int attribute_of(cudaDeviceAttr which, int device);
int multiprocessors_here();  ///< of the current device

/// As check(), after an allocation of `bytes` on the current device: the
/// failure says how many bytes were asked for and how many are free.
void check_allocation(cudaError_t code, double bytes);

/// Whether a test wants this call to fail, and how (faults.hpp). Where no fault
/// is armed it costs one look at a flag.
extern std::atomic<bool> fault_is_armed;
bool fault_is_due(const char* call, int device);
cudaError_t fault_error();

inline bool injected(const char* call, int device = kCurrentDevice) {
  return fault_is_armed.load(std::memory_order_relaxed) &&
         fault_is_due(call, device);
}

/// Memory of the current device, or a CudaFailure; and back. For DeviceBuffer,
/// and what else must own such memory. All of it is counted.
struct Allocation {
  void* data = nullptr;
  double bytes = 0;
  int device = -1;
};
Allocation allocate(double bytes);
void give_back(const Allocation& allocation) noexcept;

/// The most bytes held at a time on the device, since the last reset.
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
