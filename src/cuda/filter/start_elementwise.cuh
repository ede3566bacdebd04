#pragma once

// Starts the kernels of filters by differences.

#include <cuda_runtime.h>

#include "cuda/filter/elementwise_tile.hpp"
#include "cuda/filter/queue.cuh"

namespace fsknn {
namespace cuda {

/// The bytes of shared memory beside the stages.
constexpr int kElementwiseQueueBytes = ElementwiseTile::threads / 32 *
                                       WarpQueue::length *
                                       static_cast<int>(sizeof(Found));
static_assert(ElementwiseTile::stage_bytes + kElementwiseQueueBytes ==
                  entry_of(NumberForm::single).shared_bytes,
              "the plan knows what a device must have");

/// Starts kernel(work, num_stages), on this many blocks of threads a
/// multiprocessor.
using ElementwiseKernel = void (*)(ElementwiseWork work, int num_stages);
void start_elementwise(ElementwiseKernel kernel, int blocks,
                       const ElementwiseWork& work, cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
