#pragma once

// A sample of the points, from which a filter's form and scale are chosen.

#include <cstdint>

#include "core/base/buffer.hpp"
#include "core/rows/prepared.hpp"

namespace fsknn {
namespace cpu {

/// The number of sampled points for a median.
constexpr std::int64_t kMiddleSample = 63;

/// A sample of `count` points is spread evenly over their places.
inline Place sampled(const PreparedPoints& points, std::int64_t i,
                     std::int64_t count) {
  return {i * points.size() / count};
}

/// [count x padded], as FilterReader gives them.
Buffer<double> sample_rows(const PreparedPoints& points, std::int64_t count);

/// Column medians of a sample; [padded]. A median ignores single huge entries.
Buffer<double> column_medians(const PreparedPoints& points);

/// The median length, after centring, of sampled points that differ from the
/// centre; 0 if none does.
double median_length(const PreparedPoints& points,
                     const Buffer<double>& centre);

}  // namespace cpu
}  // namespace fsknn
