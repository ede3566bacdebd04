#pragma once

// The devices that a search uses from its start.

#include <algorithm>
#include <vector>

#include "core/base/pieces.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/workers.hpp"

namespace fsknn {
namespace cuda {

/// Starts the devices of a request and makes the first one current in this
/// thread. The thread also pins memory and frees that of other devices, which
/// must not start CUDA elsewhere.
class UsedDevices {
 public:
  explicit UsedDevices(const std::vector<int>& rows)
      : gpus_(start_devices(rows)), guard_(gpus_[0].cuda_id) {
    for (const Device& gpu : gpus_) reset_peak_bytes(gpu.cuda_id);
  }

  const std::vector<Device>& all() const { return gpus_; }
  int count() const { return static_cast<int>(gpus_.size()); }
  /// CUDA's own number.
  int id(int w) const { return gpus_[static_cast<std::size_t>(w)].cuda_id; }
  /// The peak bytes in use on any of them since the start.
  double most_bytes() const {
    double most = 0;
    for (const Device& gpu : gpus_)
      most = std::max(most, peak_bytes(gpu.cuda_id));
    return most;
  }

 private:
  const std::vector<Device> gpus_;
  const DeviceGuard guard_;
};

/// Runs work(w), the part of the w-th of the first `count` devices, on a worker
/// that has made the device current. Collects the statistics.
template <class Work>
void run_parts(Workers& workers, const UsedDevices& devices, int count,
               Stats& stats, Work work) {
  std::vector<Stats> parts(static_cast<std::size_t>(count));
  workers.run(count, [&](int w) {
    const DeviceGuard guard(devices.id(w));
    parts[static_cast<std::size_t>(w)] = work(w);
  });
  for (const Stats& part : parts) stats.add_part(part);
  stats.num_devices = count;
}

/// Stores the statistics of a search from its start and the seconds of its
/// preparation. stats may be null.
inline void note(const Stats& found, const UsedDevices& devices,
                 Clock::time_point start, double seconds_prepare,
                 Stats* stats) {
  if (stats == nullptr) return;
  *stats = found;
  stats->bytes_device = devices.most_bytes();
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search =
      seconds_since(start) - seconds_prepare - stats->seconds_emit;
}

}  // namespace cuda
}  // namespace fsknn
