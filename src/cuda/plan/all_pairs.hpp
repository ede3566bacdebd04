#pragma once

// The plan for all pairs in doubles, with points held by a device or in panels;
// and the sizes that every plan uses.

#include <cstdint>

#include "core/search/plan.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/plan/pair_bands.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

// 8,192 x 8,192 distances take 512 MiB: enough to fill any GPU, small enough to
// fit on one, and a fraction of a second.
static constexpr std::int64_t kLargestChunk = 8192;
// Chunks are not made smaller than this only to give every GPU one.
static constexpr std::int64_t kLeastShare = 1024;

/// The sizes of a search.
struct SearchSizes {
  explicit SearchSizes(const PlanInput& input);
  std::int64_t rows, points, given, queries, features, padded, k;
  double made_from;  ///< bytes of points that devices generate
  bool correlation;
  bool ranked;  ///< or may be ranked
};

/// The bytes of an answer's pieces in transfer to the host, for lists of `rows`
/// rows.
double bytes_answer(std::int64_t rows, std::int64_t k);

/// Plans all pairs of held points with chunks that fit, or else with the
/// smallest chunks. blocks: of threads on a device for products on tensor
/// cores; 0: without.
Plan plan_all_pairs(const PlanInput& input, double bytes_usable,
                    int blocks = 0);

/// Makes such a plan of a graph compare pairs only once, as far as the lists of
/// more splits fit in memory. Returns the number of splits at a time.
std::int64_t meet_in_bands(Plan& plan, double bytes_usable);

/// Whether tensor cores can compute the products without a filter.
bool tensor_cores_serve(const PlanInput& input, const GpuFacts& gpus);

/// Whether all pairs on tensor cores are faster than a filter, whose candidates
/// are gathered one by one. This holds for many neighbours of long rows.
bool all_pairs_pay(const PlanInput& input);

/// Plans all pairs of points in panels.
Plan plan_all_pairs_panels(const PlanInput& input, double bytes_usable);

}  // namespace cuda
}  // namespace fsknn
