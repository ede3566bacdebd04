#pragma once

// From devices to what a plan must know of them. No CUDA type in sight.

#include <algorithm>
#include <vector>

#include "cuda/backend.hpp"
#include "cuda/plan/plan.hpp"

namespace fsknn {
namespace cuda {

/// Of devices of different kinds, what all can do. bytes_limit: the request's.
inline GpuFacts facts_of(const std::vector<Device>& devices,
                         double bytes_limit) {
  GpuFacts facts;
  facts.bytes_limit = bytes_limit;
  facts.half_products = true;
  for (const Device& device : devices) {
    const bool first = &device == &devices.front();
    facts.bytes_free = first ? device.bytes_free
                             : std::min(facts.bytes_free, device.bytes_free);
    facts.half_products = facts.half_products && device.half_products;
    facts.multiprocessors =
        std::max(facts.multiprocessors, device.multiprocessors);
  }
  return facts;
}

}  // namespace cuda
}  // namespace fsknn
