#pragma once

// What a plan needs to know of the devices. No CUDA type in sight.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/backend.hpp"

namespace fsknn {
namespace cuda {

struct GpuFacts {
  double bytes_free = 0;          ///< of the one that has least; 0: not known
  int capability = 0;             ///< 10 * major + minor, the least of all
  int most_capability = 0;        ///< the most
  std::int64_t shared_bytes = 0;  ///< that a block may have on each
  bool hopper_code = true;        ///< Device::hopper_code of each
  double bytes_limit = 0;         ///< no more than this on each; 0: no limit
  int multiprocessors = 0;        ///< of the one that has most

  /// What a plan may use on each; 0: not known. Less than is free, for the
  /// context, the modules and fragmentation.
  double bytes_usable() const {
    constexpr double share = 0.9;
    const double free = share * bytes_free;
    if (bytes_limit <= 0) return free;
    return free > 0 ? std::min(free, bytes_limit) : bytes_limit;
  }
};

/// Of devices of different kinds, what all can do. bytes_limit: the request's.
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
