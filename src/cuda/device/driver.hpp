#pragma once

// Functions of CUDA's driver that its runtime lacks. They are looked up when
// needed, not linked: libcuda belongs to the driver, which a build machine does
// not have.

namespace fsknn {
namespace cuda {

/// Whether CUDA is started on the device in this process. Does not start it.
bool is_started(int device);

/// The context of this thread's calls; null: none yet.
void* current_context();
/// Makes the context current again. Does not start CUDA.
void set_current_context(void* context);

}  // namespace cuda
}  // namespace fsknn
