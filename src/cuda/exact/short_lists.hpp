#pragma once

// The exact step of lists that may be short: in a search that starts from
// limits, a point may have fewer than k candidates, or none.

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/numbers.hpp"
#include "core/contract/metric.hpp"
#include "cuda/exact/candidates.hpp"
#include "cuda/exact/select.hpp"

namespace fsknn {
namespace cuda {

/// The lists of some slots; rows and columns are the same slots. All pointers
/// are device memory.
struct ShortLists {
  CandidateLists lists;
  Slot first_slot = {0}, end_slot = {0};
  const double* rows = nullptr;  ///< [.. x padded], by place
  const double* sums = nullptr;  ///< by place
  std::int64_t padded = 0;
  LastStep undo;  ///< takes off the matrix's scaling
  /// Out: [end_slot - first_slot x k], each list by (distance, index), then
  /// infinity and kNoPoint.
  Lists nearest;
  /// Out: [end_slot - first_slot] the length of the list, at most k;
  /// kOverflowed: the neighbours must be found in another way.
  std::int32_t* counts = nullptr;
};
void start_short_lists(const MetricEntry& metric, const ShortLists& step,
                       cudaStream_t stream);

}  // namespace cuda
}  // namespace fsknn
