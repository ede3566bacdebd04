#pragma once

// The filter for rows of 0 and 1: tensor cores count the common bits of two
// rows. A row's bits occupy the memory of a row's halves, 16 in place of one,
// so that the same kernels copy and multiply them. bit_filter.cu has the filter
// and its rows, bit_bound.hpp their bounds, half_pairs.cu the pairs. Small
// whole numbers become thermometer codes (core/base/small_numbers.hpp), whose
// common bits are sums of minima: code_filter.cu. Rows of length 1 with two
// values each (rows of 0 and 1 under correlations and cosine):
// two_value_filter.cu. Counts of alleles: table_filter.cu.

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
std::unique_ptr<PairFilter> make_table_filter(const MetricEntry& metric,
                                              const RowsInForm& rows);

}  // namespace cuda
}  // namespace fsknn
