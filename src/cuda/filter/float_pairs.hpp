#pragma once

// The stage "filter" for metrics that no matrix product computes: Manhattan,
// Chebyshev and Proportional Similarity. It uses the tiles of a matrix product
// with another operation as the multiply ("mGEMM", Joubert et al. 2018), and
// the thresholds of both rows of a pair. Here in float32, for any device.
// float_filter.cu has the filter itself and its rows, elementwise_pairs.cuh the
// pairs.

#include "cuda/filter/elementwise_tile.hpp"

namespace fsknn {
namespace cuda {

/// Starts the filter on pairs of rows of floats.
void start_float_pairs(FilterKind kind, const ElementwiseWork& work,
                       cudaStream_t stream);

std::unique_ptr<PairFilter> make_elementwise_filter(const MetricEntry& metric,
                                                    const RowsInForm& rows);

}  // namespace cuda
}  // namespace fsknn
