// Rows of length 1 with two values each, as rows of 0 and 1 have under
// correlations and cosine. One bit for each feature selects the value. Let a
// row have p features of the higher value and q of the lower, and let d be the
// difference of the two values. Let two rows share the higher value in c
// features. For centred rows the sum of their products is
//   d_i d_j c - b_i b_j,  b = d p / sqrt(p + q).
// Where the lower value is 0, so is b. The vignette "proofs" has the proof, and
// the proof of the slack.

#include "cpu/filter/two_values.hpp"

#include <atomic>

#include "core/base/pieces.hpp"
#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// Rows with a larger ratio of one value to the other are not packed: the bound
/// on their correlations is too wide.
constexpr double kMostRatio = 4096.0;

/// The two values of a row, if it has only two; padding is 0.
struct TwoValues {
  double low = 0.0, high = 0.0;
  std::int64_t lows = 0, highs = 0;

  TwoValues(const double* x, std::int64_t padded) {
    for (std::int64_t f = 0; f < padded; ++f) {
      high = x[f] > high ? x[f] : high;
      low = x[f] < low ? x[f] : low;
      highs += x[f] > 0.0;
      lows += x[f] < 0.0;
    }
  }
  double difference() const { return high - low; }
  double ratio() const {
    return lows > 0 ? static_cast<double>(highs) / static_cast<double>(lows)
                    : 0.0;
  }
  /// Whether the row has only these values, with length 1, and mean 0 if
  /// centred.
  bool holds(const double* x, std::int64_t num_features, bool centred) const {
    for (std::int64_t f = 0; f < num_features; ++f)
      if (x[f] != high && x[f] != low) return false;
    const double p = static_cast<double>(highs), q = static_cast<double>(lows);
    const double squares = p * (high * high) + q * (low * low);
    if (highs == 0 || !(std::fabs(squares - 1.0) <= 0x1p-30)) return false;
    if (!centred) return lows == 0;
    return highs + lows == num_features && lows > 0 &&
           std::fabs(p * high + q * low) <= 0x1p-30 && ratio() <= kMostRatio;
  }
};

/// first: d. second: b.
struct Similarity {
  static bool usable(const FilterScale&) { return true; }

  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double* error) {
    const TwoValues row(packer.value.data(), packer.padded);
    for (std::int64_t f = 0; f < packer.padded; f += 32) {
      const std::int64_t end = std::min<std::int64_t>(32, packer.padded - f);
      std::uint32_t bits = 0;
      for (std::int64_t b = 0; b < end; ++b)
        bits |= static_cast<std::uint32_t>(packer.value[f + b] > 0.0) << b;
      packer.step[f / 32] = static_cast<std::int32_t>(bits);
    }
    const double p = static_cast<double>(row.highs);
    const double b =
        row.lows > 0 ? row.difference() * p /
                           std::sqrt(static_cast<double>(row.highs + row.lows))
                     : 0.0;
    rows.first[place] = rows.first_upper[place] =
        as_bits(static_cast<float>(row.difference()));
    rows.second[place] = rows.second_upper[place] =
        as_bits(static_cast<float>(b));
    *error = std::max(*error, row.ratio());
  }

  // Let h = 2^-24, and let r be the largest ratio of a row. b_i b_j is at most
  // 1.01 r, with a relative error of 3.01 h. d_i d_j c is at most 1.01 + 1.01
  // r, with a relative error of 4.01 h. Their difference has a relative error
  // of h. 1 - s adds one more.
  static double slack(double ratio, std::int64_t padded) {
    return (9.0 * ratio + 10.0) * 0x1p-24 + rounding_of_sums(padded);
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double t = terms.rule.before_scaling(distance);
    return as_bits(float_down(1.0 - t - terms.scale.slack));
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side&) {
    return 1.0 + key + terms.scale.slack;
  }

  static constexpr FilterForm form(Test test) {
    return {test,
            Product::common_bits,
            FilterNumbers::bits,
            true,
            kMinusInfinityBits,
            kInfinityBits,
            &usable,
            &pack_row,
            &slack,
            &nothing_waits,
            &keep_up_to,
            nullptr,
            &upper_distance,
            nullptr};
  }
};

}  // namespace

const FilterForm kTwoValues = Similarity::form(Test::two_values);
const FilterForm kCentredTwoValues = Similarity::form(Test::two_values);
const FilterForm kCentredTwoValuesAbsolute =
    Similarity::form(Test::two_values_absolute);
const FilterForm kCentredTwoValuesNegative =
    Similarity::form(Test::two_values_negative);

bool holds_two_values(const PreparedPoints& points, bool centred,
                      int num_threads) {
  constexpr std::int64_t block_rows = 256;
  const std::int64_t n = points.size();
  std::atomic<bool> all{points.num_features < kMostBits};
  run_pieces((n + block_rows - 1) / block_rows, num_threads, {}, [&] {
    return [&, row = FilterReader(points)](std::int64_t block) mutable {
      const std::int64_t end = std::min(n, (block + 1) * block_rows);
      for (std::int64_t i = block * block_rows; i < end; ++i) {
        if (!all.load(std::memory_order_relaxed)) return;
        const double* x = row(Place{i});
        if (!TwoValues(x, points.padded).holds(x, points.num_features, centred))
          all.store(false, std::memory_order_relaxed);
      }
    };
  });
  return all;
}

const FilterForm& two_value_form(const MetricEntry& metric) {
  if (metric.row_form == RowForm::unit) return kTwoValues;
  switch (metric.sign) {
    case Sign::signed_value: return kCentredTwoValues;
    case Sign::absolute: return kCentredTwoValuesAbsolute;
    case Sign::negative: return kCentredTwoValuesNegative;
  }
  throw_unknown("sign", static_cast<int>(metric.sign));
}

bool is_two_values(const FilterForm& form) {
  return form.test == Test::two_values ||
         form.test == Test::two_values_absolute ||
         form.test == Test::two_values_negative;
}

}  // namespace cpu
}  // namespace fsknn
