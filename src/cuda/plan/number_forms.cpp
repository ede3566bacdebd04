#include "cuda/plan/number_forms.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Whether the filter that the metric declares has a bound for what the metric
/// accumulates. A filter names what it bounds; a new accumulation is none of
/// it.
bool is_bounded(const MetricEntry& metric) {
  const Accumulation sum = metric.accumulation;
  switch (metric.filter) {
    case FilterKind::none: return true;
    case FilterKind::product:
      return sum == Accumulation::dot ||
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

bool any_filter(FilterKind filter) {
  switch (filter) {
    case FilterKind::none: return false;
    case FilterKind::product:
    case FilterKind::difference:
    case FilterKind::largest:
    case FilterKind::overlap:
    case FilterKind::bits: return true;
  }
  throw_unknown("filter", static_cast<int>(filter));
}

}  // namespace

NumberForm choose_form(FilterKind filter, std::int64_t num_features,
                       const GpuFacts& gpus) {
  if (!any_filter(filter)) return NumberForm::none;
  for (const NumberFormEntry& entry : kNumberForms)
    if ((entry.serves & one_filter(filter)) != 0 &&
        num_features <= entry.most_features &&
        gpus.capability >= entry.least_capability &&
        gpus.shared_bytes >= entry.shared_bytes)
      return entry.form;
  return NumberForm::none;
}

bool bytes_serve(FilterKind filter, bool unit, std::int64_t num_features,
                 const GpuFacts& gpus) {
  const NumberFormEntry& entry = entry_of(NumberForm::byte);
  return filter == FilterKind::product && unit &&
         num_features <= entry.most_features &&
         gpus.capability == entry.least_capability &&
         gpus.most_capability == entry.least_capability &&
         gpus.shared_bytes >= entry.shared_bytes;
}

NumberForm difference_form(FilterKind filter, std::int64_t num_points,
                           std::int64_t num_rows, std::int64_t num_features,
                           int bits, const GpuFacts& gpus) {
  // Of rows of 0 and 1 floats are exact, where nothing counts bits.
  const bool differences = filter == FilterKind::difference ||
                           filter == FilterKind::largest ||
                           filter == FilterKind::overlap;
  const bool floats =
      choose_form(filter, num_features, gpus) == NumberForm::single;
  const double work = static_cast<double>(num_points) *
                      static_cast<double>(num_rows) *
                      static_cast<double>(num_features);
  if (!differences || !floats || bits == 32 ||
      (bits == 0 && work < kLeastDifferences))
    return NumberForm::none;
  // The largest of four differences takes as long as four of two.
  const NumberForm form = filter == FilterKind::largest || bits == 16
                              ? NumberForm::word_difference
                              : NumberForm::byte_difference;
  const NumberFormEntry& entry = entry_of(form);
  return num_features <= entry.most_features &&
                 gpus.capability >= entry.least_capability &&
                 gpus.shared_bytes >= entry.shared_bytes
             ? form
             : NumberForm::none;
}

RowsInForm RowsInForm::otherwise() const {
  switch (form) {
    case NumberForm::byte: return {NumberForm::half, true, features};
    case NumberForm::byte_difference:
      return {NumberForm::word_difference, false, features};
    case NumberForm::word_difference:
      return {NumberForm::single, false, features};
    case NumberForm::none:
    case NumberForm::half:
    case NumberForm::bit:
    case NumberForm::single: break;
  }
  return {};
}

RowsInForm::RowsInForm(NumberForm number_form, bool unit,
                       std::int64_t num_features)
    : form(number_form), features(num_features) {
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
    case NumberForm::bit:
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
  // There is room for what may take its place.
  const RowsInForm other = otherwise();
  row_bytes = std::max(row_bytes, other.row_bytes);
  floats_a_slot = std::max(floats_a_slot, other.floats_a_slot);
  bytes_sums = other.bytes_sums;
  if (entry.in_stretches && has_stretches(depth))
    bytes_sums = static_cast<double>(kStretchBytes);
}

void check_metric(const MetricEntry& metric) {
  // Each throws where there is none such.
  sign_name(metric.sign);
  with_accumulation(metric.accumulation, [](auto) {});
  if (!is_bounded(metric))
    throw std::logic_error("the metric \"" + std::string(metric.name) +
                           "\" declares a filter that has no bound for it");
}

}  // namespace cuda
}  // namespace fsknn
