#pragma once

// How kernels over pairs are started, of whatever form.

#include <algorithm>
#include <stdexcept>

#include "cuda/device/check.cuh"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/filter/warpgroup_pairs.cuh"

namespace fsknn {
namespace cuda {

inline int device_in_use() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

inline int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

inline int capability(int device) {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
         attribute(cudaDevAttrComputeCapabilityMinor, device);
}

/// Whether the code of a kernel that was loaded is the one of warpgroups: its
/// bounds tell.
template <class Kernel>
bool has_warpgroups(Kernel kernel) {
  cudaFuncAttributes code;
  CUDA_CHECK(cudaFuncGetAttributes(&code, kernel));
  return code.maxThreadsPerBlock >= HopperBlock::threads;
}

struct PairLaunch {
  bool hopper = false;  ///< by warpgroups, in clusters
  int room = 0;         ///< the kernel's argument
  int bytes = 0;        ///< of shared memory
};

/// kernel(work, room), on as many blocks as there is room for.
template <class Kernel, class Work>
void start_pairs(Kernel kernel, const Work& work, const PairLaunch& launch,
                 cudaStream_t stream) {
  using T = FilterTile;
  const FilterJobs& jobs = work.jobs;
  const std::int64_t num_jobs = jobs.end_job - jobs.first_job;
  if ((jobs.first_job | num_jobs | jobs.first_slab | jobs.num_slabs) %
          T::slabs !=
      0)
    throw std::logic_error("filter jobs are not of whole blocks");
  CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.bytes));
  const std::int64_t processors =
      attribute(cudaDevAttrMultiProcessorCount, device_in_use()) / T::slabs *
      T::slabs;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = HopperBlock::cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(std::min(num_jobs, processors));
  config.blockDim = launch.hopper ? HopperBlock::threads : WarpTile::threads;
  config.dynamicSmemBytes = static_cast<std::size_t>(launch.bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = launch.hopper ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, work, launch.room));
}

}  // namespace cuda
}  // namespace fsknn
