#pragma once

// MST-kNN (Inostroza-Ponta 2008; Arefin et al. 2011): a spanning tree is cut
// where it joins points that are not near each other by rank.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/graph/spanning.hpp"

namespace fsknn {

/// What lies beyond the lists; called by several threads at once.
class Ranks {
 public:
  virtual ~Ranks() = default;
  /// Whether fewer than k of `members` other than i come before the point at
  /// the edge's other end in i's order by (distance, index).
  virtual bool is_near(std::int32_t i, const TreeEdge& edge, std::int64_t k,
                       const std::vector<std::int32_t>& members) const = 0;
};

struct Cut {
  std::vector<char> kept;             ///< for each edge of the forest
  std::vector<std::int32_t> cluster;  ///< from 0, the largest cluster first
};

/// floor(ln n), at least 1 and at most `most`.
std::int64_t near_ranks(std::int64_t num_members, std::int64_t most);

/// An edge of a component of n_c points stays if either end is among the
/// other's near_ranks(n_c, most) nearest within the component; so on with what
/// it falls into, until nothing changes. beyond (may be null): where a list
/// does not tell; without it, what is in no list does not count.
///
/// The forest need not be made again: the minimum spanning tree of points that
/// a connected piece of the whole tree joins is that piece. And an edge that
/// stayed goes on to stay until near_ranks() falls, since ranks within fewer
/// points are no higher: each edge is tested at most ln n times.
Cut cut_forest(const std::vector<TreeEdge>& forest, const NearLists& lists,
               std::int64_t most, const Ranks* beyond, int num_threads,
               Progress* progress);

}  // namespace fsknn
