// Products of rows of length 1 in whole numbers of 8 bits, with a unit for each
// row. They take half the work of 16 bits, with a wider bound. The first step
// of a row is its byte_offset().

#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// first: a, the row's unit. second: g. Except for the slack, the similarity of
/// two rows differs from a_i a_j q_i . q_j by at most g_i + g_j. By
/// Cauchy-Schwarz the difference is at most e_i + e_j + e_i e_j, where e_i =
/// |z_i - a_i q_i|. The product e_i e_j is at most half the sum of both
/// squares.
struct ByteSimilarity {
  // Rounding moves no entry farther than its distance from 0. So e_i is at most
  // 1, and no sum exceeds kLargestNorm^2, for any row.
  static bool usable(const FilterScale&) { return true; }

  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double*) {
    double squares = 0.0, largest = 0.0;
    for (std::int64_t f = 0; f < packer.padded; ++f) {
      const double v = packer.value[f];
      squares += v * v;
      largest = std::max(largest, std::fabs(v));
    }
    const float a =
        factor_of(std::sqrt(squares), largest, kLargestByte, packer.padded);
    const double unit = static_cast<double>(a);
    const RowPacker::Residual r =
        packer.quantise<8>(1.0 / unit, kLargestByte, 1);
    packer.step[0] = byte_offset(static_cast<std::int64_t>(r.total));
    const double e = std::sqrt(r.squares) * unit * (1.0 + 1e-6) + 1e-12;
    rows.first[place] = rows.first_upper[place] = as_bits(a);
    rows.second[place] = rows.second_upper[place] =
        as_bits(float_up(e + 0.5 * e * e));
  }

  // The test rounds floats of at most 4 four times, which adds less than
  // kFloatSlack.
  static double slack(double, std::int64_t padded) {
    return kFloatSlack + rounding_of_sums(padded);
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double t = terms.rule.before_scaling(distance);
    return as_bits(float_down(1.0 - t - terms.scale.slack));
  }

  static double reach(const FilterScale&, std::int32_t threshold) {
    return reach_of_unit_rows(1.0 - static_cast<double>(as_float(threshold)));
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side& row) {
    return 1.0 + key + as_float(row.second[0]) + terms.scale.slack;
  }

  static constexpr FilterForm form(Test test) {
    return {test,
            Product::byte_dot,
            FilterNumbers::int8,
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

}  // namespace

const FilterForm kByteSimilarity =
    ByteSimilarity::form(Test::scaled_similarity);
const FilterForm kByteAbsoluteSimilarity =
    ByteSimilarity::form(Test::scaled_absolute_similarity);
const FilterForm kByteNegativeSimilarity =
    ByteSimilarity::form(Test::scaled_negative_similarity);

}  // namespace cpu
}  // namespace fsknn
