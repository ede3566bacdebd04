#pragma once

// The filter of a search: the form of its rows and its lists of candidates.

#include <cstdint>

#include "core/search/plan.hpp"
#include "cuda/plan/choose_filter.hpp"
#include "cuda/plan/filter_blocks.hpp"

namespace fsknn {
namespace cuda {

/// The number of candidates for which a row of the filter has room.
std::int32_t candidates_for(std::int64_t k);

/// The same for a search of that many queries. A few of them have longer lists,
/// which take few rounds: see FilterRounds::room.
std::int32_t candidates_for_queries(std::int64_t k, std::int64_t num_queries);

/// The capacity of the longest lists.
static constexpr std::int32_t kMostCandidates = 8192;

/// The number of blocks that are a list's first entries: an odd number, with
/// some more points than k.
std::int64_t fill_blocks_for(std::int64_t num_points, std::int64_t k);

/// The number of queries that are filtered at a time, with lists of at most 1
/// GiB.
std::int64_t queries_at_a_time(std::int64_t num_queries, std::int64_t k);

/// Whether points are put in the order of a tree, so that blocks are pruned.
enum class TreeUse { never, if_it_pays, always };

/// The facts about a search's filter in its plan.
struct FilterShape : FilterChoice {
  double bytes_sums = 0;         ///< for sums over ranges of features
  std::int32_t capacity = 0;     ///< candidates in a list
  std::int64_t fill_blocks = 1;  ///< blocks that are a list's first entries
  TreeUse tree = TreeUse::never;
  /// A device's blocks are searched in this many parts, so that only a part's
  /// lists are there at a time. Above 1 there must be a tree.
  std::int64_t parts = 1;
  bool needs_tree = false;  ///< without it the plan is another one
};
/// The filter of such a search. FilteredSearch::graph becomes queries if there
/// are some.
FilterShape filter_shape(const PlanInput& input, const GpuFacts& gpus,
                         FilteredSearch search);

/// The same with room for centred rows, if these may be better.
FilterShape with_room_to_centre(const FilterShape& shape, const GpuFacts& gpus);

/// The bytes of a search's filter rows, its candidate lists and its lists of
/// neighbours; those of a part, if input.num_workers devices use a tree.
double bytes_filter(const PlanInput& input, const FilterShape& shape);

/// The capacity of a list in the order of a tree. Near points come first, and
/// all of a block may be nearer than the k-th so far.
inline std::int32_t candidates_in_tree(std::int64_t k) {
  return 2 * candidates_for(k);
}

/// How rows whose candidates overflowed are filtered again: this many at a
/// time, in the memory of the search's lists. Their lists are up to sixteen
/// times as long.
struct WideRows {
  /// form_bytes: of a slot in the filter's form.
  WideRows(std::int64_t num_slots, std::int32_t list_capacity,
           std::int64_t form_bytes, std::int64_t padded);
  std::int32_t capacity;
  std::int64_t rows;  ///< whole blocks
  double row_bytes;   ///< without the lists
  bool own_lists;     ///< the search's lists are too few for one block
  double bytes() const {
    return static_cast<double>(rows) *
           (row_bytes + (own_lists ? 8.0 * capacity : 0.0));
  }
};

}  // namespace cuda
}  // namespace fsknn
