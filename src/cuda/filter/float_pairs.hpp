#pragma once

// Stage "filter" for metrics that no matrix product gives: Manhattan, Chebyshev
// and Proportional Similarity by a matrix product's tiles whose multiply is
// another operation ("mGEMM", Joubert et al. 2018), against the thresholds of
// both of a pair's rows. Here in float32: runs on any device. float_filter.cu
// has the filter itself and its rows, elementwise_pairs.cuh the pairs.

#include "cuda/filter/elementwise_tile.hpp"

namespace fsknn {
namespace cuda {

/// Pairs of rows of floats.
void start_float_pairs(FilterKind kind, const ElementwiseWork& work,
                       cudaStream_t stream);

std::unique_ptr<PairFilter> make_elementwise_filter(const MetricEntry& metric,
                                                    const RowsInForm& rows);

}  // namespace cuda
}  // namespace fsknn
