#pragma once

// Shared-nearest-neighbour graphs: which points have neighbours in common.

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.hpp"

namespace fsknn {

/// Each point's neighbours, from 0, the nearest first: those of point i are
/// index[start[i]] .. index[start[i + 1] - 1].
struct NeighbourSets {
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> index;
  std::int64_t num_points() const {
    return static_cast<std::int64_t>(start.size()) - 1;
  }
};

/// What two points have in common. A point is in its own set, at rank 0.
enum class SharedKind {
  rank,    ///< k - r / 2, r the least sum of two ranks of a shared neighbour
  number,  ///< how many are shared
  jaccard  ///< of how many that are in either set
};

struct SharedEdges {
  std::vector<std::int32_t> from, to;  ///< from 1; from < to
  std::vector<double> similarity;
};

/// Pairs of points that share a neighbour and are at least that similar, in
/// order of (from, to), some points at a time. Similarities that would be 0 or
/// less are 1e-6, as bluster has it: an edge is an edge.
/// Throws TooManyPairs (core/search/within.hpp) beyond `most`.
std::vector<SharedEdges> shared_neighbours(const NeighbourSets& sets,
                                           SharedKind kind, double least,
                                           double most, int num_threads,
                                           Progress* progress);

}  // namespace fsknn
