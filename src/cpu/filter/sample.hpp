#pragma once

// A sample of the points, by which a filter's form and scale are chosen.

#include <cstdint>

#include "core/buffer.hpp"
#include "core/prepared.hpp"

namespace fsknn {
namespace cpu {

/// A sample of `count` points is spread evenly over their places.
inline Place sampled(const PreparedPoints& points, std::int64_t i,
                     std::int64_t count) {
  return {i * points.size() / count};
}

/// [count x padded]
Buffer<double> sample_rows(const PreparedPoints& points, std::int64_t count);

/// Column medians of some points; [padded]. One huge entry moves no median.
Buffer<double> column_medians(const PreparedPoints& points);

}  // namespace cpu
}  // namespace fsknn
