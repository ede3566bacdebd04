#pragma once

// Whether a filter in 8 bits finds a search's lists sooner than a wider one:
// half of the work or less, and a wider bound, which leaves more pairs to the
// exact step. A sample says how many. Answers are the same.

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Whether Product::byte_dot is faster than Product::dot.
bool multiplies_bytes(const Kernels& kernels);

/// Whether Product::byte_difference is faster than Product::smaller_sum.
bool subtracts_bytes(const Kernels& kernels);

/// bytes: in the form of 8 bits. queries: null when the points are the queries.
/// wider: the form that there is otherwise.
bool bytes_pay(const MetricEntry& metric, const DistanceRule& rule,
               const Kernels& kernels, const PreparedPoints& points,
               const PreparedPoints* queries, const FilterUse& use,
               const FilterScale& bytes, const FilterForm& wider);

}  // namespace cpu
}  // namespace fsknn
