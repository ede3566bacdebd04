#pragma once

// Computes the contract's sum of a pair of prepared rows by 4 adjacent threads.

#include <cstdint>

#include "core/contract/arithmetic.hpp"

namespace fsknn {
namespace cuda {

/// A block computes a row's distances; 4 threads with two lanes each compute a
/// pair's.
template <int threads_>
struct ExactBlock {
  static constexpr int threads = threads_;
  static constexpr int pair_threads = kLanes / 2;
  static constexpr int pairs = threads / pair_threads;
};

/// Returns the sum over two prepared rows to all 4 threads; all of a warp must
/// call it.
template <class Sum>
__device__ inline double pair_sum(const double* a, const double* b,
                                  std::int64_t padded, int part) {
  double first = 0.0, second = 0.0;
#pragma unroll 8
  for (std::int64_t f = 2 * part; f < padded; f += kLanes) {
    const double2 x = __ldg(reinterpret_cast<const double2*>(a + f));
    const double2 y = __ldg(reinterpret_cast<const double2*>(b + f));
    first = Sum::step(x.x, y.x, first);
    second = Sum::step(x.y, y.y, second);
  }
  double v[kLanes];
#pragma unroll
  for (int l = 0; l < kLanes; l += 2) {
    v[l] = __shfl_sync(0xffffffffu, first, l / 2, kLanes / 2);
    v[l + 1] = __shfl_sync(0xffffffffu, second, l / 2, kLanes / 2);
  }
  return Sum::checked(Sum::join(v), a, b, padded);
}

}  // namespace cuda
}  // namespace fsknn
