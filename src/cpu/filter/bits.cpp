// Rows of 0 and 1, with a bit for each feature. The number of features that two
// rows share is a whole number, as are all values that these forms test or
// return. So nothing is rounded, and the contract's sums, of ones and zeros,
// are equal.

#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

bool usable(const FilterScale&) { return true; }
double no_slack(double, std::int64_t) { return 0.0; }

/// Returns the number of set bits.
std::int32_t pack_bits(RowPacker& packer) {
  std::int32_t count = 0;
  for (std::int64_t f = 0; f < packer.padded; f += 32) {
    const std::int64_t end = std::min<std::int64_t>(32, packer.padded - f);
    std::uint32_t bits = 0;
    for (std::int64_t b = 0; b < end; ++b)
      bits |= static_cast<std::uint32_t>(packer.value[f + b] != 0.0) << b;
    packer.step[f / 32] = static_cast<std::int32_t>(bits);
    count += __builtin_popcount(bits);
  }
  return count;
}

/// first: s, the row's sum, as a float. second: a tiny positive number, as in
/// the float forms, so that no key is 0 / 0.
struct Overlap {
  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double*) {
    rows.first[place] = as_bits(static_cast<float>(pack_bits(packer)));
    rows.second[place] = as_bits(0x1p-100f);
  }
  static double exact_sum(std::int32_t sum, const Side&, const Side&) {
    return sum;
  }
};

/// Sums of |a - b| and of (a - b)^2 are the same number: p_i + p_j less twice
/// the number of shared features. first: p, the row's sum; for upper bounds as
/// a float. squared: the distance is the root of that number.
template <bool squared>
struct Distance {
  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double*) {
    const std::int32_t count = pack_bits(packer);
    rows.first[place] = count;
    rows.first_upper[place] = as_bits(static_cast<float>(count));
  }
  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    const double t = terms.rule.before_scaling(distance);
    // No distance is below 0: a negative limit keeps nothing.
    if (t < 0.0) return terms.scale.form->keep_none;
    // The factor covers the rounding of the root and of the square.
    const double most = squared ? t * t * (1.0 + 0x1p-48) : t;
    if (!(most < kMostBits)) return terms.scale.form->keep_all;
    return static_cast<std::int32_t>(std::floor(most));
  }
  static double upper_distance(const FilterTerms& terms, double key,
                               const Side& row) {
    const double sum = key + as_float(row.first[0]);
    return terms.rule.after_scaling(squared ? std::sqrt(sum) : sum);
  }
  static double exact_sum(std::int32_t sum, const Side& row,
                          const Side& column) {
    return row.first[0] + column.first[0] - 2 * sum;
  }
  static constexpr FilterForm form() {
    return {Test::sum_distance,
            Product::common_bits,
            FilterNumbers::bits,
            false,
            2 * kMostBits,
            -2 * kMostBits,
            &usable,
            &pack_row,
            &no_slack,
            &nothing_waits,
            &keep_up_to,
            nullptr,
            &upper_distance,
            &exact_sum};
  }
};

}  // namespace

const FilterForm kBitsOverlap = {Test::overlap,
                                 Product::common_bits,
                                 FilterNumbers::bits,
                                 false,
                                 kMinusOneBits,
                                 kInfinityBits,
                                 &usable,
                                 &Overlap::pack_row,
                                 &no_slack,
                                 &upper_as_lower,
                                 &keep_overlap_up_to,
                                 nullptr,
                                 &upper_of_overlap,
                                 &Overlap::exact_sum};

const FilterForm kBitsDistance = Distance<false>::form();
const FilterForm kBitsSquaredDistance = Distance<true>::form();

}  // namespace cpu
}  // namespace fsknn
