#pragma once

// What the filter of a search is: its rows' form and its lists of candidates.

#include <cstdint>

#include "core/search/plan.hpp"
#include "cuda/plan/choose_filter.hpp"
#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

/// Candidates that a row of the filter has room for.
std::int32_t candidates_for(std::int64_t k);

/// The longest list there is.
static constexpr std::int32_t kMostCandidates = 8192;

/// Blocks that a list's first entries are: with some to spare more points than
/// k, an odd number of blocks.
std::int64_t fill_blocks_for(std::int64_t num_points, std::int64_t k);

/// Queries that are filtered at a time: their lists are to fit in 1 GiB.
std::int64_t queries_at_a_time(std::int64_t num_queries, std::int64_t k);

/// What the plan knows of the filter that a search would use.
struct FilterShape : FilterChoice {
  double bytes_sums = 0;         ///< of sums over stretches of features
  std::int32_t capacity = 0;     ///< candidates that a list has room for
  std::int64_t fill_blocks = 1;  ///< blocks that a list's first entries are
};
/// Of such a search; FilteredSearch::graph is one of queries where there are
/// some.
FilterShape filter_shape(const PlanInput& input, const GpuFacts& gpus,
                         FilteredSearch search);

/// The same with room for centred rows, where these may be better.
FilterShape with_room_to_centre(const FilterShape& shape, const GpuFacts& gpus);

/// The filter's rows and candidate lists of a search, and the lists of
/// neighbours.
double bytes_filter(const PlanInput& input, const FilterShape& shape);

/// How rows whose candidates overflowed are filtered again: so many at a time,
/// with lists that are up to sixteen times as long, in the memory of the
/// search's own.
struct WideRows {
  /// form_bytes: a slot's, of the filter.
  WideRows(std::int64_t num_slots, std::int32_t list_capacity,
           std::int64_t form_bytes, std::int64_t padded);
  std::int32_t capacity;
  std::int64_t rows;  ///< whole blocks
  double row_bytes;   ///< besides the lists
  bool own_lists;     ///< the search's are too few for one block
  double bytes() const {
    return static_cast<double>(rows) *
           (row_bytes + (own_lists ? 8.0 * capacity : 0.0));
  }
};

}  // namespace cuda
}  // namespace fsknn
