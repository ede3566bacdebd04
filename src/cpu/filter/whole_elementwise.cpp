// Differences and minima of rows in whole numbers of 16 bits, in one unit for
// the whole matrix.

#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

constexpr std::int32_t kKeepAllSums = (1 << 30) + (1 << 20);

bool usable(const FilterScale& scale) {
  return scale.unit > 1e-290 && scale.unit < 1e290;
}

double slack(double, std::int64_t padded) { return rounding_of_sums(padded); }

/// The threshold is the distance in units.
std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
  const double t = terms.rule.before_scaling(distance);
  const double units = t / terms.scale.unit * (1.0 + terms.scale.slack) + 3.0;
  if (!(units < kLargestSum * 2.0)) return terms.scale.form->keep_all;
  // No distance is below 0: a negative limit keeps nothing.
  if (units < 0.0) return terms.scale.form->keep_none;
  return static_cast<std::int32_t>(std::ceil(units));
}

double reach(const FilterScale& scale, std::int32_t threshold) {
  if (threshold < 0) return -kInfinity;
  return threshold < kKeepAllSums ? threshold * scale.unit : kInfinity;
}

/// first: p, the sum of the whole numbers. For lower bounds it is less the most
/// that rounding may have added; for upper bounds, as a float, plus the most
/// that rounding may have removed.
struct SumDistance {
  static void pack_row(RowPacker& packer, FilterRows& rows, double,
                       std::int64_t place, double*) {
    const RowPacker::Residual r =
        packer.quantise(1.0 / packer.scale.unit, packer.scale.largest);
    const double rounding = r.sizes * (1 + 1e-7) + 2.0;
    rows.first[place] =
        static_cast<std::int32_t>(r.total - std::ceil(rounding));
    rows.first_upper[place] = as_bits(float_up(r.total + rounding));
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side& row) {
    // 1024 covers rounding to 24 bits: both terms of the key are below 2^31.
    return terms.rule.after_scaling(terms.scale.unit *
                                    (key + as_float(row.first[0]) + 1024.0) *
                                    (1.0 + terms.scale.slack));
  }
};

struct LargestDifference {
  static void pack_row(RowPacker& packer, FilterRows&, double, std::int64_t,
                       double*) {
    packer.quantise(1.0 / packer.scale.unit, kLargestHalf);
  }

  static double upper_distance(const FilterTerms& terms, double key,
                               const Side&) {
    return terms.rule.after_scaling(terms.scale.unit * (key + 2.0) *
                                    (1.0 + terms.scale.slack));
  }
};

/// first: s, the row's sum in units; second: g, twice the rounding in units.
struct Overlap {
  static void pack_row(RowPacker& packer, FilterRows& rows, double row_sum,
                       std::int64_t place, double*) {
    const RowPacker::Residual r =
        packer.quantise(1.0 / packer.scale.unit, packer.scale.largest);
    const double g = 2.0 * r.sizes * (1 + kFloatSlack) + 1e-3;
    rows.first[place] =
        as_bits(static_cast<float>(row_sum / packer.scale.unit));
    rows.second[place] = as_bits(float_up(g));
  }
};

}  // namespace

const FilterForm kWholeSumDistance = {Test::sum_distance,
                                      Product::smaller_sum,
                                      FilterNumbers::int16,
                                      false,
                                      kKeepAllSums,
                                      -(1 << 30),
                                      &usable,
                                      &SumDistance::pack_row,
                                      &slack,
                                      &nothing_waits,
                                      &keep_up_to,
                                      &reach,
                                      &SumDistance::upper_distance,
                                      nullptr};

const FilterForm kWholeLargestDifference = {
    Test::largest_difference,
    Product::largest_difference,
    FilterNumbers::int16,
    false,
    std::numeric_limits<std::int32_t>::max(),
    -1,
    &usable,
    &LargestDifference::pack_row,
    &slack,
    &nothing_waits,
    &keep_up_to,
    &reach,
    &LargestDifference::upper_distance,
    nullptr};

// The threshold that keeps all is not -infinity: the sum of two rows may be 0
// here, and 0 * infinity is NaN.
const FilterForm kWholeOverlap = {Test::overlap,
                                  Product::smaller_sum,
                                  FilterNumbers::int16,
                                  false,
                                  kMinusOneBits,
                                  kInfinityBits,
                                  &usable,
                                  &Overlap::pack_row,
                                  &slack,
                                  &upper_as_lower,
                                  &keep_overlap_up_to,
                                  &reach_of_overlap,
                                  &upper_of_overlap,
                                  nullptr};

}  // namespace cpu
}  // namespace fsknn
