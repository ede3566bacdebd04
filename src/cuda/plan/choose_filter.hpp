#pragma once

// Chooses the filter of a search; nothing else decides this. The choice here
// uses facts that need no point. A sample of the points (PairFilter::learn())
// may then move on along RowsInForm::otherwise(), form by form. Plain C++,
// tested without a GPU. The table of forms by searches in CONTRIBUTING.md is
// generated from it.

#include <cstdint>

#include "core/search/plan.hpp"
#include "cuda/plan/filter_blocks.hpp"
#include "cuda/plan/gpu_facts.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// The searches that filter pairs. Held: the device has all points in double.
enum class FilteredSearch {
  graph,            ///< of held points
  graph_in_panels,  ///< points come in panels
  graph_by_groups,  ///< all groups at once
  queries,          ///< against held points
  within,           ///< pairs within a distance of held points
  queries_within,   ///< queries within a distance of held points
  blocks,           ///< pairs between two blocks, both held
  pairwise          ///< missing values: over common samples (missing/)
};

/// The search for which a filter is chosen.
struct FilterAsked {
  FilteredSearch search = FilteredSearch::graph;
  FilterKind filter = FilterKind::none;  ///< declared by the metric
  bool unit = false;                     ///< products of rows of length 1
  bool squares = false;                  ///< squared differences of raw rows
  int alleles = 0;                       ///< in a sample, for tables of them
  std::int64_t num_points = 0;           ///< with which each row is compared
  std::int64_t num_rows = 0;
  std::int64_t num_features = 0;
  std::int64_t k = 0;  ///< 0: all within a distance
  AskedNumbers asked;

  FilterAsked() = default;
  /// Takes all but the sizes from the request and its metric.
  FilterAsked(FilteredSearch kind, const Request& request);
};

/// The choice before a sample of the points refines it.
struct FilterChoice {
  RowsInForm rows;  ///< of NumberForm::none: no filter
  /// Whether the form was requested, so that it is used even if it does not
  /// pay.
  bool forced = false;
  /// Whether rows may be centred if there is room: RowsInForm::may_centre.
  bool may_centre = false;
  /// See byte_candidate_cost().
  double candidate_cost = byte_candidate_cost(kMostReranked);

  bool usable() const { return rows.form != NumberForm::none; }
  void make_room_to_centre() {
    if (may_centre) rows = rows.with_room_to_centre();
  }
};

/// Chooses the filter for such devices; none if none pays or has a bound.
FilterChoice choose_filter(const FilterAsked& asked, const GpuFacts& gpus);

/// With fewer points, or queries, doubles are as fast.
static constexpr std::int64_t kLeastFilteredPoints = 4096;
static constexpr std::int64_t kLeastFilteredQueries = 256;
/// The same for the points on either side of two blocks.
static constexpr std::int64_t kLeastSideFiltered = kFilterBlock;

}  // namespace cuda
}  // namespace fsknn
