#pragma once

// The filter by differences of whole numbers of 8 or 16 bits. whole_filter.cu
// has the filter itself and its rows, elementwise_pairs.cuh the pairs,
// whole_bound.hpp the bound.

#include "cuda/filter/elementwise_tile.hpp"

namespace fsknn {
namespace cuda {

std::unique_ptr<PairFilter> make_whole_filter(const MetricEntry& metric,
                                              const RowsInForm& rows);

/// Pairs of rows of bytes: their differences' sums.
void start_byte_differences(FilterKind kind, const ElementwiseWork& work,
                            cudaStream_t stream);

/// Of numbers of 16 bits; and the largest ones.
void start_word_differences(FilterKind kind, const ElementwiseWork& work,
                            cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
