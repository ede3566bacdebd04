#pragma once

// Which filter a search has: the one place where that is decided. What it
// knows without looking at any point is here; what a sample of the points says
// (PairFilter::learn()) takes its answer down RowsInForm::otherwise(), form by
// form. Plain C++, tested without a GPU; the table of forms by searches in
// CONTRIBUTING.md is made by asking this.

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
  queries_within,   ///< queries within a distance of them
  blocks,           ///< pairs between two blocks, both held
  pairwise          ///< values are missing: over common samples (missing/)
};

/// What a filter is asked for.
struct FilterAsked {
  FilteredSearch search = FilteredSearch::graph;
  FilterKind filter = FilterKind::none;  ///< as the metric declares
  bool unit = false;                     ///< products of rows of length 1
  bool squares = false;                  ///< squared differences of raw rows
  std::int64_t num_points = 0;           ///< that each row meets
  std::int64_t num_rows = 0;
  std::int64_t num_features = 0;
  std::int64_t k = 0;  ///< 0: all within a distance
  AskedNumbers asked;

  FilterAsked() = default;
  /// Of such a request's metric, but for the sizes.
  FilterAsked(FilteredSearch kind, const Request& request);
};

/// What it is, before a sample of the points says more.
struct FilterChoice {
  RowsInForm rows;  ///< of NumberForm::none: there is no filter
  /// In that form, whether or not it pays.
  bool forced = false;
  /// Rows may be centred where there is room: RowsInForm::may_centre.
  bool may_centre = false;
  /// byte_candidate_cost()
  double candidate_cost = byte_candidate_cost(kMostSettled);

  bool usable() const { return rows.form != NumberForm::none; }
  void make_room_to_centre() {
    if (may_centre) rows = rows.with_room_to_centre();
  }
};

/// Such devices' filter; none where none pays, or has a bound.
FilterChoice choose_filter(const FilterAsked& asked, const GpuFacts& gpus);

/// Fewer points, or queries, are done in doubles as fast.
static constexpr std::int64_t kLeastFilteredPoints = 4096;
static constexpr std::int64_t kLeastFilteredQueries = 256;
/// And points on either side of two blocks.
static constexpr std::int64_t kLeastSideFiltered = kFilterBlock;

}  // namespace cuda
}  // namespace fsknn
