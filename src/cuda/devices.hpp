#pragma once

// The devices of this process, for the engine. No CUDA type in sight.

#include <optional>
#include <vector>

#include "core/errors.hpp"
#include "cuda/backend.hpp"

namespace fsknn {
namespace cuda {

/// CUDA's numbers of the devices that a request names (rows of devices(), from
/// 0; none: all). Throws BackendFailure where CUDA or a device cannot be used.
std::vector<int> chosen_devices(const std::vector<int>& rows);

/// The first failure that a device did not recover from (an illegal address, a
/// device that fell off the bus): CUDA does nothing more in this process.
std::optional<CudaFailure> lost_device();

}  // namespace cuda
}  // namespace fsknn
