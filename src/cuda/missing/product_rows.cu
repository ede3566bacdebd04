#include <cuda_fp16.h>

#include "core/contract/masked.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/missing/masked_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// A row's numbers, divided by its own length.
struct UnitRow {
  double mean, length;
  __device__ UnitRow(const double* x, const ProductRows& work, int lane) {
    double known = 0.0, sum = 0.0, square = 0.0;
    for (std::int64_t f = lane; f < work.num_features; f += 32)
      if (has_value(x[f])) {
        known += 1.0;
        sum += x[f];
      }
    mean = warp_sum(sum) / warp_sum(known);
    for (std::int64_t f = lane; f < work.num_features; f += 32)
      if (has_value(x[f])) square += (x[f] - mean) * (x[f] - mean);
    length = sqrt(warp_sum(square)) / kProductLength;
  }
  __device__ double operator()(double x, std::int64_t) const {
    // A row whose squares overflow becomes zeros, so that all its pairs pass.
    return length > 0.0 && length < HUGE_VAL ? (x - mean) / length : 0.0;
  }
};

/// A row's numbers minus the columns' centres, in the unit of all rows.
struct RawRow {
  const double* centre;
  PowerOfTwo by;
  __device__ RawRow(const double*, const ProductRows& work, int)
      : centre(work.centre), by(work.by) {}
  __device__ double operator()(double x, std::int64_t f) const {
    return ((x - centre[f]) * by.first) * by.second;
  }
};

// Makes the rows of the filter by products: a warp scales a row to its unit,
// rounds it to halves, and measures the rounding error. In and out: see
// ProductRows. Grid: any; block: 256. Shared: none.
template <class Row, bool kCorrelates>
__global__ void product_rows(const ProductRows work) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * 8;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
       i < work.count; i += step) {
    const double* x = work.rows + i * work.padded;
    __half* halves = work.halves + i * work.depth;
    const Row row(x, work, lane);
    ProductTerms terms;
    float known = 0.0f;
    bool fits = true;
    for (std::int64_t f = lane; f < work.depth; f += 32) {
      const bool there = f < work.num_features && has_value(x[f]);
      if (!there) {
        halves[f] = __ushort_as_half(0x7fffu);
        continue;
      }
      const double v = row(x[f], f);
      fits = fits && fabs(v) <= kLargestFactor;
      const __half rounded = __double2half(v);
      halves[f] = rounded;
      const double h = static_cast<double>(__half2float(rounded));
      const double s =
          static_cast<double>(__half2float(__hmul_rn(rounded, rounded)));
      known += 1.0f;
      terms.whole += v * v;
      terms.halves += h * h;
      terms.squares += s;
      terms.rounding += (v - h) * (v - h);
      terms.square_rounding += fabs(h * h - s);
    }
    fits = __all_sync(0xffffffffu, fits);
    if (!fits)
      for (std::int64_t f = lane; f < work.depth; f += 32)
        if (f < work.num_features && has_value(x[f]))
          halves[f] = __ushort_as_half(0);
    terms.whole = warp_sum(terms.whole);
    terms.halves = warp_sum(terms.halves);
    terms.squares = warp_sum(terms.squares);
    terms.rounding = warp_sum(terms.rounding);
    terms.square_rounding = warp_sum(terms.square_rounding);
    const double all = warp_sum(known);
    if (lane != 0) continue;
    const ProductBounds bounds =
        !fits ? wild_bounds()
              : (kCorrelates
                     ? correlation_bounds(terms, work.depth, work.contract)
                     : squared_difference_bounds(terms, work.depth));
    work.bounds[i] =
        make_float4(bounds.first, bounds.second, static_cast<float>(all), 0.0f);
  }
}

}  // namespace

void start_product_rows(const ProductRows& work, cudaStream_t stream) {
  if (work.centre == nullptr)
    product_rows<UnitRow, true><<<1024, 256, 0, stream>>>(work);
  else
    product_rows<RawRow, false><<<1024, 256, 0, stream>>>(work);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace fsknn
