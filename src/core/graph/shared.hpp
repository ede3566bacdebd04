#pragma once

// Shared-nearest-neighbour graphs: points with common neighbours are joined.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.hpp"

namespace fsknn {

/// Each point's neighbours, from 0, the nearest first. Those of point i are
/// index[start[i]] .. index[start[i + 1] - 1].
struct NeighbourSets {
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> index;
  std::int64_t num_points() const {
    return static_cast<std::int64_t>(start.size()) - 1;
  }
};

/// The similarity of two points. A point is in its own set, at rank 0.
enum class SharedKind {
  rank,    ///< k - r / 2; r: least sum of a shared neighbour's two ranks
  number,  ///< the number of shared neighbours
  jaccard  ///< the shared ones among those in either set
};

struct SharedEdges {
  std::vector<std::int32_t> from, to;  ///< from 1; from < to
  std::vector<double> similarity;
};

/// Pairs of points that share a neighbour and have at least this similarity, in
/// order of (from, to), for some points at a time. Similarities of 0 or less
/// become 1e-6, as in bluster, so that the edge remains. Throws TooManyPairs
/// (core/search/within.hpp) for more than `most`.
std::vector<SharedEdges> shared_neighbours(const NeighbourSets& sets,
                                           SharedKind kind, double least,
                                           double most, int num_threads,
                                           Progress* progress);

}  // namespace fsknn
