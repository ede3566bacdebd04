#pragma once

// The graph of pairs that a triple above a threshold can have, and its
// triangles.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/poll.hpp"
#include "core/base/progress.hpp"
#include "core/search/triples.hpp"

namespace fsknn {
namespace cpu {

class PairGraph {
 public:
  struct Edge {
    std::int32_t other;  ///< the higher place
    double least;        ///< lower bound on the sum of maxima, with rounding
  };
  /// Throws MemoryFailure if edges take more than max_memory bytes.
  PairGraph(const Request& request, const RowSource& source,
            const PreparedPoints& points, const TripleBound& bound,
            double max_memory, Progress* progress);
  /// The edges to higher places, ascending.
  const std::vector<Edge>& of(std::int64_t place) const {
    return edges_[static_cast<std::size_t>(place)];
  }

 private:
  std::vector<std::vector<Edge>> edges_;
};

/// One thread's search for triangles of an apex without nearly empty points.
class Triangles {
 public:
  Triangles(const PairGraph& graph, const PreparedPoints& points,
            const TripleOwners& owners, const TripleBound& bound);
  /// Calls each(j, k), with the places of the other two, j < k, for triangles
  /// that may exceed the threshold, for rows j with wanted(j).
  template <class Wanted, class Each>
  void of(std::int64_t apex, const Wanted& wanted, const Each& each) {
    enter(apex);
    for (const std::int64_t j : others_) {
      if (!wanted(j)) continue;
      const double of_j = least_[static_cast<std::size_t>(j)];
      const double both = points_.sums[apex] + points_.sums[j];
      const std::vector<PairGraph::Edge>& edges = graph_.of(j);
      for (const PairGraph::Edge& edge : edges) {
        const double of_k = least_[static_cast<std::size_t>(edge.other)];
        if (of_k < 0.0) continue;
        looked_at_ += 1.0;
        const double least = std::max(edge.least, std::max(of_j, of_k));
        if (least <= share_ * (both + points_.sums[edge.other]))
          each(j, std::int64_t{edge.other});
      }
      poll_after(2.0 * static_cast<double>(edges.size()));
    }
  }
  double looked_at() const { return looked_at_; }

 private:
  void enter(std::int64_t apex);
  bool is_nearly_empty(std::int64_t place) const {
    return points_.sums[place] < kNearlyEmpty;
  }
  const PairGraph& graph_;
  const PreparedPoints& points_;
  const TripleOwners& owners_;
  const double share_;
  std::vector<std::int64_t> others_;
  std::vector<double> least_;  ///< by place; -1: no pair with the apex
  double looked_at_ = 0;
};

}  // namespace cpu
}  // namespace fsknn
