#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/filter/half_bound.hpp"
#include "cuda/filter/half_pairs.hpp"

#include "core/contract/centred.hpp"
#include "core/rows/prepared.hpp"

namespace fsknn {
namespace cuda {
namespace {

// half_bound.hpp proves the bound.

constexpr int kCentreSample = 64;

/// Returns the factor by which the entries of row r are multiplied first.
__device__ inline double to_row(const PreparedRows& from, std::int64_t r,
                                RawSum sum) {
  return sum == RawSum::near_rows ? from.to_length_one(r) : 1.0;
}
__device__ inline double warp_largest(double x) {
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    x = fmax(x, __shfl_xor_sync(0xffffffffu, x, gap));
  return x;
}

// Finds the centre: each feature's median over the sample, which no single row
// can move. Grid: x over features. Block: kCentreSample. Shared: 512 bytes,
// static.
__global__ void find_centre(const PreparedRows sample, int count, RawSum sum,
                            double* centre) {
  __shared__ double values[kCentreSample];
  const int own = static_cast<int>(threadIdx.x);
  const std::int64_t feature = blockIdx.x;
  if (own < count)
    values[own] =
        sample.rows[own * sample.padded + feature] * to_row(sample, own, sum);
  __syncthreads();
  if (own >= count) return;
  int before = 0;
  for (int i = 0; i < count; ++i)
    before += values[i] < values[own] || (values[i] == values[own] && i < own);
  if (before == count / 2) centre[feature] = values[own];
}

// Finds the scale, a power of two, from the median length of the sample. Grid:
// 1. Block: kThreads. Shared: 512 bytes, static.
__global__ void find_scale(const PreparedRows sample, int count, RawSum sum,
                           const double* centre, int typical, double* scale) {
  __shared__ double length[kCentreSample];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = static_cast<int>(threadIdx.x) / kWarp; row < count;
       row += kThreads / kWarp) {
    const double by = to_row(sample, row, sum);
    double squares = 0.0;
    for (std::int64_t f = lane; f < sample.padded; f += kWarp) {
      const double c = sample.rows[row * sample.padded + f] * by - centre[f];
      squares = fma(c, c, squares);
    }
    squares = warp_sum(squares);
    if (lane == 0) length[row] = sqrt(squares);
  }
  __syncthreads();
  // The median of the lengths that are not 0.
  const int own = static_cast<int>(threadIdx.x);
  const bool counts = own < count && length[own] > 0.0;
  const int positive = __syncthreads_count(counts);
  if (positive == 0 && own == 0) *scale = 1.0;
  if (!counts) return;
  int before = 0;
  for (int j = 0; j < count; ++j)
    before += length[j] > 0.0 && (length[j] < length[own] ||
                                  (length[j] == length[own] && j < own));
  if (before != positive / 2) return;
  const int e = typical - exponent_of(length[own]);
  *scale = two_to(max(-kMostScale, min(e, kMostScale)));
}

/// Computes unit_rounding() of core/contract/centred.hpp for a row of length 1,
/// by a warp.
__device__ inline UnitRounding unit_rounding_by_warp(const double* z,
                                                     std::int64_t padded) {
  constexpr unsigned whole_warp = 0xffffffffu;
  constexpr int at_once = kWarp / kLanes;  // entries of the sum in a lane
  const int own = static_cast<int>(threadIdx.x) % kWarp;
  double lane_sum = 0.0, half_ulps = 0.0;
  LongSum squares;
  for (std::int64_t first = 0; first < padded; first += kWarp) {
    const double x = first + own < padded ? z[first + own] : 0.0;
    squares.add_square(x);
    double sum = x * x;
    for (int before = kLanes; before < kWarp; before *= 2) {
      const double other = __shfl_up_sync(whole_warp, sum, before);
      if (own >= before) sum += other;
    }
    sum += lane_sum;
    if (x != 0.0) half_ulps += half_ulp_of_sum(sum);
    lane_sum =
        __shfl_sync(whole_warp, sum, (at_once - 1) * kLanes + own % kLanes);
  }
  for (int gap = kLanes / 2; gap > 0; gap /= 2) {
    lane_sum += __shfl_xor_sync(whole_warp, lane_sum, gap);
    if (own < gap)
      half_ulps += gap == 1 ? kLastHalfUlp : half_ulp_of_sum(lane_sum);
  }
  for (int gap = kWarp / 2; gap > 0; gap /= 2) {
    const double sum = __shfl_xor_sync(whole_warp, squares.sum, gap);
    const double rest = __shfl_xor_sync(whole_warp, squares.rest, gap);
    squares.add(sum);
    squares.rest += rest;
  }
  // Returns the first thread's result, since those of others may differ in
  // their last digits.
  return unit_rounding(squares, warp_sum(half_ulps), padded);
}

struct RoundRaw {
  PreparedRows from;
  std::int64_t count;
  const std::int32_t* slots;
  RawForm form;
  RawRule rule;  ///< without the scale, which the form has
  RawRows to;
};

// Rounds rows. One warp handles a row. In and out: see RoundRaw. Grid: x over
// rows. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads) round_raw_rows(const RoundRaw raw) {
  const PreparedRows& from = raw.from;
  const std::int64_t row = warp_number();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= raw.count) return;
  const std::int64_t slot = raw.slots[row];
  if (slot < 0) return;
  RawRule rule = raw.rule;
  rule.scale = *raw.form.scale;
  float factor = 1.0f;
  if (rule.sum == RawSum::product) {
    double largest = 0.0;
    for (std::int64_t f = lane; f < from.padded; f += kWarp)
      largest = fmax(largest, fabs(from.rows[row * from.padded + f]));
    const int e = factor_exponent(rule.scale, warp_largest(largest));
    factor = static_cast<float>(two_to(e));
    rule.scale = two_to(exponent_of(rule.scale) - e);
  }
  const std::int64_t parts_at = rule.depth - kNormFeatures;
  const double by = to_row(from, row, rule.sum);
  const auto centred = [&](std::int64_t f) {
    return f < from.padded
               ? (from.rows[row * from.padded + f] * by - raw.form.centre[f]) *
                     rule.scale
               : 0.0;
  };
  // Multiplies by two factors, as the first, a power of two, may be tiny.
  double to_one = 1.0, to_ball = 1.0;
  const auto entry = [&](std::int64_t f) {
    return centred(f) * to_one * to_ball;
  };
  const auto sums = [&] {
    RawTerms terms;
    for (std::int64_t f = lane; f < parts_at; f += kWarp) {
      const double c = entry(f);
      const double x = static_cast<double>(__half2float(__double2half(c)));
      const double lost = c - x;
      terms.whole = fma(c, c, terms.whole);
      terms.halves = fma(x, x, terms.halves);
      terms.rounding = fma(lost, lost, terms.rounding);
    }
    return RawTerms{warp_sum(terms.whole), warp_sum(terms.halves),
                    warp_sum(terms.rounding)};
  };
  RawTerms terms = sums();
  const bool cut = beyond_ball(rule, terms);
  if (cut) {
    double largest = 0.0;
    for (std::int64_t f = lane; f < parts_at; f += kWarp)
      largest = fmax(largest, fabs(centred(f)));
    largest = warp_largest(largest);
    to_one = two_to(-exponent_of(largest));
    to_ball = kLongestBall / sqrt(sums().whole);
    terms = sums();
  }
  if (rule.sum == RawSum::near_rows)
    terms.unit =
        from.sums[row] > 0.0
            ? rounding_of_ranks(from.padded)
            : unit_rounding_by_warp(from.rows + row * from.padded, from.padded);
  const RawBounds bounds = raw_bounds(rule, terms, cut);

  for (std::int64_t f = lane; f < parts_at; f += kWarp) {
    const __half x = __double2half(bounds.wild ? 0.0 : entry(f));
    *raw.to.rows.at(slot, f) = x;
    *raw.to.columns.at(slot, f) = x;
  }
  if (lane > 0) return;
  for (int part = 0; part < kNormParts; ++part) {
    // Both numbers are halves already, so the conversion is exact.
    const __half h = __double2half(bounds.norm.part[part]);
    const __half one = __double2half(part_unit(part));
    *raw.to.rows.at(slot, parts_at + part) = __hneg(h);
    *raw.to.columns.at(slot, parts_at + part) = one;
    *raw.to.rows.at(slot, parts_at + kNormParts + part) = one;
    *raw.to.columns.at(slot, parts_at + kNormParts + part) = __hneg(h);
  }
  const bool infinite = bounds.wild && rule.sum == RawSum::product;
  raw.to.factor[slot] = infinite ? HUGE_VALF : factor;
  raw.to.slack[slot] = bounds.slack;
}

}  // namespace

void start_raw_form(const PreparedRows& sample, std::int64_t count,
                    const RawForm& to, cudaStream_t stream) {
  const int size =
      static_cast<int>(std::min<std::int64_t>(count, kCentreSample));
  const bool products = to.sum == RawSum::product;
  if (products) {
    CUDA_CHECK(cudaMemsetAsync(
        to.centre, 0, static_cast<std::size_t>(sample.padded) * sizeof(double),
        stream));
  } else {
    find_centre<<<static_cast<unsigned>(sample.padded), kCentreSample, 0,
                  stream>>>(sample, size, to.sum, to.centre);
    CUDA_CHECK(cudaGetLastError());
  }
  find_scale<<<1, kThreads, 0, stream>>>(sample, size, to.sum, to.centre,
                                         kTypicalExponent, to.scale);
  CUDA_CHECK(cudaGetLastError());
}

// Halves have an error of about 2^-12 of two rows' lengths. If centring makes
// rows eight times shorter, distances that are a 64th of their maximum have a
// 16th of the error. It costs kNormFeatures additional features.
bool centring_pays(double scale) {
  constexpr int shorter = 3;
  return scale > two_to(kTypicalExponent + shorter);
}

void start_raw_rows(const PreparedRows& from, std::int64_t count,
                    const std::int32_t* slots, const RawForm& form,
                    PowerOfTwo undo, const RawRows& to, cudaStream_t stream) {
  RoundRaw raw;
  raw.from = from;
  raw.count = count;
  raw.slots = slots;
  raw.form = form;
  raw.rule.depth = to.rows.depth;
  raw.rule.padded = from.padded;
  raw.rule.sum = form.sum;
  if (form.sum == RawSum::near_rows) {
    raw.rule.contract = rounding_of_near_rows(from.padded);
  } else {
    raw.rule.contract = rounding_of_sums(from.padded) * 2 + 0x1p-47;
    raw.rule.gap = 0x1p-1072 / undo.first / undo.second;
  }
  raw.to = to;
  round_raw_rows<<<blocks_of_warps(count), kThreads, 0, stream>>>(raw);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
