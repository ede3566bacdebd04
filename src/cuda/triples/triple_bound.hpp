#pragma once

// The bounds of sums of largest values that are made of halves: the vignette
// "method" has the proof. Plain C++.
//
// Rows are multiplied by a power of two that brings the largest value of all to
// [2^14, 2^15) and rounded towards 0, so that a largest value of halves is the
// half of the largest value: less than it by no more than 2^-10 of itself, or
// 2^-24 where halves are subnormal. Sums run on tensor cores, as
// half_unit_rows.cu assumes them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/arithmetic.hpp"
#include "core/triples.hpp"
#include "cuda/filter/half_bound.hpp"
#include "cuda/plan/triple_plan.hpp"

namespace fsknn {
namespace cuda {

/// A sum of halves that are not negative is off by at most this part of itself,
/// by tensor cores or by the warp that sums a pair's (32 sums of every 32nd
/// eight features each, joined).
inline double error_of_triple_sums(std::int64_t depth) {
  return std::max(sums_error(depth),
                  static_cast<double>(depth / 32 + 24) * 0x1p-23);
}

/// The power of two that rows are multiplied by. largest: of all values.
inline PowerOfTwo scale_of_triples(double largest) {
  return power_of_two(largest > 0.0 ? 14 - exponent_of(largest) : 0);
}

struct TripleSumBound {
  TripleSumBound(std::int64_t depth, PowerOfTwo scale)
      : scale_(scale), error_(error_of_triple_sums(depth)), depth_(depth) {}

  double scaled(double sum) const {
    return (sum * scale_.first) * scale_.second;
  }
  /// What a sum of halves is at most where the true one, before scaling, is
  /// `sum`: rounded twice on the way.
  double most_of(double sum) const {
    if (sum < kCoarse) return std::numeric_limits<double>::infinity();
    return scaled(sum) * ((1.0 + error_) * (1.0 + 0x1p-20));
  }
  /// The same as a float above.
  float float_most_of(double sum) const {
    const float most = static_cast<float>(most_of(sum));
    return std::nextafter(most, std::numeric_limits<float>::infinity());
  }
  /// The true sum, scaled, is between low() times a sum of halves and high()
  /// times it, and lost() more.
  double low() const { return (1.0 - error_) * (1.0 - 0x1p-20); }
  double high() const {
    if (error_ > 0.2) return std::numeric_limits<double>::infinity();
    return (1.0 + 0x1p-10 + 0x1p-18) * (1.0 + 1.25 * error_) * (1.0 + 0x1p-20);
  }
  /// A half loses 2^-24 at the most; the rest is for what tensor cores may cut
  /// off a small sum beside products of a large number with 0.
  double lost() const { return static_cast<double>(depth_) * 0x1p-21; }

  /// Of smaller totals the exact step's rounding to subnormal numbers may be
  /// coarse.
  static constexpr double kCoarse = 0x1p-1020;

 private:
  PowerOfTwo scale_;
  double error_;
  std::int64_t depth_;
};

}  // namespace cuda
}  // namespace fsknn
