#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/filter/half_bound.hpp"
#include "cuda/filter/half_pairs.hpp"

#include "core/rows/prepared.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Non-negative doubles order as their bits do. A NaN counts as larger than
/// all.
__device__ inline void raise(double* largest, double x) {
  atomicMax(reinterpret_cast<unsigned long long*>(largest),
            static_cast<unsigned long long>(__double_as_longlong(x)) &
                0x7fffffffffffffffull);
}

// One warp handles a row. In: prepared rows; slots [count]. Out: half rows,
// there, errors. Grid: x over rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    round_rows(const PreparedRows from, std::int64_t count,
               const std::int32_t* slots, const HalfRows to, float* there,
               const RowErrors errors) {
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= count) return;
  const std::int64_t slot = slots[row];
  if (slot < 0) return;
  const double to_one = from.to_length_one(row);
  double squares = 0.0, rounding = 0.0;
  for (std::int64_t f = lane; f < to.depth; f += kWarp) {
    const double x =
        f < from.padded ? from.rows[row * from.padded + f] * to_one : 0.0;
    const __half rounded = __double2half(x * kHalfScale);
    *to.at(slot, f) = rounded;
    const double lost =
        x - static_cast<double>(__half2float(rounded)) / kHalfScale;
    squares = fma(x, x, squares);
    rounding = fma(lost, lost, rounding);
  }
  squares = warp_sum(squares);
  rounding = warp_sum(rounding);
  if (lane > 0) return;
  there[slot] = 1.0f;
  // Allows for the rounding of the sums themselves; underflow is far below the
  // 2^-400 added.
  const double up = 1.0 + static_cast<double>(to.depth + 64) * 0x1p-52;
  raise(errors.length, sqrt(squares) * up);
  raise(errors.rounding, sqrt(rounding) * up + 0x1p-400);
}

}  // namespace

void start_unit_rows(const PreparedRows& from, std::int64_t count,
                     const std::int32_t* slots, const HalfRows& to,
                     float* there, const RowErrors& errors,
                     cudaStream_t stream) {
  round_rows<<<blocks_of_warps(count), kThreads, 0, stream>>>(
      from, count, slots, to, there, errors);
  CUDA_CHECK(cudaGetLastError());
}

// The bound. z are the prepared rows (whole ranks are first scaled to length
// 1), x the rounded ones, and w = z - x, all in units of 1. N >= |z| and R >=
// |w| for every row, so |x| <= N + R.
//  * Rounding: z_i z_j - x_i x_j = x_i w_j + w_i z_j, by Cauchy-Schwarz at most
//    (N + R) R + R N.
//  * Accumulation: products of halves are exact in float32. The way that a
//    tensor core adds them is not documented. We assume that it truncates
//    rather than rounds, and loses at most 2^-23 of the largest magnitude at
//    each addition, one a feature and one more every 16. We allow (features +
//    16) 2^-22 of the sum of magnitudes for each range of features:
//    sums_error() of all, which are at most (N + R)^2.
//  * The contract's sum, reduced and finished in doubles, is within
//    rounding_of_sums() of the sum of magnitudes, at most N^2, from z_i z_j.
//    For whole ranks it is the quotient of the sum and a root, which is closer.
//  * Clamping to [-1, 1] moves it by at most N^2 - 1 more.
double unit_error(double length, double rounding, std::int64_t depth,
                  std::int64_t padded) {
  const double rounded = length + rounding;
  const double square = length * length;
  const double error =
      rounding * (rounded + length) + sums_error(depth) * rounded * rounded +
      rounding_of_sums(padded) * (square > 1.0 ? square : 1.0) +
      (square > 1.0 ? square - 1.0 : 0.0);
  return error * (1.0 + 0x1p-40);
}

}  // namespace cuda
}  // namespace fsknn
