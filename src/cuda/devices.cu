#include "cuda/devices.hpp"

#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>

#include "core/errors.hpp"
#include "cuda/architectures.hpp"
#include "cuda/build_info.hpp"
#include "cuda/filter.cuh"
#include "cuda/resources.cuh"

namespace fsknn {
namespace cuda {
namespace {

/// What is here, or why it is of no use.
struct Found {
  std::vector<Device> devices;  // bytes_free not filled in
  std::string reason;
};

// CUDA does not survive a fork: its calls in the child fail or hang.
std::atomic<pid_t> process_of_cuda{0};

bool is_forked_child() {
  const pid_t process = process_of_cuda.load();
  return process != 0 && process != getpid();
}

/// 13000 as "13.0".
std::string version_words(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

std::string why_no_device(cudaError_t code) {
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaGetLastError();
  switch (code) {
    case cudaErrorInsufficientDriver:
      if (driver == 0) return "There is no NVIDIA driver.";
      return "The NVIDIA driver is too old: it supports CUDA " +
             version_words(driver) + ", and this installation needs CUDA " +
             version_words(runtime) + ".";
    case cudaErrorNoDevice:
      return "No NVIDIA GPU is visible to this process.";
    default:
      return std::string("CUDA failed: ") + cudaGetErrorString(code) + ".";
  }
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

Device describe(int cuda_id) {
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, cuda_id));
  Device device;
  device.cuda_id = cuda_id;
  device.name = properties.name;
  device.bytes_total = static_cast<double>(properties.totalGlobalMem);
  device.major = attribute(cudaDevAttrComputeCapabilityMajor, cuda_id);
  device.minor = attribute(cudaDevAttrComputeCapabilityMinor, cuda_id);
  device.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, cuda_id);
  device.half_products = has_half_products(cuda_id);
  return device;
}

Found find_devices() {
  Found found;
  if (is_forked_child()) {
    found.reason =
        "CUDA was used before this process was forked, and can't be used in a "
        "forked child.";
    return found;
  }
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    found.reason =
        why_no_device(code == cudaSuccess ? cudaErrorNoDevice : code);
    return found;
  }
  process_of_cuda = getpid();
  std::string others;
  for (int cuda_id = 0; cuda_id < count; ++cuda_id) {
    const Device device = describe(cuda_id);
    if (runs_on(cuda_architectures, device.major, device.minor))
      found.devices.push_back(device);
    else
      others += (others.empty() ? "" : ", ") + device.name + " (" +
                std::to_string(device.major) + "." +
                std::to_string(device.minor) + ")";
  }
  if (found.devices.empty())
    found.reason = "This installation was compiled for the architectures " +
                   std::string(cuda_architectures) + ", not for " + others +
                   ".";
  return found;
}

/// find_devices() with failures as reasons.
Found find_devices_quietly() {
  try {
    return find_devices();
  } catch (const std::exception& e) {
    Found none;
    none.reason = e.what();
    return none;
  }
}

}  // namespace

Status status() {
  Status s;
  s.built = true;
  s.toolkit = std::string("CUDA ") + cuda_toolkit;
  const Found found = find_devices_quietly();
  s.usable = !found.devices.empty();
  s.reason = found.reason;
  return s;
}

std::vector<Device> devices() {
  std::vector<Device> all = find_devices_quietly().devices;
  for (Device& device : all) {
    try {
      const DeviceGuard guard(device.cuda_id);
      std::size_t free = 0, total = 0;
      CUDA_CHECK(cudaMemGetInfo(&free, &total));
      device.bytes_free = static_cast<double>(free);
    } catch (const CudaFailure&) {
      device.bytes_free = 0.0;  // no context can be had: nothing is free to us
    }
  }
  return all;
}

std::vector<int> chosen_devices(const std::vector<int>& rows) {
  const Found found = find_devices_quietly();
  if (found.devices.empty()) throw BackendFailure(found.reason);
  std::vector<int> chosen;
  if (rows.empty())
    for (const Device& device : found.devices) chosen.push_back(device.cuda_id);
  for (const int row : rows) {
    if (row < 0 || row >= static_cast<int>(found.devices.size()))
      throw BackendFailure("There is no CUDA device " +
                           std::to_string(row + 1) + ".");
    chosen.push_back(found.devices[static_cast<std::size_t>(row)].cuda_id);
  }
  return chosen;
}

}  // namespace cuda
}  // namespace fsknn
