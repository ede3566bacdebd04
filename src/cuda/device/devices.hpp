#pragma once

// What became of the devices of this process. No CUDA type in sight.

#include <optional>

#include "core/base/errors.hpp"

namespace fsknn {
namespace cuda {

/// The first failure that a device did not recover from (an illegal address, a
/// device that fell off the bus): CUDA does nothing more in this process.
std::optional<CudaFailure> lost_device();

}  // namespace cuda
}  // namespace fsknn
