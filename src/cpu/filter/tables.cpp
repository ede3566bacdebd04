// Tables of alleles (core/contract/table_numbers.hpp). Rows of counts are
// packed as they are, in 16 bits or in 8 where processors multiply bytes, so
// that sums of products are the contract's. The test computes the largest entry
// in floats (largest_entry() in kernels_body.hpp).

#include "core/contract/table_numbers.hpp"
#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

template <bool bytes>
struct Table {
  static bool usable(const FilterScale& scale) { return unit(scale) > 0.0; }
  static double no_slack(double, std::int64_t) { return 0.0; }

  static double pairs(const FilterScale& scale) {
    return pairs_of_table(scale.table);
  }
  static double unit(const FilterScale& scale) {
    return unit_of_table(scale.table);
  }

  /// first: n. second: m. third: G.
  static void pack_row(RowPacker& packer, FilterRows& rows, double row_sum,
                       std::int64_t place, double*) {
    if (bytes)
      packer.step[0] = byte_offset(static_cast<std::int64_t>(
          packer.quantise<8>(1.0, kLargestByte, 1).total));
    else
      packer.quantise(1.0, kLargestWhole);
    const TableNumbers numbers = table_numbers(packer.scale.table, row_sum);
    rows.first[place] = as_bits(numbers.counted);
    rows.second[place] = as_bits(numbers.others);
    rows.third[place] = as_bits(numbers.weight);
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
