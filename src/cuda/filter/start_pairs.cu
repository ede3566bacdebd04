#include "cuda/filter/start_pairs.cuh"

#include <algorithm>
#include <stdexcept>

#include "cuda/device/check.hpp"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/filter/warpgroup_pairs.cuh"

namespace fsknn {
namespace cuda {

int capability(int device) {
  return 10 * attribute_of(cudaDevAttrComputeCapabilityMajor, device) +
         attribute_of(cudaDevAttrComputeCapabilityMinor, device);
}

int threads_of_block(const void* kernel) {
  cudaFuncAttributes code;
  CUDA_CHECK(cudaFuncGetAttributes(&code, kernel));
  return code.maxThreadsPerBlock;
}

bool has_warpgroups(const void* kernel) {
  return threads_of_block(kernel) >= HopperBlock::threads;
}

PairLaunch pair_launch(const void* kernel, std::int64_t slab_bytes,
                       int numbers) {
  using T = FilterTile;
  constexpr int queue_bytes = WarpTile::threads / 32 * SpreadQueue::length *
                              static_cast<int>(sizeof(Found));
  constexpr int least_bytes = T::stage_bytes + queue_bytes;
  static_assert(
      entry_of(NumberForm::half).shared_bytes == least_bytes &&
          entry_of(NumberForm::bit).shared_bytes == least_bytes &&
          entry_of(NumberForm::allele).shared_bytes == least_bytes &&
          entry_of(NumberForm::allele_pair).shared_bytes == least_bytes &&
          entry_of(NumberForm::byte).shared_bytes == least_bytes,
      "the plan knows what a device must have");
  const int device = current_device();
  const int most =
      attribute_of(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  PairLaunch launch;
  launch.threads = threads_of_block(kernel);
  launch.hopper = launch.threads >= HopperBlock::threads;
  if (launch.hopper) {
    launch.room = most;
    launch.bytes =
        HopperMemory(slab_bytes, most, numbers, launch.threads / 128 - 1)
            .bytes();
  } else {
    const int fit = (most - queue_bytes) / T::stage_bytes;
    // GPUs below 8.0 cannot copy ahead.
    launch.room = capability(device) < 80 ? 1 : std::min(fit, T::most_stages);
    launch.bytes = launch.room * T::stage_bytes + queue_bytes;
  }
  return launch;
}

void start_pairs(const void* kernel, void** arguments, const PairWork& work,
                 const PairLaunch& launch, cudaStream_t stream) {
  using T = FilterTile;
  const FilterJobs& jobs = work.jobs;
  const std::int64_t num_jobs = jobs.end_job - jobs.first_job;
  if ((jobs.first_job | num_jobs | jobs.first_slab | jobs.num_slabs) %
          T::slabs !=
      0)
    throw std::logic_error("filter jobs are not of whole blocks");
  if (jobs.fill && work.lists.capacity % 2 != 0)
    throw std::logic_error("lists to fill have an odd number of places");
  CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.bytes));
  const std::int64_t processors = multiprocessors_here() / T::slabs * T::slabs;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = HopperBlock::cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(std::min(num_jobs, processors));
  config.blockDim = static_cast<unsigned>(launch.threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(launch.bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = launch.hopper ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
}

}  // namespace cuda
}  // namespace fsknn
