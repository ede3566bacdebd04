#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/filter/byte_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

// byte_bound.hpp proves the bound.

constexpr int kByteThreads = 128;

/// Sums first over each warp, then over all, in a fixed order.
struct BlockTerms {
  double of_warp[3][kByteThreads / kWarp];
};

/// Copies a prepared row of length 1 into shared memory and rotates it, by the
/// block.
__device__ inline void rotate_row(const PreparedRows& from, std::int64_t row,
                                  const Rotation& rotation, double* rotated) {
  const int thread = static_cast<int>(threadIdx.x);
  const double to_one = from.to_length_one(row);
  for (std::int64_t f = thread; f < rotation.size; f += kByteThreads)
    rotated[f] =
        f < from.padded ? from.rows[row * from.padded + f] * to_one : 0.0;
  __syncthreads();
  turn(rotation, rotated, thread, kByteThreads, [] { __syncthreads(); });
}

// Rounds rows to bytes. In: prepared rows; slots [count]. In and out: see
// ByteForms. Grid: one block a row. Block: kByteThreads. Shared: a rotated row,
// dynamic.
__global__ void __launch_bounds__(kByteThreads)
    round_to_bytes(const PreparedRows from, const std::int32_t* slots,
                   const ByteForms to) {
  extern __shared__ double rotated[];
  __shared__ BlockTerms shared;
  const std::int64_t slot = slots[blockIdx.x];
  if (slot < 0) return;
  const ByteRule& rule = to.rule;
  const int thread = static_cast<int>(threadIdx.x);
  rotate_row(from, blockIdx.x, rule.rotation, rotated);
  ByteTerms terms;
  for (std::int64_t f = thread; f < rule.rotation.size; f += kByteThreads) {
    const double y = rotated[f];
    const double q = byte_of(y, rule.step);
    const double lost = y - q * rule.step;
    terms.whole = fma(y, y, terms.whole);
    terms.bytes = fma(q, q, terms.bytes);
    terms.rounding = fma(lost, lost, terms.rounding);
  }
  terms = {warp_sum(terms.whole), warp_sum(terms.bytes),
           warp_sum(terms.rounding)};
  if (thread % kWarp == 0) {
    shared.of_warp[0][thread / kWarp] = terms.whole;
    shared.of_warp[1][thread / kWarp] = terms.bytes;
    shared.of_warp[2][thread / kWarp] = terms.rounding;
  }
  __syncthreads();
  terms = {};
  for (int w = 0; w < kByteThreads / kWarp; ++w) {
    terms.whole += shared.of_warp[0][w];
    terms.bytes += shared.of_warp[1][w];
    terms.rounding += shared.of_warp[2][w];
  }
  const ByteBounds bounds = byte_bounds(rule, terms);
  const bool magnitude = to.sign == Sign::absolute;

  for (std::int64_t f = thread; f < rule.rotation.size; f += kByteThreads) {
    const std::int8_t q = static_cast<std::int8_t>(
        bounds.wild && !magnitude ? 0 : byte_of(rotated[f], rule.step));
    *to.rows.at(slot, f) = q;
    *to.columns.at(slot, f) = q;
  }
  // For magnitudes the products do not include the error.
  const int sign = magnitude ? 0 : to.sign == Sign::negative ? -1 : 1;
  for (std::int64_t p = thread; p < rule.parts; p += kByteThreads) {
    const std::int8_t part =
        static_cast<std::int8_t>(sign * rule.part(bounds.held(), p));
    const std::int8_t unit = static_cast<std::int8_t>(rule.part_unit(p));
    const std::int64_t first = rule.rotation.size + p;
    *to.rows.at(slot, first) = part;
    *to.columns.at(slot, first) = unit;
    *to.rows.at(slot, first + rule.parts) = unit;
    *to.columns.at(slot, first + rule.parts) = part;
  }
  if (thread > 0) return;
  to.there[slot] = 1.0f;
  to.slack[slot] = bounds.slack;
  // Non-negative numbers order as their bits do.
  atomicMax(
      reinterpret_cast<unsigned long long*>(to.largest_share),
      static_cast<unsigned long long>(__double_as_longlong(bounds.share)));
}

// Grid: one block a sampled row. Block: kByteThreads. Shared: a rotated row,
// dynamic.
__global__ void __launch_bounds__(kByteThreads)
    find_largest(const PreparedRows sample, const Rotation rotation,
                 double* largest_of) {
  extern __shared__ double rotated[];
  __shared__ double of_warp[kByteThreads / kWarp];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  rotate_row(sample, blockIdx.x, rotation, rotated);
  double largest = 0.0;
  for (std::int64_t f = thread; f < rotation.size; f += kByteThreads)
    largest = fmax(largest, fabs(rotated[f]));
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, gap));
  if (lane == 0) of_warp[thread / kWarp] = largest;
  __syncthreads();
  if (thread > 0) return;
  for (int w = 1; w < kByteThreads / kWarp; ++w)
    largest = fmax(largest, of_warp[w]);
  largest_of[blockIdx.x] = largest;
}

/// The number of points that a warp multiplies with a row, one after the other.
constexpr std::int64_t kPointsAWarp = 16;
constexpr std::int64_t kPointsABlock = kPointsAWarp * (kByteThreads / kWarp);

// Grid: x over kPointsABlock points, y over rows. Block: kByteThreads. Shared:
// none.
__global__ void __launch_bounds__(kByteThreads)
    multiply_sample(const PreparedRows sample, std::int64_t points,
                    double* products) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  const std::int64_t row = blockIdx.y;
  const std::int64_t first =
      blockIdx.x * kPointsABlock + thread / kWarp * kPointsAWarp;
  for (std::int64_t point = first; point < min(first + kPointsAWarp, points);
       ++point) {
    double sum = 0.0;
    for (std::int64_t f = lane; f < sample.padded; f += kWarp)
      sum = fma(sample.rows[row * sample.padded + f],
                sample.rows[point * sample.padded + f], sum);
    sum = warp_sum(sum);
    if (lane == 0)
      products[row * points + point] =
          unit_similarity(sum, sample.sums[row], sample.sums[point]);
  }
}

/// Returns the bytes of shared memory for a rotated row.
template <class Kernel>
std::size_t rotated_bytes(Kernel kernel, const Rotation& rotation) {
  const int bytes = static_cast<int>(rotation.size * 8);
  CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  return static_cast<std::size_t>(bytes);
}

}  // namespace

void start_largest_entries(const PreparedRows& sample, std::int64_t rows,
                           const Rotation& rotation, double* largest,
                           cudaStream_t stream) {
  find_largest<<<static_cast<unsigned>(rows), kByteThreads,
                 rotated_bytes(find_largest, rotation), stream>>>(
      sample, rotation, largest);
  CUDA_CHECK(cudaGetLastError());
}

void start_sample_products(const PreparedRows& sample, std::int64_t rows,
                           std::int64_t points, double* products,
                           cudaStream_t stream) {
  const dim3 grid(
      static_cast<unsigned>((points + kPointsABlock - 1) / kPointsABlock),
      static_cast<unsigned>(rows));
  multiply_sample<<<grid, kByteThreads, 0, stream>>>(sample, points, products);
  CUDA_CHECK(cudaGetLastError());
}

void start_byte_rows(const PreparedRows& from, std::int64_t count,
                     const std::int32_t* slots, const ByteForms& to,
                     cudaStream_t stream) {
  if (count == 0) return;
  round_to_bytes<<<static_cast<unsigned>(count), kByteThreads,
                   rotated_bytes(round_to_bytes, to.rule.rotation), stream>>>(
      from, slots, to);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
