#include "cuda/plan/number_forms.hpp"

#include <stdexcept>
#include <string>

#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// The filter that has a bound for what the metric accumulates; none: no filter
/// has.
FilterKind bounded_by(const MetricEntry& metric) {
  const bool raw = metric.row_form == RowForm::raw;
  switch (metric.accumulation) {
    // Of rows of length 1 alone, or of raw rows alone.
    case Accumulation::dot:
      return raw ? FilterKind::none : FilterKind::product;
    case Accumulation::squared_difference:
      return raw ? FilterKind::product : FilterKind::none;
    case Accumulation::absolute_difference: return FilterKind::difference;
    case Accumulation::largest_difference: return FilterKind::largest;
    case Accumulation::smaller_sum:
      return metric.least_overlap != nullptr ? FilterKind::overlap
                                             : FilterKind::none;
    case Accumulation::relative_difference: return FilterKind::none;
  }
  throw_unknown("accumulation", static_cast<int>(metric.accumulation));
}

bool any_filter(FilterKind filter) {
  switch (filter) {
    case FilterKind::none: return false;
    case FilterKind::product:
    case FilterKind::difference:
    case FilterKind::largest:
    case FilterKind::overlap: return true;
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

RowsInForm::RowsInForm(NumberForm number_form, bool unit,
                       std::int64_t num_features)
    : form(number_form), features(num_features) {
  std::int64_t in_row = features;
  switch (form) {
    case NumberForm::none: return;
    case NumberForm::half:
      if (unit) break;
      sides = 2;
      in_row += kNormFeatures;
      break;
    case NumberForm::single: break;
  }
  const NumberFormEntry& entry = entry_of(form);
  depth = round_up(in_row, entry.step);
  row_bytes = entry.bytes * depth * sides;
  floats_a_slot = entry.floats_a_slot;
  work = entry.work * depth;
  if (entry.in_stretches && has_stretches(depth))
    bytes_sums = static_cast<double>(kStretchBytes);
}

void check_metric(const MetricEntry& metric) {
  sign_name(metric.sign);  // throws where it is none
  const FilterKind bounded = bounded_by(metric);
  if (any_filter(metric.filter) && metric.filter != bounded)
    throw std::logic_error("the metric \"" + std::string(metric.name) +
                           "\" declares a filter that has no bound for it");
}

}  // namespace cuda
}  // namespace fsknn
