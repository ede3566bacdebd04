#pragma once

// The facts about devices that a plan needs, without CUDA types.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/backend.hpp"

namespace fsknn {
namespace cuda {

struct GpuFacts {
  double bytes_free = 0;    ///< of the device with the least; 0: unknown
  int capability = 0;       ///< 10 * major + minor, the least of all devices
  int most_capability = 0;  ///< the largest of all devices
  std::int64_t shared_bytes = 0;  ///< available to a block on each device
  bool hopper_code = true;        ///< Device::hopper_code of every device
  double bytes_limit = 0;         ///< limit on each device; 0: no limit
  int multiprocessors = 0;        ///< of the device with the most

  /// The bytes that a plan may use on each device; 0: unknown. This is less
  /// than the free memory, to leave room for the context, modules and
  /// fragmentation.
  double bytes_usable() const {
    constexpr double share = 0.9;
    const double free = share * bytes_free;
    if (bytes_limit <= 0) return free;
    return free > 0 ? std::min(free, bytes_limit) : bytes_limit;
  }
};

/// The common abilities of different devices. bytes_limit: the request's.
inline GpuFacts facts_of(const std::vector<Device>& devices,
                         double bytes_limit) {
  GpuFacts facts;
  facts.bytes_limit = bytes_limit;
  for (const Device& device : devices) {
    const bool first = &device == &devices.front();
    const auto least = [&](auto& of_all, auto its) {
      of_all = first ? its : std::min(of_all, its);
    };
    least(facts.bytes_free, device.bytes_free);
    least(facts.capability, 10 * device.major + device.minor);
    least(facts.shared_bytes, device.shared_bytes);
    facts.hopper_code = facts.hopper_code && device.hopper_code;
    facts.most_capability =
        std::max(facts.most_capability, 10 * device.major + device.minor);
    facts.multiprocessors =
        std::max(facts.multiprocessors, device.multiprocessors);
  }
  return facts;
}

}  // namespace cuda
}  // namespace fsknn
