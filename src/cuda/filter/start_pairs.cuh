#pragma once

// Starts the kernels over pairs, for every form.

#include <cuda_runtime.h>

#include "cuda/filter/half_tile.hpp"

namespace fsknn {
namespace cuda {

/// 10 * major + minor.
int capability(int device);

/// Returns whether the loaded code of a kernel is the one for warpgroups, which
/// its launch bounds show.
bool has_warpgroups(const void* kernel);
template <class Kernel>
bool has_warpgroups(Kernel* kernel) {
  return has_warpgroups(reinterpret_cast<const void*>(kernel));
}

struct PairLaunch {
  bool hopper = false;  ///< by warpgroups, in clusters
  int threads = 0;      ///< of a block
  int room = 0;         ///< the kernel's argument
  int bytes = 0;        ///< of shared memory
};

/// Returns the launch of the kernel of pair_kernel.cuh on the current device.
/// slab_bytes: of the rows of a slab. numbers: additional numbers of a column
/// that the kernel reads.
PairLaunch pair_launch(const void* kernel, std::int64_t slab_bytes,
                       int numbers);

/// Starts kernel(arguments) on as many blocks as fit.
void start_pairs(const void* kernel, void** arguments, const PairWork& work,
                 const PairLaunch& launch, cudaStream_t stream);

/// Starts kernel(work, room) in the same way.
template <class Work>
void start_pairs(void (*kernel)(Work, int), const Work& work,
                 const PairLaunch& launch, cudaStream_t stream) {
  Work own = work;
  int room = launch.room;
  void* arguments[] = {&own, &room};
  start_pairs(reinterpret_cast<const void*>(kernel), arguments, work, launch,
              stream);
}

}  // namespace cuda
}  // namespace fsknn
