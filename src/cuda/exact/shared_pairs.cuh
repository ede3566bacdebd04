#pragma once

// The exact step of a graph that computes a pair in two lists once, for both.
// Near pairs are usually in both lists.
//
// A list that takes part uses at most half of its capacity. Its memory is
// rewritten: the candidates' slots, ascending, and later their distances, each
// at the position of its slot.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/exact/candidates.hpp"

namespace fsknn {
namespace cuda {

FSKNN_HD inline std::int32_t most_shared(std::int32_t capacity) {
  return capacity / 2;
}

/// Returns whether a list of this many candidates takes part.
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

/// Returns whether it pays: rows and columns are the same slots, and
/// similarities do not give the sums.
bool may_share_pairs(const ExactStep& step);

/// Does what run_exact() does, in this way. Rows whose lists take no part are
/// recomputed; the entries of all lists are lost. The capacity must be a power
/// of two.
void run_exact_shared(const MetricEntry& metric, const ExactStep& step,
                      const Stream& stream);

}  // namespace cuda
}  // namespace fsknn
