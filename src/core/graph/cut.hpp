#pragma once

// MST-kNN (Inostroza-Ponta 2008; Arefin et al. 2011): cuts the edges of a
// spanning tree whose ends are not near each other by rank.

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/graph/spanning.hpp"

namespace fsknn {

/// Compares ranks beyond the lists; several threads may call it at once.
class Ranks {
 public:
  virtual ~Ranks() = default;
  /// Whether fewer than k of `members`, except i, precede the other end of the
  /// edge in i's order by (distance, index).
  virtual bool is_near(std::int32_t i, const TreeEdge& edge, std::int64_t k,
                       const std::vector<std::int32_t>& members) const = 0;
};

struct Cut {
  std::vector<char> kept;             ///< for each edge of the forest
  std::vector<std::int32_t> cluster;  ///< from 0, the largest cluster first
};

/// floor(ln n), limited to the range from 1 to `most`.
std::int64_t near_ranks(std::int64_t num_members, std::int64_t most);

/// An edge of a component of n_c points is kept if either end is among the
/// other's near_ranks(n_c, most) nearest within the component. This is repeated
/// for the resulting components until nothing changes. beyond (may be null)
/// decides if a list is too short; without it, points beyond a list do not
/// count.
///
/// The forest need not be recomputed: a connected part of the whole tree is the
/// minimum spanning tree of its points. A kept edge remains kept until
/// near_ranks() decreases, since ranks among fewer points are no higher. So
/// each edge is tested at most ln n times.
Cut cut_forest(const std::vector<TreeEdge>& forest, const NearLists& lists,
               std::int64_t most, const Ranks* beyond, int num_threads,
               Progress* progress);

}  // namespace fsknn
