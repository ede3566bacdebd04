#include "cuda/filter/start_elementwise.cuh"

#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/filter/start_pairs.cuh"

namespace fsknn {
namespace cuda {

void start_elementwise(ElementwiseKernel kernel, int blocks,
                       const ElementwiseWork& work, cudaStream_t stream) {
  using T = ElementwiseTile;
  const int device = current_device();
  constexpr int reserved = 1024;  // of each block, by the driver
  const int most =
      attribute_of(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int shared = (most + reserved) / blocks - reserved;
  const int fit = (shared - kElementwiseQueueBytes) / T::stage_bytes;
  const int stages = std::min(std::max(fit, 1), T::most_stages);
  const int bytes = stages * T::stage_bytes + kElementwiseQueueBytes;
  CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const std::int64_t num_jobs = work.jobs.end_job - work.jobs.first_job;
  const std::int64_t places =
      std::int64_t{blocks} *
      attribute_of(cudaDevAttrMultiProcessorCount, device);
  kernel<<<static_cast<unsigned>(std::min(num_jobs, places)), T::threads,
           static_cast<std::size_t>(bytes), stream>>>(work, stages);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
