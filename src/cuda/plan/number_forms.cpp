#include "cuda/plan/number_forms.hpp"

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
    case NumberForm::bit:
    case NumberForm::single: break;
  }
  const NumberFormEntry& entry = entry_of(form);
  depth = round_up(ceil_div(in_row, entry.features), entry.step);
  row_bytes = entry.bytes * depth * sides;
  floats_a_slot = entry.floats_a_slot;
  work = entry.work * depth;
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
