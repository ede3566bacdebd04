#include "cuda/device/devices.hpp"

#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include "cuda/build_info.hpp"
#include "cuda/device/architectures.hpp"
#include "cuda/device/driver.hpp"
#include "cuda/device/faults.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/staging.hpp"
#include "cuda/device/workers.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// The usable devices, or the reason why there are none.
struct Found {
  std::vector<Device> devices, left_out;  // bytes_free is not set
  std::optional<BackendFailure> why_not;
};

// CUDA does not survive a fork: its calls in the child fail or hang.
std::atomic<pid_t> process_of_cuda{0};

// CUDA counts devices once in a process, and so does this file.
std::mutex devices_guard;
std::optional<Found> real;
std::optional<Found> fake;

bool is_forked_child() {
  const pid_t process = process_of_cuda.load();
  return process != 0 && process != getpid();
}

using Why = BackendFailure::Why;

/// The reason why CUDA has no devices, from the error of its first call.
BackendFailure why_no_device(const FakeMachine& machine) {
  const auto why = [&] {
    switch (machine.code) {
      case cudaErrorInsufficientDriver:
        return machine.driver == 0 ? Why::no_driver : Why::old_driver;
      case cudaErrorNoDevice: return Why::no_device;
      case cudaErrorSystemDriverMismatch: return Why::driver_mismatch;
      default: return Why::failed;
    }
  };
  BackendFailure failure(
      why(), cudaGetErrorString(static_cast<cudaError_t>(machine.code)));
  failure.driver = machine.driver;
  failure.runtime = machine.runtime;
  return failure;
}

Device describe(int cuda_id) {
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, cuda_id));
  Device device;
  device.cuda_id = cuda_id;
  device.name = properties.name;
  device.bytes_total = static_cast<double>(properties.totalGlobalMem);
  device.major = attribute_of(cudaDevAttrComputeCapabilityMajor, cuda_id);
  device.minor = attribute_of(cudaDevAttrComputeCapabilityMinor, cuda_id);
  device.multiprocessors =
      attribute_of(cudaDevAttrMultiProcessorCount, cuda_id);
  device.shared_bytes =
      attribute_of(cudaDevAttrMaxSharedMemoryPerBlockOptin, cuda_id);
  return device;
}

FakeMachine real_machine() {
  FakeMachine machine;
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count == 0) code = cudaErrorNoDevice;
  machine.code = code;
  if (cudaDriverGetVersion(&machine.driver) != cudaSuccess) machine.driver = 0;
  if (cudaRuntimeGetVersion(&machine.runtime) != cudaSuccess)
    machine.runtime = 0;
  cudaGetLastError();
  if (code != cudaSuccess) return machine;
  process_of_cuda = getpid();
  for (int cuda_id = 0; cuda_id < count; ++cuda_id)
    machine.devices.push_back(describe(cuda_id));
  return machine;
}

Found judge(const FakeMachine& machine) {
  Found found;
  if (machine.code != cudaSuccess) {
    found.why_not = why_no_device(machine);
    return found;
  }
  for (Device device : machine.devices) {
    device.hopper_code = has_hopper_code(cuda_architectures);
    (runs_on(cuda_architectures, device.major, device.minor) ? found.devices
                                                             : found.left_out)
        .push_back(device);
  }
  if (found.devices.empty()) found.why_not = BackendFailure(Why::other_devices);
  return found;
}

/// Returns failures as reasons. Found devices are remembered; failures are not,
/// so that a later call may succeed.
Found find_devices() {
  Found found;
  if (is_forked_child()) {
    found.why_not = BackendFailure(Why::forked);
    return found;
  }
  const std::lock_guard<std::mutex> hold(devices_guard);
  if (fake) return *fake;
  if (real) return *real;
  try {
    found = judge(real_machine());
    if (!found.devices.empty()) real = found;
  } catch (const CudaFailure& e) {
    found.why_not = BackendFailure(Why::failed, e.cuda_words);
  }
  return found;
}

bool is_fake() {
  const std::lock_guard<std::mutex> hold(devices_guard);
  return fake.has_value();
}

double bytes_free_on(int cuda_id) {
  const DeviceGuard device(cuda_id);
  std::size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<double>(free);
}

/// The same, or a recent result if this process has changed nothing since then:
/// to ask takes some hundredths of a millisecond. Other processes may allocate
/// memory during a search, too.
double recent_bytes_free_on(int cuda_id) {
  using Clock = std::chrono::steady_clock;
  struct Result {
    double bytes;
    long changes;
    Clock::time_point at;
  };
  static std::map<int, Result> results;
  static std::mutex guard;
  constexpr std::chrono::milliseconds recent(100);
  const long changes = memory_changes;
  {
    const std::lock_guard<std::mutex> hold(guard);
    const auto known = results.find(cuda_id);
    if (known != results.end() && known->second.changes == changes &&
        Clock::now() - known->second.at < recent)
      return known->second.bytes;
  }
  // Not under the lock, because this may start CUDA on the device.
  const double bytes = bytes_free_on(cuda_id);
  const std::lock_guard<std::mutex> hold(guard);
  results[cuda_id] = {bytes, changes, Clock::now()};
  return bytes;
}

/// Throws an earlier device loss again, or the reason why no device is usable.
std::vector<Device> chosen(const std::vector<int>& rows) {
  const Found found = find_devices();
  if (!is_forked_child())
    if (const std::optional<CudaFailure> lost = lost_device()) throw *lost;
  if (found.why_not) throw *found.why_not;
  if (rows.empty()) return found.devices;
  std::vector<Device> these;
  for (const int row : rows) {
    if (row < 0 || row >= static_cast<int>(found.devices.size())) {
      BackendFailure failure(Why::no_such_device);
      failure.device = row;
      throw failure;
    }
    these.push_back(found.devices[static_cast<std::size_t>(row)]);
  }
  return these;
}

}  // namespace

Status status() {
  Status s;
  s.built = true;
  s.toolkit = std::string("CUDA ") + cuda_toolkit;
  s.architectures = cuda_architectures;
  const Found found = find_devices();
  s.why_not = found.why_not;
  s.left_out = found.left_out;
  if (!is_forked_child()) s.lost = lost_device();
  if (s.lost) s.why_not = BackendFailure(Why::lost, s.lost->cuda_words);
  return s;
}

std::vector<Device> devices() {
  std::vector<Device> all = find_devices().devices;
  if (is_fake() || lost_device()) return all;
  for (Device& device : all) {
    try {
      if (is_started(device.cuda_id))
        device.bytes_free = bytes_free_on(device.cuda_id);
    } catch (const CudaFailure&) {
      device.bytes_free = -1;
    }
  }
  return all;
}

std::vector<Device> start_devices(const std::vector<int>& rows) {
  std::vector<Device> these = chosen(rows);
  if (is_fake()) return these;
  // Starting CUDA takes long, so that each device has its own host thread.
  Workers workers(nullptr, 1);
  workers.run(static_cast<int>(these.size()), [&](int w) {
    Device& device = these[static_cast<std::size_t>(w)];
    // What is kept for the next search is reused, or freed for another use.
    device.bytes_free =
        recent_bytes_free_on(device.cuda_id) + bytes_spare(device.cuda_id);
  });
  return these;
}

void give_back_kept() noexcept {
  // A forked child owns nothing; after a loss nothing can be freed.
  if (process_of_cuda.load() == 0 || is_forked_child()) return;
  try {
    if (!lost_device()) give_back_pinned();
  } catch (...) {
  }
}

int row_of_device(int cuda_id) {
  const std::lock_guard<std::mutex> hold(devices_guard);
  const std::optional<Found>& found = fake ? fake : real;
  if (!found) return -1;
  for (std::size_t row = 0; row < found->devices.size(); ++row)
    if (found->devices[row].cuda_id == cuda_id) return static_cast<int>(row);
  return -1;
}

void fake_machine(const std::optional<FakeMachine>& machine) {
  const std::lock_guard<std::mutex> hold(devices_guard);
  fake.reset();
  if (machine) fake = judge(*machine);
}

}  // namespace cuda
}  // namespace fsknn
