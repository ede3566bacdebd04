#pragma once

// The contract's arithmetic (core/contract/arithmetic.hpp,
// core/contract/metrics.hpp) as template arguments of kernels, selected at run
// time by a MetricEntry.

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "core/contract/metrics.hpp"

namespace fsknn {
namespace cuda {

/// The part of a metric that a pair's distance depends on after preparation:
/// metrics that differ only in their rows share kernels.
template <class Metric>
using PairRule = std::conditional_t<
    std::is_base_of<UnitDot<Metric::sign>, Metric>::value &&
        !std::is_same<Spearman<Metric::sign>, Metric>::value,
    UnitDot<Metric::sign>,
    std::conditional_t<
        std::is_base_of<Proportional, Metric>::value, Proportional,
        std::conditional_t<is_table_metric<Metric>, TableMetric, Metric>>>;

/// Wide data share the kernels of the others, except for sums of their own.
using MetricsWithKernels = decltype(std::tuple_cat(
    AllMetrics(), std::tuple<Wide<InnerProduct, WideDot>>()));

/// Calls use(PairRule<M>()) for the metric M of core's list that `metric`
/// describes.
template <class Use>
void with_pair_rule(const MetricEntry& metric, Use use) {
  bool found = false;
  const auto try_one = [&](auto candidate) {
    using Metric = decltype(candidate);
    if (found || metric.sign != Metric::sign ||
        metric.accumulation != Metric::Sum::which ||
        std::string(metric.name) != Metric::name)
      return;
    found = true;
    use(PairRule<Metric>());
  };
  std::apply([&](auto... candidates) { (try_one(candidates), ...); },
             MetricsWithKernels());
  if (!found) throw std::logic_error("a metric has no CUDA kernels");
}

/// The rule of a correlation whose sign is known only at run time, so that all
/// signs share a kernel. ranks: of Spearman's.
template <bool ranks>
struct UnitRule {
  using Sum = Dot;
  Sign sign;
  FSKNN_HD static double similarity(double s, double sum_a, double sum_b) {
    return ranks ? unit_similarity(s, sum_a, sum_b) : s;
  }
  FSKNN_HD double finish(double s, double sum_a, double sum_b) const {
    return unit_distance(sign, similarity(s, sum_a, sum_b));
  }
};
template <class Rule>
constexpr bool is_unit_rule = std::is_same<UnitRule<false>, Rule>::value ||
                              std::is_same<UnitRule<true>, Rule>::value;

/// Calls use(rule), where all signs of a correlation have one type of rule.
/// with_pair_rule() is for kernels that would take more registers this way.
template <class Use>
void with_any_sign(const MetricEntry& metric, Use use) {
  with_pair_rule(metric, [&](auto rule) {
    using Rule = decltype(rule);
    constexpr Sign sign = Rule::sign;
    if constexpr (std::is_base_of<UnitDot<sign>, Rule>::value)
      use(UnitRule<std::is_same<Spearman<sign>, Rule>::value>{sign});
    else
      use(rule);
  });
}

/// The returned distance.
template <class Rule>
__device__ inline double finished(const Rule& rule, double sum, double row_sum,
                                  double column_sum, const LastStep& last) {
  if constexpr (is_table_metric<Rule>)
    return Rule::finish(sum, row_sum, column_sum, last.table);
  else
    return scaled(rule.finish(sum, row_sum, column_sum), last.scale);
}

/// Computes DistanceRule::value() of core/rows/prepared.hpp.
template <class Rule>
__device__ inline double found_value(double sum, double row_sum,
                                     double column_sum, const LastStep& last) {
  if constexpr (is_unit_rule<Rule>)
    return Rule::similarity(sum, row_sum, column_sum);
  else
    return finished(Rule(), sum, row_sum, column_sum, last);
}

/// Converts such a value to the distance. unit: see MetricEntry::is_unit_dot().
template <bool unit>
__device__ inline double found_distance(double value, Sign sign) {
  return unit ? unit_distance(sign, value) : value;
}

/// Calls use(unit) for kernels that read only such values.
template <class Use>
void with_unit(const MetricEntry& metric, Use use) {
  if (metric.is_unit_dot())
    use(std::true_type());
  else
    use(std::false_type());
}

/// Returns the lane's part of the sum over two prepared rows.
template <class Sum>
__device__ inline double lane_sum(const double* a, const double* b,
                                  std::int64_t padded, int lane) {
  double s = 0.0;
  for (std::int64_t f = lane; f < padded; f += kLanes)
    s = Sum::step(a[f], b[f], s);
  return s;
}

/// Adds the parts of 8 adjacent threads, one a lane; all threads of the warp
/// must call it. Each of the 8 gets the sum.
template <class Sum>
__device__ inline double joined(double part) {
  double v[kLanes];
#pragma unroll
  for (int l = 0; l < kLanes; ++l)
    v[l] = __shfl_sync(0xffffffffu, part, l, kLanes);
  return Sum::join(v);
}

}  // namespace cuda
}  // namespace fsknn
