#pragma once

// The code that all makers of rows for filters by differences share.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/filter/float_bound.hpp"
#include "cuda/filter/pair_filter.hpp"

namespace fsknn {
namespace cuda {

__device__ inline RowTerms terms_of_warp(const ElementwiseRule& rule,
                                         RowTerms terms) {
  for (int gap = 16; gap > 0; gap /= 2)
    add_terms(rule, terms,
              {__shfl_xor_sync(0xffffffffu, terms.size, gap),
               __shfl_xor_sync(0xffffffffu, terms.rounding, gap),
               __shfl_xor_sync(0xffffffffu, terms.clamped, gap)});
  return terms;
}

/// Copies of some prepared rows on the host, from which centres and unit are
/// computed. Waits for the stream.
struct SampledRows {
  SampledRows(const PreparedRows& from, std::int64_t of, const Stream& stream)
      : count(std::min<std::int64_t>(of, 256)),
        rows(static_cast<std::size_t>(count * from.padded)) {
    if (count == 0) return;
    const std::size_t bytes =
        static_cast<std::size_t>(from.padded) * sizeof(double);
    // The rows that one copy takes must not be farther apart than this.
    const std::size_t apart = std::min(static_cast<std::size_t>(of / count),
                                       (std::size_t{1} << 30) / bytes + 1);
    CUDA_CHECK(cudaMemcpy2DAsync(rows.data(), bytes, from.rows, bytes * apart,
                                 bytes, static_cast<std::size_t>(count),
                                 cudaMemcpyDeviceToHost, stream.get()));
    stream.wait();
  }
  const std::int64_t count;
  std::vector<double> rows;  ///< [count x padded]
};

}  // namespace cuda
}  // namespace fsknn
