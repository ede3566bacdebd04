#include <math_constants.h>

#include <algorithm>

#include "cuda/device/check.cuh"
#include "cuda/filter/half_pairs.cuh"
#include "cuda/filter/stretches.cuh"

#include "core/prepared.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Distances by |a - b|^2 as products. With any centre m, c_i = a_i - m and
// p_i = |c_i|^2 / 2, the similarity is t_ij = c_i c_j - p_i - p_j =
// -|a_i - a_j|^2 / 2. x_i is c_i times the scale, in halves; p_i goes into
// three features of the row's form, whose columns' form holds powers of two,
// and the other way round.
//
// The bound. All in units of the scale S (lengths) and its square; w_i = c_i -
// x_i, lambda = 2^-12, C, X and W the lengths of c, x and w.
//  * Rounding: c_i c_j - x_i x_j = x_i w_j + w_i x_j + w_i w_j. By
//  Cauchy-Schwarz
//    and 2 X_i W_j <= lambda X_i^2 + W_j^2 / lambda it is at most B_i + B_j
//    with B_i = (lambda X_i^2 + W_i^2 / lambda + W_i^2) / 2: nearly tight where
//    rows are as long as each other, which near rows are.
//  * Accumulation, as assumed in half_unit_rows.cu: tau = sums_error(depth) of
//  the
//    sum of magnitudes, at most the sum over both rows of X^2 / 2 + M, M the
//    magnitude of the three parts.
//  * The contract's sum of squares is within rounding_of_sums() of |a_i -
//  a_j|^2
//    <= 2 (C_i^2 + C_j^2), and less than padded 2^-1060 where squares vanish;
//    the root and its rounding keep the order of sums that are 2^-48 apart, and
//    taking off the matrix's power of two the order of distances that are g
//    apart: g (C_i + C_j) + g^2 here.
// Each is a sum of one number for each row; e_i is what a row's add up to. The
// three parts hold q_i <= p_i - e_i, so that the filtered sum is an upper bound
// of t_ij; it is one of t_ij and what the contract's rounding makes of it, and
// less slack_i + slack_j, with slack_i = e_i + p_i - q_i, a lower bound.
//
// A row far longer than the sample's (one huge entry) or whose error is beyond
// all measure is wild: zeros, and an upper bound above any threshold, with
// infinite slack. All others have it as a candidate, which the exact step
// decides; its own list overflows, and it is done again.

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr int kSample = 64;
constexpr double kLambda = 0x1p-12;
// A sampled row's length after scaling is about this; the longest may be
// 2^15, whose square still fits three parts.
constexpr int kTypicalExponent = 8;
constexpr double kLongest = 0x1p15;
constexpr double kLargestError = 0x1p28;
/// What the three parts are multiplied by.
__device__ inline double part_unit(int part) {
  return part == 0 ? 0x1p14 : part == 1 ? 0x1p3 : 0x1p-8;
}

__device__ inline double warp_sum(double x) {
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, gap);
  return x;
}

// The centre: each feature's median over the sample, which no single row moves.
// Grid: x over features. Block: kSample. Shared: 512 bytes, static.
__global__ void find_centre(const PreparedRows sample, int count,
                            double* centre) {
  __shared__ double values[kSample];
  const int own = static_cast<int>(threadIdx.x);
  const std::int64_t feature = blockIdx.x;
  if (own < count) values[own] = sample.rows[own * sample.padded + feature];
  __syncthreads();
  if (own >= count) return;
  int before = 0;
  for (int i = 0; i < count; ++i)
    before += values[i] < values[own] || (values[i] == values[own] && i < own);
  if (before == count / 2) centre[feature] = values[own];
}

// The scale: by the median length of the sample, a power of two. Grid: 1.
// Block: kThreads. Shared: 512 bytes, static.
__global__ void find_scale(const PreparedRows sample, int count,
                           const double* centre, double* scale) {
  __shared__ double length[kSample];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = static_cast<int>(threadIdx.x) / kWarp; row < count;
       row += kThreads / kWarp) {
    double squares = 0.0;
    for (std::int64_t f = lane; f < sample.padded; f += kWarp) {
      const double c = sample.rows[row * sample.padded + f] - centre[f];
      squares = fma(c, c, squares);
    }
    squares = warp_sum(squares);
    if (lane == 0) length[row] = sqrt(squares);
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  // The middle one of those that are not 0.
  double middle = 0.0;
  int positive = 0;
  for (int i = 0; i < count; ++i) positive += length[i] > 0.0;
  for (int i = 0; i < count; ++i) {
    int before = 0;
    for (int j = 0; j < count; ++j)
      before += length[j] > 0.0 &&
                (length[j] < length[i] || (length[j] == length[i] && j < i));
    if (length[i] > 0.0 && before == positive / 2) middle = length[i];
  }
  const int e = positive == 0 ? 0 : kTypicalExponent - exponent_of(middle);
  *scale = two_to(max(-1000, min(e, 1000)));
}

struct RoundRaw {
  PreparedRows from;
  std::int64_t count;
  const std::int32_t* slots;
  RawForm form;
  double contract;  ///< rounding_of_sums() and the root's
  double gap;       ///< g in units of 1
  RawRows to;
};

// One warp a row. In and out: see RoundRaw. Grid: x over rows. Block: kThreads.
// Shared: none.
__global__ void __launch_bounds__(kThreads) round_raw_rows(const RoundRaw raw) {
  const PreparedRows& from = raw.from;
  const std::int64_t row =
      (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= raw.count) return;
  const std::int64_t slot = raw.slots[row];
  if (slot < 0) return;
  const std::int64_t depth = raw.to.rows.depth;
  const std::int64_t parts_at = depth - kNormFeatures;
  const double scale = *raw.form.scale;
  const auto centred = [&](std::int64_t f) {
    return f < from.padded
               ? (from.rows[row * from.padded + f] - raw.form.centre[f]) * scale
               : 0.0;
  };
  double whole = 0.0, halves = 0.0, rounding = 0.0;
  for (std::int64_t f = lane; f < parts_at; f += kWarp) {
    const double c = centred(f);
    const double x = static_cast<double>(__half2float(__double2half(c)));
    const double lost = c - x;
    whole = fma(c, c, whole);
    halves = fma(x, x, halves);
    rounding = fma(lost, lost, rounding);
  }
  // Upper bounds: what the sums' own rounding may have taken, and that of c.
  const double up = 1.0 + static_cast<double>(depth + 64) * 0x1p-51;
  const double p = warp_sum(whole) / 2;  // to within (up - 1) of itself
  const double square = 2 * p * up;
  const double length = sqrt(square) * up;
  const double x_square = warp_sum(halves) * up;
  const double w = sqrt(warp_sum(rounding)) * up + length * 0x1p-51 + 0x1p-400;
  const double gap = raw.gap * scale;
  const double vanished = static_cast<double>(from.padded) * scale * 0x1p-530;
  const double tau = sums_error(depth);
  const double alone = (kLambda * x_square + w * w / kLambda + w * w) / 2 +
                       tau * x_square / 2 + raw.contract * square +
                       gap * length + gap * gap + (up - 1.0) * square +
                       vanished * (scale * 0x1p-530);
  // M <= 1.005 (p + e).
  const double e = (alone + tau * 1.01 * square / 2) * 1.02 + 0x1p-400;
  const bool wild = !(length <= kLongest) || !(e <= kLargestError);

  for (std::int64_t f = lane; f < parts_at; f += kWarp) {
    const __half x = __double2half(wild ? 0.0 : centred(f));
    *raw.to.rows.at(slot, f) = x;
    *raw.to.columns.at(slot, f) = x;
  }
  if (lane > 0) return;
  double left = wild ? -65504.0 * 0x1p14 : p - e;
  double q = 0.0;
  for (int part = 0; part < kNormParts; ++part) {
    const double unit = part_unit(part);
    // The last downwards: what is left never makes a pair less similar.
    const float parts = __double2float_rd(left / unit);
    const __half h =
        part + 1 < kNormParts ? __float2half_rn(parts) : __float2half_rd(parts);
    q += static_cast<double>(__half2float(h)) * unit;
    left -= static_cast<double>(__half2float(h)) * unit;
    const __half one = __double2half(unit);
    *raw.to.rows.at(slot, parts_at + part) = __hneg(h);
    *raw.to.columns.at(slot, parts_at + part) = one;
    *raw.to.rows.at(slot, parts_at + kNormParts + part) = one;
    *raw.to.columns.at(slot, parts_at + kNormParts + part) = __hneg(h);
  }
  raw.to.there[slot] = 1.0f;
  raw.to.slack[slot] =
      wild ? CUDART_INF_F
           : __double2float_ru((e + (p - q)) * (1 + 0x1p-40) + p * 0x1p-48);
}

}  // namespace

void start_raw_form(const PreparedRows& sample, std::int64_t count,
                    const RawForm& to, cudaStream_t stream) {
  const int size = static_cast<int>(std::min<std::int64_t>(count, kSample));
  find_centre<<<static_cast<unsigned>(sample.padded), kSample, 0, stream>>>(
      sample, size, to.centre);
  CUDA_CHECK(cudaGetLastError());
  find_scale<<<1, kThreads, 0, stream>>>(sample, size, to.centre, to.scale);
  CUDA_CHECK(cudaGetLastError());
}

void start_raw_rows(const PreparedRows& from, std::int64_t count,
                    const std::int32_t* slots, const RawForm& form,
                    PowerOfTwo undo, const RawRows& to, cudaStream_t stream) {
  RoundRaw raw;
  raw.from = from;
  raw.count = count;
  raw.slots = slots;
  raw.form = form;
  raw.contract = rounding_of_sums(from.padded) * 2 + 0x1p-47;
  raw.gap = 0x1p-1072 / undo.first / undo.second;
  raw.to = to;
  const std::int64_t rows_a_block = kThreads / kWarp;
  const std::int64_t grid = (count + rows_a_block - 1) / rows_a_block;
  round_raw_rows<<<static_cast<unsigned>(grid), kThreads, 0, stream>>>(raw);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
