#pragma once

// Neighbours as an undirected graph: joins the two directions of a pair.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/errors.hpp"
#include "core/base/progress.hpp"
#include "core/graph/spanning.hpp"

namespace fsknn {

/// The pairs of the graph: those in either direction, or in both.
enum class JoinKind { either, both };

/// Each pair is in both of its rows. The partners of point i, in order of their
/// ids, are index[start[i]] .. index[start[i + 1] - 1].
struct JoinedGraph {
  std::vector<std::int64_t> start{0};  ///< [points + 1]
  Buffer<std::int32_t> index;
  Buffer<double> length;
  std::int64_t num_points() const {
    return static_cast<std::int64_t>(start.size()) - 1;
  }
  /// The first pair of `point`, and the end of the point before it.
  std::int64_t row(std::int64_t point) const {
    return start[static_cast<std::size_t>(point)];
  }
};

/// A point has the same neighbour twice, or itself.
struct RepeatedNeighbour : Failure {
  explicit RepeatedNeighbour(std::int32_t point_)
      : Failure("A point has the same neighbour twice."), point(point_) {}
  std::int32_t point;  ///< the first such point, from 0
};

/// lists: the neighbours of each point, in any order. If the two directions
/// have different distances, the smaller one counts. Throws RepeatedNeighbour.
JoinedGraph join_directions(const NearLists& lists, JoinKind kind,
                            int num_threads, Progress* progress);

/// The distance of each point to the `rank`-th nearest (from 1) of its
/// neighbours in `lists`, or to the last if it has fewer. A point without a
/// list uses its partners in the graph; without any it gets 0. Zeros, as for
/// points with many duplicates, are replaced by the distance to the nearest
/// neighbour that differs. If there is none, the smallest value of all other
/// points replaces it, or 1 if no distance is positive.
std::vector<double> local_scales(const NearLists& lists,
                                 const JoinedGraph& graph, std::int64_t rank,
                                 int num_threads);

}  // namespace fsknn
