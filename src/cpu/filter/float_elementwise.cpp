// Differences and minima of rows in floats, in units of a power of two. They
// serve ranges for which whole numbers are too coarse, at half their speed.

#include "cpu/filter/form_parts.hpp"

namespace fsknn {
namespace cpu {
namespace {

// A bound on what underflow may lose, in units of the matrix.
constexpr double kTinyFloat = 1e-30;

bool usable(const FilterScale&) { return true; }

/// The relative error of a float sum over `padded` rounded values, including
/// the test that reads it: see the vignette "proofs".
double float_error(std::int64_t padded) {
  return (static_cast<double>(padded) + 16.0) * 0x1p-24 * 1.1;
}

struct RowSums {
  double size = 0.0, total = 0.0, largest = 0.0;
};

RowSums pack_floats(RowPacker& packer) {
  const double inverse = 1.0 / packer.scale.unit;  // a power of two
  RowSums s;
  for (std::int64_t f = 0; f < packer.padded; ++f) {
    const double y = packer.value[f] * inverse;
    s.size += std::fabs(y);
    s.total += y;
    s.largest = std::max(s.largest, std::fabs(y));
    packer.step[f] = as_bits(static_cast<float>(y));
  }
  return s;
}

/// first: for sums and differences the row's own term, less the most that
/// rounding may have added; for upper bounds plus that. For overlaps s, the
/// row's sum in units.
void set_first(FilterRows& rows, std::int64_t place, double lower,
               double upper) {
  rows.first[place] = as_bits(float_down(lower));
  rows.first_upper[place] = as_bits(float_up(upper));
}

void pack_sum_row(RowPacker& packer, FilterRows& rows, double,
                  std::int64_t place, double*) {
  const double error = float_error(packer.padded);
  const RowSums s = pack_floats(packer);
  set_first(rows, place, s.total - 2.0 * error * s.size - kTinyFloat,
            s.total + 2.0 * error * s.size + kTinyFloat);
}

void pack_largest_row(RowPacker& packer, FilterRows& rows, double,
                      std::int64_t place, double*) {
  const RowSums s = pack_floats(packer);
  const double lower = -kFloatSlack * s.largest - kTinyFloat;
  set_first(rows, place, lower, -lower);
}

void pack_overlap_row(RowPacker& packer, FilterRows& rows, double,
                      std::int64_t place, double*) {
  const RowSums s = pack_floats(packer);
  set_first(rows, place, s.total, s.total);
  // g bounds the loss in sums of subnormal floats, and prevents 0 / 0 in a key.
  rows.second[place] = as_bits(float_up(kTinyFloat));
}

double slack_of_differences(double, std::int64_t padded) {
  return rounding_of_sums(padded);
}

double slack_of_overlaps(double, std::int64_t padded) {
  return rounding_of_sums(padded) + 2.0 * float_error(padded);
}

std::int32_t keep_up_to(const FilterTerms& terms, double distance) {
  const double t = terms.rule.before_scaling(distance);
  return as_bits(
      float_up(t / terms.scale.unit * (1.0 + terms.scale.slack + kFloatSlack) +
               kTinyFloat));
}

double upper_distance(const FilterTerms& terms, double key, const Side& row) {
  const double w = as_float(row.first[0]);
  return terms.rule.after_scaling(
      terms.scale.unit *
      (std::max(key + w, 0.0) + kTinyFloat +
       kFloatSlack * (std::fabs(key) + std::fabs(w))) *
      (1.0 + terms.scale.slack));
}

}  // namespace

const FilterForm kFloatSumDistance = {Test::float_sum_distance,
                                      Product::float_smaller_sum,
                                      FilterNumbers::float32,
                                      false,
                                      kInfinityBits,
                                      kMinusInfinityBits,
                                      &usable,
                                      &pack_sum_row,
                                      &slack_of_differences,
                                      &nothing_waits,
                                      &keep_up_to,
                                      &reach_in_units,
                                      &upper_distance,
                                      nullptr};

const FilterForm kFloatLargestDifference = {Test::float_largest_difference,
                                            Product::float_largest_difference,
                                            FilterNumbers::float32,
                                            false,
                                            kInfinityBits,
                                            kMinusInfinityBits,
                                            &usable,
                                            &pack_largest_row,
                                            &slack_of_differences,
                                            &nothing_waits,
                                            &keep_up_to,
                                            &reach_in_units,
                                            &upper_distance,
                                            nullptr};

const FilterForm kFloatOverlap = {Test::float_overlap,
                                  Product::float_smaller_sum,
                                  FilterNumbers::float32,
                                  false,
                                  kMinusOneBits,
                                  kInfinityBits,
                                  &usable,
                                  &pack_overlap_row,
                                  &slack_of_overlaps,
                                  &upper_as_lower,
                                  &keep_overlap_up_to,
                                  &reach_of_overlap,
                                  &upper_of_overlap,
                                  nullptr};

}  // namespace cpu
}  // namespace fsknn
