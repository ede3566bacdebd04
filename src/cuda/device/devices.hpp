#pragma once

// The state of this process's devices, without CUDA types.

#include <optional>

#include "core/base/errors.hpp"

namespace fsknn {
namespace cuda {

/// The first failure from which a device did not recover (an illegal address, a
/// device that fell off the bus). CUDA no longer works in this process.
std::optional<CudaFailure> lost_device();

}  // namespace cuda
}  // namespace fsknn
