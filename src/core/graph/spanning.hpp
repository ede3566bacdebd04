#pragma once

// The minimum spanning tree of the complete graph of all points, from each
// point's nearest neighbours and searches beyond these (Boruvka 1926).

#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/buffer.hpp"

namespace fsknn {

/// An undirected edge; points are numbered from 0, low < high.
struct TreeEdge {
  double distance = std::numeric_limits<double>::infinity();
  std::int32_t low = std::numeric_limits<std::int32_t>::max();
  std::int32_t high = std::numeric_limits<std::int32_t>::max();

  /// True for no edge, which is longer than every edge.
  bool is_none() const {
    return low == std::numeric_limits<std::int32_t>::max();
  }
};

inline TreeEdge edge_between(double distance, std::int32_t i, std::int32_t j) {
  TreeEdge e;
  e.distance = distance;
  e.low = i < j ? i : j;
  e.high = i < j ? j : i;
  return e;
}

/// The total order of edges: (distance, lower end, higher end). It makes the
/// tree unique. Of two edges at a point i, the one to the earlier point of i's
/// list comes first.
inline bool shorter(const TreeEdge& a, const TreeEdge& b) {
  if (a.distance != b.distance) return a.distance < b.distance;
  return a.low != b.low ? a.low < b.low : a.high < b.high;
}

/// The nearest of each point, by (distance, index). A point that is left out
/// has an empty list.
struct NearLists {
  std::vector<std::int64_t> start;  ///< [points + 1]
  Buffer<std::int32_t> index;
  Buffer<double> distance;

  std::int32_t num_points() const {
    return static_cast<std::int32_t>(start.size()) - 1;
  }
  bool empty(std::int32_t i) const {
    return start[static_cast<std::size_t>(i)] ==
           start[static_cast<std::size_t>(i) + 1];
  }
};

/// Disjoint sets of points.
class Components {
 public:
  explicit Components(std::int64_t num_points);
  std::int32_t find(std::int32_t i) {
    while (parent_[static_cast<std::size_t>(i)] != i) {
      std::int32_t& up = parent_[static_cast<std::size_t>(i)];
      up = parent_[static_cast<std::size_t>(up)];
      i = up;
    }
    return i;
  }
  /// Returns false if they were already joined.
  bool join(std::int32_t i, std::int32_t j);

 private:
  std::vector<std::int32_t> parent_, size_;
};

/// Searches beyond the lists.
class Outside {
 public:
  virtual ~Outside() = default;
  /// component[i]: the number of i's component, -1 for a point left out. For
  /// each component with points to search, lowers best[c] to the shortest edge
  /// that leaves the component. The caller guarantees that the other points of
  /// the component have no shorter edge than best[c].
  virtual void lower(const std::vector<std::int32_t>& component,
                     const std::vector<char>& search,
                     std::vector<TreeEdge>& best) = 0;
};

/// The tree's edges, shortest first.
std::vector<TreeEdge> spanning_tree(const NearLists& lists, Outside& outside);

}  // namespace fsknn
