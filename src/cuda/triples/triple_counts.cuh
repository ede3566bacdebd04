#pragma once

// The bin of a similarity, and a block's counts of bins.

#include <cstdint>

#include "cuda/triples/triple_kernels.hpp"

namespace fsknn {
namespace cuda {

/// Returns 0 below all bins, 1 in the first, and so on; the last bin includes
/// its upper end.
__device__ inline int triple_bin(const double* breaks, int num_breaks,
                                 double similarity) {
  if (similarity == breaks[num_breaks - 1]) return num_breaks - 1;
  int low = 0, high = num_breaks;  // no break before low is above
  while (low < high) {
    const int middle = (low + high) / 2;
    if (breaks[middle] <= similarity)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Counts of a block, in shared memory if they fit. All threads must call every
/// member.
class BlockCounts {
 public:
  /// shared: its size in bytes, a multiple of 8.
  __device__ BlockCounts(const TripleBins& bins, void* shared, int bytes)
      : bins_(bins),
        num_breaks_(static_cast<int>(bins.num_breaks)),
        here_(bins.num_breaks * 12 + 8 <= bytes),
        breaks_(here_ ? static_cast<const double*>(shared) : bins.breaks),
        counts_(reinterpret_cast<unsigned*>(static_cast<double*>(shared) +
                                            bins.num_breaks)) {
    if (!here_) return;
    for (int b = threadIdx.x; b <= num_breaks_; b += blockDim.x) {
      counts_[b] = 0;
      if (b < num_breaks_) static_cast<double*>(shared)[b] = bins.breaks[b];
    }
    __syncthreads();
  }
  __device__ int bin_of(double similarity) const {
    return triple_bin(breaks_, num_breaks_, similarity);
  }
  /// Similarities from the begin of `bin` up to this one are also in that bin.
  __device__ double end_of(int bin) const {
    return bin < num_breaks_ ? breaks_[bin] : 2.0;
  }
  __device__ void add(int bin, unsigned count) {
    if (count == 0) return;
    if (here_)
      atomicAdd(counts_ + bin, count);
    else
      atomicAdd(bins_.counts + bin, static_cast<unsigned long long>(count));
  }
  __device__ void finish() {
    if (!here_) return;
    __syncthreads();
    put(static_cast<int>(blockDim.x));
  }
  /// Writes the counts, by the first `threads` threads of the block, after a
  /// barrier of all that add.
  __device__ void put(int threads) {
    if (!here_) return;
    for (int b = threadIdx.x; b <= num_breaks_; b += threads)
      if (counts_[b] > 0)
        atomicAdd(bins_.counts + b,
                  static_cast<unsigned long long>(counts_[b]));
  }

 private:
  const TripleBins& bins_;
  int num_breaks_;
  bool here_;
  const double* breaks_;
  unsigned* counts_;
};

}  // namespace cuda
}  // namespace fsknn
