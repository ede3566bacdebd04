#pragma once

// The body of kernels over pairs of rows in a form that tensor cores multiply,
// and their start: one implementation serves all such forms.

#include <stdexcept>

#include "cuda/filter/start_pairs.cuh"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/filter/warpgroup_pairs.cuh"

namespace fsknn {
namespace cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kPairThreads = HopperBlock::threads;
#else
constexpr int kPairThreads = WarpTile::threads;
#endif

// Computes similarities of pairs by tensor cores. Pairs that reach the
// threshold of a row or, by symmetry, of a column enter its list. In a graph it
// takes half of the pairs of blocks, each for its rows and its columns (CoMet's
// circulant order, Joubert et al. 2018). In and out: see Form::Work. Grid: any,
// blocks take jobs in turn; clusters of two on Hopper. Block: kPairThreads.
// Shared: dynamic, `room` the bytes (Hopper), or the stages. The body of a
// kernel.
template <class Form, class Kind>
__device__ inline void filter_in_form(const typename Form::Work& work,
                                      const int room, unsigned char* memory) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  filter_by_warpgroups<Form, Kind, HopperBlock>(work, room, memory);
#else
  filter_by_warps<Form, Kind>(work, room, memory);
#endif
}

/// Starts a kernel with that body.
template <class Kind, class Work>
void start_pair_kernel(void (*kernel)(Work, int), const Work& work,
                       cudaStream_t stream) {
  start_pairs(kernel, work,
              pair_launch(reinterpret_cast<const void*>(kernel),
                          work.slab_bytes(), Kind::numbers),
              stream);
}

}  // namespace cuda
}  // namespace fsknn
