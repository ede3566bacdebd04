#pragma once

// The parts of which the forms in this folder consist: constants, the packing
// of a row into a panel, and bounds that two forms share.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/base/buffer.hpp"
#include "core/contract/metric.hpp"
#include "cpu/filter/form.hpp"
#include "cpu/kernels/kernels_includes.hpp"

namespace fsknn {
namespace cpu {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();
// The bits of these floats.
constexpr std::int32_t kInfinityBits = 0x7f800000;
constexpr std::int32_t kMinusInfinityBits =
    std::numeric_limits<std::int32_t>::min() + kInfinityBits;
constexpr std::int32_t kMinusOneBits =
    std::numeric_limits<std::int32_t>::min() + 0x3f800000;

constexpr double kLargestWhole = 32767.0;
constexpr double kLargestByte = 127.0;
// Rows of whole numbers of at most this length have products below 2^31.
constexpr double kLargestNorm = 46340.0;
// Differences of two whole numbers within this fit in 16 bits.
constexpr double kLargestHalf = 16383.0;
// Sums of whole numbers over all features stay within 2^29, so that no test
// overflows 32 bits.
constexpr std::int32_t kLargestSum = 1 << 29;
// The unit of products of raw rows. The matrix's largest entry is in [2^480,
// 2^481), which is below 2^41 units, and the length of a row is below 2^57
// units.
constexpr double kProductUnit = 0x1p440;
// Rows of bits have at most this many features, so that their counts, and twice
// these, are exact floats.
constexpr std::int32_t kMostBits = 1 << 23;
// The relative rounding error of the tests' own float arithmetic; see each
// test.
constexpr double kFloatSlack = 4e-6;

/// Rounds to the nearest whole number, |x| < 2^51, by one addition and one
/// subtraction, so that compilers vectorise its loops.
inline double whole(double x) {
  constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
  return (x + shift) - shift;
}

inline float float_up(double x) {
  if (x > static_cast<double>(std::numeric_limits<float>::max()))
    return kFloatInfinity;
  if (x < static_cast<double>(std::numeric_limits<float>::lowest()))
    return std::numeric_limits<float>::lowest();
  const float y = static_cast<float>(x);
  return y < x ? std::nextafter(y, kFloatInfinity) : y;
}
inline float float_down(double x) { return -float_up(-x); }

/// Packs one row into a panel.
class RowPacker {
 public:
  RowPacker(const FilterScale& common, std::int64_t num_padded)
      : scale(common), padded(num_padded), value(num_padded), step(num_padded) {
    clear();
  }

  const FilterScale& scale;
  const std::int64_t padded;
  const double* row = nullptr;  ///< the prepared row
  Buffer<double> value;
  Buffer<std::int32_t> step;  ///< the row in the panel's form

  void clear() { std::fill_n(step.data(), padded, 0); }

  void load(const double* x) {
    row = x;
    if (scale.centre.size() == 0) {
      std::memcpy(value.data(), x, static_cast<std::size_t>(padded) * 8);
      return;
    }
    for (std::int64_t f = 0; f < padded; ++f) value[f] = x[f] - scale.centre[f];
  }
  /// Rounds value * inverse to whole numbers q within +-largest and packs them
  /// from step `first` on: two of 16 bits in a step, or four of 8. Each sum has
  /// four parallel parts.
  struct Residual {
    double squares = 0.0;  ///< sum (value * inverse - q)^2
    double sizes = 0.0;    ///< sum |value * inverse - q|
    double beyond = 0.0;   ///< the part of `sizes` beyond rounding; for bytes
    double total = 0.0;    ///< sum q
  };
  template <int kBits = 16>
  Residual quantise(double inverse, double largest, std::int64_t first = 0) {
    Residual r;
    double squares[4] = {0, 0, 0, 0}, sizes[4] = {0, 0, 0, 0};
    double total[4] = {0, 0, 0, 0}, beyond[4] = {0, 0, 0, 0};
    for (std::int64_t f = 0; f < padded; f += 4) {
      std::uint32_t q[4];
      for (int l = 0; l < 4; ++l) {
        const double y = value[f + l] * inverse;
        // The value is within range except for the last bit of the division.
        const double w = whole(std::min(std::max(y, -largest), largest));
        squares[l] += (y - w) * (y - w);
        sizes[l] += std::fabs(y - w);
        if (kBits == 8) beyond[l] += std::max(std::fabs(y - w) - 0.5, 0.0);
        total[l] += w;
        q[l] = static_cast<std::uint32_t>(static_cast<std::int32_t>(w)) &
               ((1u << kBits) - 1);
      }
      if (kBits == 8) {
        step[first + f / 4] = static_cast<std::int32_t>(
            q[0] | q[1] << 8 | q[2] << 16 | q[3] << 24);
      } else {
        step[first + f / 2] = static_cast<std::int32_t>(q[0] | q[1] << 16);
        step[first + f / 2 + 1] = static_cast<std::int32_t>(q[2] | q[3] << 16);
      }
    }
    for (int l = 0; l < 4; ++l) {
      r.squares += squares[l];
      r.sizes += sizes[l];
      r.beyond += beyond[l];
      r.total += total[l];
    }
    return r;
  }

  /// Rounds value * inverse * parts to whole numbers within +-largest, at `to`.
  /// Returns the sum of their absolute errors.
  double quantise_words(double inverse, double parts, double largest,
                        std::int16_t* to) const {
    double sizes[4] = {0, 0, 0, 0};
    for (std::int64_t f = 0; f < padded; f += 4) {
      for (int l = 0; l < 4; ++l) {
        const double y = value[f + l] * inverse * parts;
        const double w = whole(std::min(std::max(y, -largest), largest));
        sizes[l] += std::fabs(y - w);
        to[f + l] = static_cast<std::int16_t>(static_cast<std::int32_t>(w));
      }
    }
    return sizes[0] + sizes[1] + sizes[2] + sizes[3];
  }
};

/// The factor that scales a row of that length to whole numbers: none exceeds
/// `largest`, and the row's length is at most kLargestNorm. Rounding adds at
/// most half the root of the number of features.
inline float factor_of(double norm, double largest_value, double largest,
                       std::int64_t padded) {
  const double room =
      kLargestNorm - 0.5 * std::sqrt(static_cast<double>(padded)) - 1.0;
  return float_up(std::max(norm / room, largest_value / largest));
}

// A bound, in units, on the rounding of a threshold next to 0.
constexpr double kTinyReach = 1e-30;

/// FilterForm::reach for thresholds that are floats: in units, a squared
/// distance, or a least overlap.
inline double reach_in_units(const FilterScale& scale, std::int32_t threshold) {
  const double t = static_cast<double>(as_float(threshold));
  if (t < 0.0) return -kInfinity;
  // The largest float stands for infinity where infinity would give NaN.
  return t < static_cast<double>(std::numeric_limits<float>::max())
             ? (t + kTinyReach) * scale.unit
             : kInfinity;
}
inline double reach_of_square(const FilterScale& scale,
                              std::int32_t threshold) {
  const double t = static_cast<double>(as_float(threshold));
  return t < 0.0 ? -kInfinity : std::sqrt(t) * scale.unit;
}
inline double reach_of_overlap(const FilterScale&, std::int32_t threshold) {
  return 1.0 - static_cast<double>(as_float(threshold));
}

/// FilterForm::reach of rows of length 1 whose distance is at most `distance`.
inline double reach_of_unit_rows(double distance) {
  return distance < 0.0 ? -kInfinity : std::sqrt(2.0 * distance);
}

/// For forms whose numbers are complete when a row is packed.
inline void nothing_waits(double, FilterRows&) {}

// Overlaps, in whole numbers and in floats.

inline void upper_as_lower(double, FilterRows& rows) {
  std::copy_n(rows.first.data(), rows.num_places, rows.first_upper.data());
  std::copy_n(rows.second.data(), rows.num_places, rows.second_upper.data());
}

inline std::int32_t keep_overlap_up_to(const FilterTerms& terms,
                                       double distance) {
  if (!(distance < 1.0)) return terms.scale.form->keep_all;
  // No distance is below 0, and least_overlap(-infinity) may be NaN.
  const double least = terms.metric.least_overlap(std::max(distance, 0.0));
  return as_bits(float_down(least - kFloatSlack - terms.scale.slack));
}

inline double upper_of_overlap(const FilterTerms& terms, double key,
                               const Side&) {
  const double overlap = std::max(-key - kFloatSlack - terms.scale.slack, 0.0);
  return terms.metric.finish(0.5 * overlap, 0.5, 0.5);
}

}  // namespace cpu
}  // namespace fsknn
