#include "cuda/device/check.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/base/errors.hpp"
#include "cuda/device/faults.hpp"
#include "cuda/device/spares.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Whether all later calls in the process return this error, as CUDA's
/// documentation says.
bool is_sticky(cudaError_t code) {
  static constexpr cudaError_t sticky[] = {
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorIllegalAddress,
    cudaErrorLaunchTimeout,
    cudaErrorContextIsDestroyed,
    cudaErrorAssert,
    cudaErrorHardwareStackError,
    cudaErrorIllegalInstruction,
    cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace,
    cudaErrorInvalidPc,
    cudaErrorLaunchFailure,
    cudaErrorMpsClientTerminated,
    cudaErrorExternalDevice,
    cudaErrorUnknown,
#if CUDART_VERSION >= 12080
    cudaErrorContained,
    cudaErrorTensorMemoryLeak,
#endif
  };
  return std::find(std::begin(sticky), std::end(sticky), code) !=
         std::end(sticky);
}

double bytes_free_now() {
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess)
    return static_cast<double>(free);
  cudaGetLastError();
  return 0.0;
}

// The first sticky failure of the process, the memory in use, and the armed
// fault.
std::mutex failure_guard;
std::optional<CudaFailure> lost;
struct Held {
  double now = 0, peak = 0;
};
std::map<int, Held> held_on;  // by CUDA's device number
struct Armed {
  Fault fault;
  std::int64_t matched = 0;
  bool fired = false;
} armed;

[[noreturn]] void fail(cudaError_t code, const std::string& where, int device,
                       double bytes) {
  // The runtime keeps the last error until it is read. Reading it here hides it
  // from the next checked call.
  cudaGetLastError();
  CudaFailure failure(cudaGetErrorString(code),
                      device == kCurrentDevice ? device_if_any() : device);
  failure.where = where;
  failure.sticky = is_sticky(code);
  if (bytes > 0 && !failure.sticky) {
    failure.bytes_asked = bytes;
    failure.bytes_free = bytes_free_now();
  }
  if (failure.sticky) {
    const std::lock_guard<std::mutex> hold(failure_guard);
    if (!lost) lost = failure;
    throw CudaFailure(*lost);
  }
  throw failure;
}

}  // namespace

int current_device() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

int device_if_any() noexcept {
  int device = -1;
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

int attribute_of(cudaDeviceAttr which, int device) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

int multiprocessors_here() {
  return attribute_of(cudaDevAttrMultiProcessorCount, current_device());
}

void check(cudaError_t code, const char* call, const char* file, int line,
           int device) {
  if (code == cudaSuccess) return;
  // The compiler gets "./cuda/x.cuh" for some files.
  if (std::strncmp(file, "./", 2) == 0) file += 2;
  fail(code, std::string(call) + ", " + file + ":" + std::to_string(line),
       device, 0);
}

void check_allocation(cudaError_t code, double bytes) {
  if (code != cudaSuccess) fail(code, "cudaMalloc", kCurrentDevice, bytes);
}

Allocation allocate(double bytes) {
  const std::size_t size = bytes > 1e18 ? 0 : static_cast<std::size_t>(bytes);
  Allocation made;
  const auto code = [&] {
    if (injected("cudaMalloc")) return fault_error();
    if (size == 0) return cudaErrorMemoryAllocation;
    made = take_spare(bytes);
    if (made.data != nullptr) return cudaSuccess;
    made.device = device_if_any();
    made.bytes = made.room = bytes;
    ++memory_changes;
    const cudaError_t first = cudaMalloc(&made.data, size);
    if (first != cudaErrorMemoryAllocation || !free_spares(made.device))
      return first;
    cudaGetLastError();
    return cudaMalloc(&made.data, size);
  };
  check_allocation(code(), bytes);
  const std::lock_guard<std::mutex> hold(failure_guard);
  Held& held = held_on[made.device];
  held.now += bytes;
  held.peak = std::max(held.peak, held.now);
  return made;
}

void give_back(const Allocation& allocation) noexcept {
  if (allocation.data == nullptr) return;
  if (!keep_spare(allocation)) {
    cudaFree(allocation.data);
    ++memory_changes;
  }
  const std::lock_guard<std::mutex> hold(failure_guard);
  held_on[allocation.device].now -= allocation.bytes;
}

std::atomic<long> memory_changes{0};

double peak_bytes(int device) {
  const std::lock_guard<std::mutex> hold(failure_guard);
  return held_on[device].peak;
}

void reset_peak_bytes(int device) {
  const std::lock_guard<std::mutex> hold(failure_guard);
  held_on[device].peak = held_on[device].now;
}

std::optional<CudaFailure> lost_device() {
  const std::lock_guard<std::mutex> hold(failure_guard);
  return lost;
}

// --- Faults that tests arm ---------------------------------------------------

std::atomic<bool> fault_is_armed{false};

bool fault_is_due(const char* call, int device) {
  if (device == kCurrentDevice) device = device_if_any();
  const std::lock_guard<std::mutex> hold(failure_guard);
  const Fault& fault = armed.fault;
  if (fault.device >= 0 && fault.device != device) return false;
  // As after a real error, all later calls on this device fail alike.
  if (armed.fired && is_sticky(fault_error())) return true;
  if (std::string(call).find(fault.text) == std::string::npos) return false;
  if (++armed.matched != fault.nth) return false;
  armed.fired = true;
  return true;
}

cudaError_t fault_error() { return static_cast<cudaError_t>(armed.fault.code); }

bool can_inject() { return true; }

void arm_fault(const Fault& fault) {
  disarm_fault();
  const std::lock_guard<std::mutex> hold(failure_guard);
  armed.fault = fault;
  fault_is_armed = true;
}

FaultReport disarm_fault() {
  const std::lock_guard<std::mutex> hold(failure_guard);
  FaultReport report = {armed.matched, armed.fired};
  if (armed.fired && is_sticky(fault_error())) lost.reset();
  fault_is_armed = false;
  armed = Armed();
  return report;
}

}  // namespace cuda
}  // namespace fsknn
