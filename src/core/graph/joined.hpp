#pragma once

// Neighbours as an undirected graph: the two directions of a pair made one.

#include <cstdint>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/errors.hpp"
#include "core/base/progress.hpp"
#include "core/graph/spanning.hpp"

namespace fsknn {

/// Which pairs are there: those that either direction makes, or both.
enum class JoinKind { either, both };

/// Each pair in both its rows. The partners of point i, in order of their
/// numbers, are index[start[i]] .. index[start[i + 1] - 1].
struct JoinedGraph {
  std::vector<std::int64_t> start{0};  ///< [points + 1]
  Buffer<std::int32_t> index;
  Buffer<double> length;
  std::int64_t num_points() const {
    return static_cast<std::int64_t>(start.size()) - 1;
  }
  /// Where the pairs of `point` are; as far as `point` points go, all before.
  std::int64_t row(std::int64_t point) const {
    return start[static_cast<std::size_t>(point)];
  }
};

/// A point has the same neighbour twice, or is its own.
struct RepeatedNeighbour : Failure {
  explicit RepeatedNeighbour(std::int32_t point_)
      : Failure("A point has the same neighbour twice."), point(point_) {}
  std::int32_t point;  ///< the first such, from 0
};

/// lists: neighbours of each point, in any order. Of two directions with
/// different distances the smaller one counts. Throws RepeatedNeighbour.
JoinedGraph join_directions(const NearLists& lists, JoinKind kind,
                            int num_threads, Progress* progress);

/// Of each point the distance to the `rank`-th nearest (from 1) of its
/// neighbours in `lists`, the last where it has fewer; where it has none, of
/// its partners in the graph, and 0 without any. Where that is 0, since so many
/// are the same as the point: the distance of the nearest that is not; of a
/// point that has none of these, the smallest of all other points; 1 where
/// there is no distance above 0 at all.
std::vector<double> local_scales(const NearLists& lists,
                                 const JoinedGraph& graph, std::int64_t rank,
                                 int num_threads);

}  // namespace fsknn
