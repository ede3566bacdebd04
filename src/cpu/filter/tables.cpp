// Tables of alleles (AlleleTable in core/contract/metrics.hpp). Rows of counts
// are packed as they are, in 16 bits or in 8 where processors multiply bytes,
// so that sums of products are the contract's. The test computes the largest
// entry in floats. Let Z = C^2 d be the number of pairs of alleles in a table,
// and let a row have n = C s counted alleles in pairs, and m = Z / 2 - n. With
// the sum P, the four entries are
//   P,  n_i - P,  n_j - P,  m_i + m_j + P.
// They are multiples of 1/2 below 2^23, and exact in floats. With p the
// parameter, the weight 1 - p f of an allele of the frequency f is (1 - p / 2)
// times G for the counted allele, and (1 - p / 2) times 2 - G for the other. So
// an entry's value is K times its number times two such weights, where
//   K = multiplier (1 - p / 2)^2 / Z.
// The vignette "proofs" has the proof of the error, in the section "Tables of
// alleles".

#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// An entry's error in the test, relative to Z.
constexpr double kTableError = 0x1p-19;

template <bool bytes>
struct Table {
  static bool usable(const FilterScale& scale) { return unit(scale) > 0.0; }
  static double no_slack(double, std::int64_t) { return 0.0; }

  static double pairs(const FilterScale& scale) {
    const TableTerms& t = scale.table;
    return t.copies * t.copies * t.samples;
  }
  /// K.
  static double unit(const FilterScale& scale) {
    const double half = 1.0 - 0.5 * scale.table.parameter;
    return scale.table.multiplier * (half * half) / pairs(scale);
  }

  /// first: n. second: m. third: G.
  static void pack_row(RowPacker& packer, FilterRows& rows, double row_sum,
                       std::int64_t place, double*) {
    const TableTerms& t = packer.scale.table;
    if (bytes)
      packer.step[0] = byte_offset(static_cast<std::int64_t>(
          packer.quantise<8>(1.0, kLargestByte, 1).total));
    else
      packer.quantise(1.0, kLargestWhole);
    const double n = t.copies * row_sum;
    const double weight =
        1.0 - t.parameter * (row_sum / (t.copies * t.samples));
    rows.first[place] = as_bits(static_cast<float>(n));
    rows.second[place] =
        as_bits(static_cast<float>(0.5 * pairs(packer.scale) - n));
    rows.third[place] =
        as_bits(static_cast<float>(weight / (1.0 - 0.5 * t.parameter)));
  }

  static std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
    if (!(distance > -kInfinity)) return terms.scale.form->keep_none;
    // The factor covers the rounding of the similarity, and of 1 - similarity.
    const double least = 1.0 - distance - 0x1p-45 * (1.0 + std::fabs(distance));
    return as_bits(float_down(least / unit(terms.scale) -
                              kTableError * pairs(terms.scale)));
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side&) {
    const double most = -key - kTableError * pairs(terms.scale);
    const double similarity = unit(terms.scale) * std::max(most, 0.0);
    return 1.0 - similarity + 0x1p-45 * (1.0 + similarity);
  }

  static double exact_sum(std::int32_t sum, const Side&, const Side&) {
    return sum;
  }

  static constexpr FilterForm form() {
    return {Test::table,
            bytes ? Product::byte_dot : Product::dot,
            bytes ? FilterNumbers::int8 : FilterNumbers::int16,
            false,
            kMinusInfinityBits,
            kInfinityBits,
            &usable,
            &pack_row,
            &no_slack,
            &upper_as_lower,
            &keep_up_to,
            nullptr,
            &upper_distance,
            &exact_sum};
  }
};

}  // namespace

const FilterForm kTable = Table<false>::form();
const FilterForm kByteTable = Table<true>::form();

}  // namespace cpu
}  // namespace fsknn
