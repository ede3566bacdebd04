#include "cuda/plan/number_forms.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/contract/arithmetic.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Whether the metric's filter has a bound for the metric's accumulation. A
/// filter lists the accumulations that it bounds, so that a new one has no
/// bound.
bool is_bounded(const MetricEntry& metric) {
  const Accumulation sum = metric.accumulation;
  switch (metric.filter) {
    case FilterKind::none: return true;
    case FilterKind::table: return metric.is_table();
    case FilterKind::product:
      return (sum == Accumulation::dot && !metric.is_table()) ||
             (metric.row_form == RowForm::raw &&
              sum == Accumulation::squared_difference);
    case FilterKind::difference:
      return sum == Accumulation::absolute_difference;
    case FilterKind::largest: return sum == Accumulation::largest_difference;
    case FilterKind::overlap:
    case FilterKind::bits:
      return sum == Accumulation::smaller_sum &&
             metric.least_overlap != nullptr;
  }
  throw_unknown("filter", static_cast<int>(metric.filter));
}

}  // namespace

std::int64_t depth_of_codes(std::int64_t num_features, int bits) {
  return round_up(2 * bits * ceil_div(num_features, 32),
                  entry_of(NumberForm::code).step);
}

int RowsInForm::most_code_bits() const {
  const std::int64_t bytes = entry_of(NumberForm::code).bytes;
  int bits = 0;
  while ((bits + 1) * features <= kMostCommon &&
         bytes * depth_of_codes(features, bits + 1) <= row_bytes)
    ++bits;
  return bits;
}

RowsInForm RowsInForm::codes(std::int64_t num_features, NumberForm instead,
                             bool unit) {
  // The number of bits of a feature is known only when the points are. Codes
  // may be as long as the form that may replace them.
  RowsInForm rows(instead, unit, num_features);
  rows.form = NumberForm::code;
  rows.instead = instead;
  const NumberFormEntry& entry = entry_of(rows.form);
  rows.row_bytes =
      std::max(rows.row_bytes, entry.bytes * depth_of_codes(num_features, 1));
  rows.floats_a_slot = std::max(rows.floats_a_slot, entry.floats_a_slot);
  return rows;
}

const char* RowsInForm::words() const {
  if (form == NumberForm::code &&
      (instead == NumberForm::half || instead == NumberForm::byte))
    return "common bits of 0 and 1, or products of other numbers, by tensor "
           "cores";
  return entry_of(form).name;
}

RowsInForm RowsInForm::otherwise() const {
  switch (form) {
    case NumberForm::code: {
      const RowsInForm others(instead, unit, features);
      return may_centre ? others.with_room_to_centre() : others;
    }
    case NumberForm::byte: {
      const RowsInForm halves(NumberForm::half, true, features);
      return may_centre ? halves.with_room_to_centre() : halves;
    }
    case NumberForm::byte_difference:
      return RowsInForm(NumberForm::word_difference, false, features);
    case NumberForm::word_difference:
      return RowsInForm(NumberForm::single, false, features);
    case NumberForm::none:
    case NumberForm::half:
    case NumberForm::bit:
    case NumberForm::allele:
    case NumberForm::allele_pair:
    case NumberForm::single: break;
  }
  if (!may_centre) return RowsInForm();
  RowsInForm rest(NumberForm::half, false, features);
  rest.unit = rest.centred = true;
  return rest;
}

RowsInForm RowsInForm::with_room_to_centre() const {
  RowsInForm roomy = *this;
  if (!unit || (form != NumberForm::byte && form != NumberForm::half &&
                form != NumberForm::code))
    return roomy;
  roomy.may_centre = true;
  for (RowsInForm rest = roomy.otherwise(); rest.form != NumberForm::none;
       rest = rest.otherwise()) {
    roomy.spare_bytes =
        std::max(roomy.spare_bytes, rest.row_bytes - roomy.row_bytes);
    roomy.bytes_sums = std::max(roomy.bytes_sums, rest.bytes_sums);
  }
  return roomy;
}

RowsInForm::RowsInForm(NumberForm number_form, bool unit_rows,
                       std::int64_t num_features)
    : form(number_form), features(num_features), unit(unit_rows) {
  std::int64_t in_row = features;
  switch (form) {
    case NumberForm::none: return;
    case NumberForm::byte:
      sides = 2;
      in_row += 2 * error_parts(features);
      break;
    case NumberForm::half:
      if (unit) break;
      sides = 2;
      in_row += kNormFeatures;
      break;
    case NumberForm::code:
      throw std::logic_error("codes are made by what may take their place");
    case NumberForm::allele_pair:
      sides = 2;
      in_row *= 4;
      break;
    case NumberForm::bit:
    case NumberForm::allele:
    case NumberForm::byte_difference:
    case NumberForm::word_difference:
    case NumberForm::single: break;
  }
  const NumberFormEntry& entry = entry_of(form);
  depth = round_up(ceil_div(in_row, entry.features), entry.step);
  row_bytes = entry.bytes * depth * sides;
  floats_a_slot = entry.floats_a_slot;
  work = entry.work * depth;
  if (form == NumberForm::byte) work /= 2;
  // There is room for the form that may replace this one.
  const RowsInForm other = otherwise();
  row_bytes = std::max(row_bytes, other.row_bytes);
  floats_a_slot = std::max(floats_a_slot, other.floats_a_slot);
  bytes_sums = other.bytes_sums;
  if (entry.in_feature_ranges && has_feature_ranges(depth))
    bytes_sums = static_cast<double>(kFeatureRangeBytes);
}

void check_metric(const MetricEntry& metric) {
  // Each of these throws for an unknown value.
  sign_name(metric.sign);
  with_accumulation(metric.accumulation, [](auto) {});
  if (!is_bounded(metric))
    throw std::logic_error("the metric \"" + std::string(metric.name) +
                           "\" declares a filter that has no bound for it");
}

}  // namespace cuda
}  // namespace fsknn
