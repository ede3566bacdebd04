#pragma once

// The error bounds of sums of maxima in halves, or in 16-bit whole numbers: the
// vignette "proofs" has the proof. Plain C++.
//
// Rows are multiplied by a power of two that brings the largest value of all to
// [2^14, 2^15), and rounded towards 0. The maximum of halves is then the half
// of the maximum. It is smaller than that by at most 2^-10 of itself, or 2^-24
// where halves are subnormal. Sums run on tensor cores, as half_unit_rows.cu
// assumes them.
//
// Whole numbers are the scaled values rounded down and capped to the range. The
// power of two brings the mean to at least [2^7, 2^8), and the largest to at
// least 2^15. A few of the largest are capped, which also preserves the order.
// Sums are exact, below 2^32, and rounded once, on conversion to floats.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/contract/scaling.hpp"
#include "core/search/triples.hpp"
#include "cuda/filter/half_bound.hpp"
#include "cuda/plan/triple_plan.hpp"

namespace fsknn {
namespace cuda {

/// Returns the largest relative error of a sum of non-negative halves.
/// Tensor cores compute the sum, or the warp that sums a pair: 32 sums of every
/// 32nd eight features each, added together.
inline double error_of_triple_sums(std::int64_t depth) {
  return std::max(sums_error(depth),
                  static_cast<double>(depth / 32 + 24) * 0x1p-23);
}

/// Returns the power of two by which rows are multiplied. largest, mean: of all
/// values.
inline PowerOfTwo scale_of_halves(double largest) {
  return power_of_two(largest > 0.0 ? 14 - exponent_of(largest) : 0);
}
inline PowerOfTwo scale_of_words(double largest, double mean) {
  if (!(largest > 0.0) || !(mean > 0.0)) return no_scaling();
  return power_of_two(
      std::max(15 - exponent_of(largest), 7 - exponent_of(mean)));
}

constexpr double kLargestWord = 65535.0;
/// The sum of this many of the largest word is below 2^32.
constexpr std::int64_t kMostWords = 65536;

struct TripleSumBound {
  TripleSumBound(TripleForm form, std::int64_t depth, PowerOfTwo scale)
      : scale_(scale) {
    if (form == TripleForm::words) {
      lost_ = std::numeric_limits<double>::infinity();
      return;
    }
    error_ = error_of_triple_sums(depth);
    lost_ = static_cast<double>(depth) * 0x1p-21;
  }

  double scaled(double sum) const {
    return (sum * scale_.first) * scale_.second;
  }
  /// Returns an upper bound of their sum where the true one, before scaling, is
  /// `sum`: it is rounded twice.
  double most_of(double sum) const {
    if (sum < kCoarse) return std::numeric_limits<double>::infinity();
    return scaled(sum) * ((1.0 + error_) * (1.0 + 0x1p-20));
  }
  /// Returns the same as a float, rounded up.
  float float_most_of(double sum) const {
    const float most = static_cast<float>(most_of(sum));
    return std::nextafter(most, std::numeric_limits<float>::infinity());
  }
  /// The true sum, scaled, is between low() times their sum, and high() times
  /// it plus lost().
  double low() const { return (1.0 - error_) * (1.0 - 0x1p-20); }
  double high() const {
    if (error_ > 0.2) return std::numeric_limits<double>::infinity();
    return (1.0 + 0x1p-10 + 0x1p-18) * (1.0 + 1.25 * error_) * (1.0 + 0x1p-20);
  }
  /// A half loses at most 2^-24. The rest covers the truncation by tensor cores
  /// of a small sum beside products of a large number with 0. Words, which may
  /// lose much to the cap, have no such bound.
  double lost() const { return lost_; }

  /// For smaller totals the exact step's rounding to subnormal numbers may be
  /// coarse.
  static constexpr double kCoarse = 0x1p-1020;

 private:
  PowerOfTwo scale_;
  double error_ = 0.0, lost_ = 0.0;
};

/// Returns whether whole numbers represent almost all rows well enough: in at
/// most one triple of 4,096 do all rows lose more than a 64th to rounding or
/// the cap. sums, cut: [count] of all rows, the latter scaled.
inline bool words_serve(const double* sums, const double* cut,
                        std::int64_t count, std::int64_t num_features,
                        PowerOfTwo scale) {
  if (num_features > kMostWords) return false;
  const TripleSumBound bound(TripleForm::words, num_features, scale);
  std::int64_t poor = 0;
  for (std::int64_t p = 0; p < count; ++p)
    poor += !(static_cast<double>(num_features) + cut[p] <=
              bound.scaled(sums[p]) * 0x1p-6);
  return 16 * poor <= count;
}

}  // namespace cuda
}  // namespace fsknn
