#pragma once

// The few things that CUDA's driver can do and its runtime can't. Its functions
// are asked for when needed: libcuda belongs to the driver, which a machine
// that only builds does not have, so that it is never linked.

namespace fsknn {
namespace cuda {

/// Whether CUDA is started on the device in this process. Starts nothing.
bool is_started(int device);

/// The context that this thread's calls go to; null: none yet.
void* current_context();
/// Makes it the current one again. Starts nothing.
void set_current_context(void* context);

}  // namespace cuda
}  // namespace fsknn
