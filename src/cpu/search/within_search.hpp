#pragma once

// One search for pairs within a distance, as search.hpp but with fixed
// thresholds.

#include <cstdint>

#include "core/contract/request.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/plan.hpp"
#include "core/search/within.hpp"
#include "cpu/filter/form.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/pass.hpp"
#include "cpu/search/prepared_pairs.hpp"

namespace fsknn {
namespace cpu {

/// Makes one or more passes over all pairs. Pairs that pass the filter at the
/// limits' thresholds go to the collector with their exact sums.
class WithinSearch {
 public:
  /// `scale` must have its slack. It and the other references must outlive the
  /// search.
  WithinSearch(const Request& request, const Within& within, const Plan& plan,
               const Kernels& kernels, const DistanceRule& rule,
               const FilterScale& scale, const PointBlock& rows,
               const PointBlock& columns, Progress* progress);

  /// from, to: shares of the whole work.
  void run(WithinCollector& collector, double from, double to);

  const PassCounts& counts() const { return counts_; }

 private:
  class Sink;

  const Request& request_;
  const MetricEntry& metric_;
  const Plan& plan_;
  const Kernels& kernels_;
  const DistanceRule& rule_;
  const FilterScale& scale_;
  const PointBlock rows_, columns_;
  const bool symmetric_;
  Progress* progress_;
  std::int32_t keep_none_;
  Buffer<std::int32_t> threshold_;  ///< one for each row, in the filter's order
  PassCounts counts_;
};

}  // namespace cpu
}  // namespace fsknn
