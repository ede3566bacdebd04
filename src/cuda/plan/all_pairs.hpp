#pragma once

// The plan of every pair in doubles, of points that a device holds or that come
// in panels; and what any plan counts with.

#include <cstdint>

#include "core/search/plan.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/plan/pair_bands.hpp"
#include "cuda/plan/units.hpp"

namespace fsknn {
namespace cuda {

// 8,192 x 8,192 distances are 512 MiB: enough to fill any GPU, little enough to
// fit one, and a fraction of a second.
static constexpr std::int64_t kLargestChunk = 8192;
// Smaller chunks are not made only to give every GPU one.
static constexpr std::int64_t kLeastShare = 1024;

/// The numbers of a search.
struct SearchSizes {
  explicit SearchSizes(const PlanInput& input);
  std::int64_t rows, points, given, queries, features, padded, k;
  double made_from;  ///< bytes, of points that devices make
  bool correlation;
  bool ranked;  ///< or may be
};

/// Pieces of the answer on their way to the host, of lists of `rows` rows.
double bytes_answer(std::int64_t rows, std::int64_t k);

/// Every pair, of points that are held: what fits, or else the smallest chunks.
/// blocks: of threads of a device, for products on tensor cores; 0: without.
Plan plan_all_pairs(const PlanInput& input, double bytes_usable,
                    int blocks = 0);

/// Lets such a plan of a graph meet pairs once, as far as there is room for the
/// lists of more splits. Returns of how many at a time.
std::int64_t meet_in_bands(Plan& plan, double bytes_usable);

/// Whether tensor cores make the products, where no filter does.
bool tensor_cores_serve(const PlanInput& input, const GpuFacts& gpus);

/// Whether all pairs on tensor cores are sooner made than those that a filter
/// leaves, which are gathered one by one: many neighbours of long rows.
bool all_pairs_pay(const PlanInput& input);

/// The same of points that come in panels.
Plan plan_all_pairs_panels(const PlanInput& input, double bytes_usable);

}  // namespace cuda
}  // namespace fsknn
