#pragma once

// Whether products in 8 bits find a search's lists sooner than in 16: a filter
// of half the work, whose wider bound leaves more pairs to the exact step. A
// sample says how many. Answers are the same.

#include "cpu/filter/form.hpp"

namespace fsknn {
namespace cpu {

/// A sample of `count` points is spread evenly over their places.
inline Place sampled(const PreparedPoints& points, std::int64_t i,
                     std::int64_t count) {
  return {i * points.size() / count};
}

/// Whether Product::byte_dot is faster than Product::dot.
bool multiplies_bytes(const Kernels& kernels);

/// bytes: in the form of 8 bits. k: 0: no lists are searched for. queries: null
/// when the points are the queries.
bool bytes_pay(const MetricEntry& metric, const DistanceRule& rule,
               const Kernels& kernels, const PreparedPoints& points,
               const PreparedPoints* queries, std::int64_t k,
               const FilterScale& bytes);

}  // namespace cpu
}  // namespace fsknn
