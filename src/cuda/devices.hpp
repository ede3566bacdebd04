#pragma once

// The devices of this process, for the engine. No CUDA type in sight.

#include <vector>

#include "cuda/backend.hpp"

namespace fsknn {
namespace cuda {

/// CUDA's numbers of the devices that a request names (rows of devices(), from
/// 0; none: all). Throws BackendFailure where CUDA or a device cannot be used.
std::vector<int> chosen_devices(const std::vector<int>& rows);

}  // namespace cuda
}  // namespace fsknn
