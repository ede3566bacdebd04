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
    std::conditional_t<std::is_base_of<Proportional, Metric>::value,
                       Proportional, Metric>>;

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

/// Computes DistanceRule::value() of core/rows/prepared.hpp.
template <class Rule>
__device__ inline double found_value(double sum, double row_sum,
                                     double column_sum, PowerOfTwo undo) {
  if constexpr (std::is_base_of<UnitDot<Rule::sign>, Rule>::value)
    return Rule::similarity(sum, row_sum, column_sum);
  else
    return scaled(Rule::finish(sum, row_sum, column_sum), undo);
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
