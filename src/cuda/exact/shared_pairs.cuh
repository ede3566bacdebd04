#pragma once

// The exact step of a graph: a pair that two lists have is made once, for both.
// What is near is near from both sides more often than not.
//
// A list that takes part has at most half of the candidates that it has room
// for. Its memory is written anew: the candidates' slots, ascending, and later
// their distances, each at the place of its slot.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/exact/candidates.hpp"

namespace fsknn {
namespace cuda {

FSKNN_HD inline std::int32_t most_shared(std::int32_t capacity) {
  return capacity / 2;
}

/// Whether a list of so many candidates takes part.
FSKNN_HD inline bool is_shared(std::int32_t count, std::int64_t k,
                               std::int32_t capacity) {
  return count >= k && count <= most_shared(capacity);
}

struct SharedList {
  std::int32_t* slots;
  double* distances;
};
__device__ inline SharedList shared_list(const CandidateLists& lists,
                                         std::int64_t slot) {
  static_assert(sizeof(Candidate) == sizeof(double) &&
                    sizeof(Candidate) == 2 * sizeof(std::int32_t),
                "half of a list for distances, and less for slots");
  const std::int32_t half = most_shared(lists.capacity);
  Candidate* const list = lists.entries + slot * lists.capacity;
  return {reinterpret_cast<std::int32_t*>(list),
          reinterpret_cast<double*>(list + (lists.capacity - half))};
}

/// Whether it pays: rows and columns are the same slots, sums are not told.
bool may_share_pairs(const ExactStep& step);

/// run_exact() so. Lists that do not take part are done again; the entries of
/// all are gone after it. The capacity is a power of two.
void run_exact_shared(const MetricEntry& metric, const ExactStep& step,
                      const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
