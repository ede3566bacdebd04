#pragma once

// A sample of the points, by which a filter's form and scale are chosen.

#include <cstdint>

#include "core/base/buffer.hpp"
#include "core/rows/prepared.hpp"

namespace fsknn {
namespace cpu {

/// Of points whose middle is asked for.
constexpr std::int64_t kMiddleSample = 63;

/// A sample of `count` points is spread evenly over their places.
inline Place sampled(const PreparedPoints& points, std::int64_t i,
                     std::int64_t count) {
  return {i * points.size() / count};
}

/// [count x padded], as of FilterReader.
Buffer<double> sample_rows(const PreparedPoints& points, std::int64_t count);

/// Column medians of some points; [padded]. One huge entry moves no median.
Buffer<double> column_medians(const PreparedPoints& points);

/// The median length of some points beside a centre, of those that are not
/// there; 0 where all are.
double median_length(const PreparedPoints& points,
                     const Buffer<double>& centre);

}  // namespace cpu
}  // namespace fsknn
