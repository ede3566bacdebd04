// Products of rows of length 1 that are nearly the same, in whole numbers of 16
// or 8 bits. They are taken of the differences from a centre
// (core/contract/centred.hpp), with a unit for each row.

#include "core/contract/centred.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/sample.hpp"

#include <vector>

namespace fsknn {
namespace cpu {
namespace {

// A row that is shorter after centring counts as 0: its difference from the
// centre is below its rounding.
constexpr double kTinyNorm = 1e-15;
// A bound on values that underflow in the floats of the test.
constexpr double kUnderflow = 0x1p-100;
// The largest median length after centring for which these floats pay.
constexpr double kLongestOfNear = 0.25;

/// A packed row.
struct Packed {
  float unit = 0.0f;
  double square = 0.0;  ///< |v|^2
  double error = 0.0;   ///< an upper bound on |v - a q|
};

template <int kBits>
Packed pack(RowPacker& packer) {
  constexpr double largest_whole = kBits == 8 ? kLargestByte : kLargestWhole;
  Packed row;
  double largest = 0.0;
  for (std::int64_t f = 0; f < packer.padded; ++f) {
    const double v = packer.value[f];
    row.square += v * v;
    largest = std::max(largest, std::fabs(v));
  }
  const double norm = std::sqrt(row.square);
  row.error = norm * (1.0 + 1e-6);
  if (norm < kTinyNorm) {
    packer.clear();
    return row;
  }
  row.unit = factor_of(norm, largest, largest_whole, packer.padded);
  const double unit = static_cast<double>(row.unit);
  const RowPacker::Residual r =
      packer.quantise<kBits>(1.0 / unit, largest_whole, kBits == 8 ? 1 : 0);
  if (kBits == 8)
    packer.step[0] = byte_offset(static_cast<std::int64_t>(r.total));
  row.error = std::sqrt(r.squares) * unit * (1.0 + 1e-6) + 1e-12 * norm;
  return row;
}

/// first: a, the row's unit. second: g - p, where p is half of |v|^2. Then a_i
/// a_j q_i . q_j plus both rows' terms is at least -|v_i - v_j|^2 / 2. For e_i
/// |v_j| is at most half of e_i^2 / part + part |v_j|^2, with any `part`. For
/// upper bounds second is g + p: both rows' terms less that product are at
/// least |v_i - v_j|^2 / 2. p and g include the row's own rounding
/// (core/contract/centred.hpp). For the opposite (1 + r) the two change places,
/// and the slack has a bound for all rows.
template <int kBits, bool kOpposite>
struct CentredSimilarity {
  static bool usable(const FilterScale&) { return true; }

  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double*) {
    const Packed row = pack<kBits>(packer);
    const double part = packer.scale.part, e = row.error;
    double p = 0.5 * row.square;
    double g = 0.5 * (part * row.square + e * e / part + e * e);
    if (!kOpposite) {
      const UnitRounding own = packer.scale.whole_ranks
                                   ? rounding_of_ranks(packer.padded)
                                   : unit_rounding(packer.row, packer.padded);
      p += own.short_of_one;
      g += own.contract + rounding_of_near_rows(packer.padded) * row.square;
    }
    const double floats = kFloatSlack * (g + std::fabs(p));
    const std::int32_t near = as_bits(float_up((g - p) + floats));
    const std::int32_t far = as_bits(float_up((g + p) + floats));
    rows.first[place] = rows.first_upper[place] = as_bits(row.unit);
    rows.second[place] = kOpposite ? far : near;
    rows.second_upper[place] = kOpposite ? near : far;
  }

  static double slack(double, std::int64_t padded) {
    return kOpposite ? rounding_once_centred(padded) : kUnderflow;
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double t = terms.rule.before_scaling(distance);
    const double least =
        kOpposite ? (2.0 - t) - terms.scale.slack : -(t + terms.scale.slack);
    return as_bits(float_down(least - kFloatSlack * std::fabs(least)));
  }

  static double reach(const FilterScale&, std::int32_t threshold) {
    const double least = static_cast<double>(as_float(threshold));
    return reach_of_unit_rows((kOpposite ? 2.0 : 0.0) - least);
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side& row) {
    const double most = (key + static_cast<double>(as_float(row.second[0]))) +
                        terms.scale.slack;
    return kOpposite ? 2.0 + most : std::max(0.0, most);
  }

  static constexpr FilterForm form(Test test) {
    return {
        test,
        kBits == 8 ? Product::byte_dot : Product::dot,
        kBits == 8 ? FilterNumbers::int8_centred : FilterNumbers::int16_centred,
        false,
        kMinusInfinityBits,
        kInfinityBits,
        &usable,
        &pack_row,
        &slack,
        &nothing_waits,
        &keep_up_to,
        &reach,
        &upper_distance,
        nullptr};
  }
};

template <int kBits>
double error_part(const FilterScale& scale, const PreparedPoints& points) {
  const std::int64_t m = std::min(points.size(), kMiddleSample);
  RowPacker packer(scale, points.padded);
  FilterReader row(points);
  std::vector<double> parts;
  for (std::int64_t i = 0; i < m; ++i) {
    packer.load(row(sampled(points, i, m)));
    const Packed packed = pack<kBits>(packer);
    if (packed.unit > 0.0f)
      parts.push_back(packed.error / std::sqrt(packed.square));
  }
  if (parts.empty()) return 1.0;
  const auto middle =
      parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2);
  std::nth_element(parts.begin(), middle, parts.end());
  return std::min(std::max(*middle, 0x1p-24), 1.0);
}

}  // namespace

Buffer<double> centre_of_near_rows(const PreparedPoints& points) {
  const std::int64_t m = std::min(points.size(), kMiddleSample);
  const std::int64_t padded = points.padded;
  if (m < 2) return {};
  // The mean is long if rows are close to each other.
  std::vector<double> sum(static_cast<std::size_t>(padded), 0.0);
  FilterReader row(points);
  for (std::int64_t i = 0; i < m; ++i) {
    const double* z = row(sampled(points, i, m));
    for (std::int64_t f = 0; f < padded; ++f)
      sum[static_cast<std::size_t>(f)] += z[f];
  }
  double square = 0.0;
  for (const double s : sum) square += s * s;
  const double rows = static_cast<double>(m);
  if (square < 0.5 * rows * rows) return {};
  Buffer<double> centre = column_medians(points);
  if (!(median_length(points, centre) < kLongestOfNear)) return {};
  return centre;
}

double part_of_error(const FilterScale& scale, const PreparedPoints& points) {
  return scale.form->product == Product::byte_dot
             ? error_part<8>(scale, points)
             : error_part<16>(scale, points);
}

const FilterForm kCentredSimilarity =
    CentredSimilarity<16, false>::form(Test::scaled_similarity);
const FilterForm kCentredNegativeSimilarity =
    CentredSimilarity<16, true>::form(Test::scaled_negative_similarity);
const FilterForm kCentredByteSimilarity =
    CentredSimilarity<8, false>::form(Test::scaled_similarity);
const FilterForm kCentredByteNegativeSimilarity =
    CentredSimilarity<8, true>::form(Test::scaled_negative_similarity);

}  // namespace cpu
}  // namespace fsknn
