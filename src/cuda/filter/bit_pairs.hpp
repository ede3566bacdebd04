#pragma once

// The filter for rows of 0 and 1: tensor cores count what two rows both have.
// A row's bits stand where a row's halves would, 16 in the place of one, and
// the kernels that copy and multiply halves do so with them. bit_filter.cu has
// the filter and its rows, bit_bound.hpp their bounds, half_pairs.cu the pairs.
// Small whole numbers are thermometer codes (core/base/small_numbers.hpp),
// whose common bits are sums of the smaller ones: code_filter.cu. Rows of
// length 1 of two values each, as those of 0 and 1 are under correlations and
// cosine: two_value_filter.cu.

#include <memory>

#include "core/contract/metric.hpp"
#include "cuda/filter/pair_filter.hpp"

namespace fsknn {
namespace cuda {

std::unique_ptr<PairFilter> make_bit_filter(const MetricEntry& metric,
                                            const RowsInForm& rows);
std::unique_ptr<PairFilter> make_code_filter(const MetricEntry& metric,
                                             const RowsInForm& rows);
std::unique_ptr<PairFilter> make_two_value_filter(const MetricEntry& metric,
                                                  const RowsInForm& rows);

}  // namespace cuda
}  // namespace fsknn
