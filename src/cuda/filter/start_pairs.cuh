#pragma once

// How kernels over pairs are started, of whatever form.

#include <cuda_runtime.h>

#include "cuda/filter/half_tile.hpp"

namespace fsknn {
namespace cuda {

/// 10 * major + minor.
int capability(int device);

/// Whether the code of a kernel that was loaded is the one of warpgroups: its
/// bounds tell.
bool has_warpgroups(const void* kernel);
template <class Kernel>
bool has_warpgroups(Kernel* kernel) {
  return has_warpgroups(reinterpret_cast<const void*>(kernel));
}

struct PairLaunch {
  bool hopper = false;  ///< by warpgroups, in clusters
  int room = 0;         ///< the kernel's argument
  int bytes = 0;        ///< of shared memory
};

/// How the kernel of pair_kernel.cuh is started on the current device, for rows
/// of which a slab's take so many bytes. numbers: of a column that the
/// kernel takes besides.
PairLaunch pair_launch(const void* kernel, std::int64_t slab_bytes,
                       int numbers);

/// kernel(arguments), on as many blocks as there is room for.
void start_pairs(const void* kernel, void** arguments, const PairWork& work,
                 const PairLaunch& launch, cudaStream_t stream);

/// kernel(work, room), the same.
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
