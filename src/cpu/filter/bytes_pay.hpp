#pragma once

// Decides whether a filter in 8 bits is faster for lists than a wider one. It
// takes at most half of the work, but its wider bound leaves more pairs to the
// exact step. A sample estimates their number. The answers are the same.

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// Whether Product::byte_dot is faster than Product::dot.
bool multiplies_bytes(const Kernels& kernels);

/// Whether Product::byte_difference is faster than Product::smaller_sum.
bool subtracts_bytes(const Kernels& kernels);

/// bytes: in the form of 8 bits. queries is null if the points are the queries.
/// wider: the alternative form.
bool bytes_pay(const MetricEntry& metric, const DistanceRule& rule,
               const Kernels& kernels, const PreparedPoints& points,
               const PreparedPoints* queries, const FilterUse& use,
               const FilterScale& bytes, const FilterForm& wider);

}  // namespace cpu
}  // namespace fsknn
