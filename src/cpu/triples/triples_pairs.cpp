#include "cpu/triples/triples_pairs.hpp"

#include "core/search/within.hpp"
#include "core/search/within_answer.hpp"
#include "cpu/search/engine.hpp"

namespace fsknn {
namespace cpu {
namespace {

/// Pairs of points, each stored with the lower number.
class LowerRows final : public WithinRows {
 public:
  void allocate(const Counts& counts) override {
    for (const std::int32_t count : counts) {
      index.emplace_back(static_cast<std::size_t>(count));
      distance.emplace_back(static_cast<std::size_t>(count));
    }
  }
  Row row(std::int64_t row) override {
    const std::size_t at = static_cast<std::size_t>(row);
    return {index[at].data(), distance[at].data(), nullptr};
  }
  std::vector<std::vector<std::int32_t>> index;
  std::vector<std::vector<double>> distance;
};

}  // namespace

PairGraph::PairGraph(const Request& request, const RowSource& source,
                     const PreparedPoints& points, const TripleBound& bound,
                     double max_memory, Progress* progress)
    : edges_(static_cast<std::size_t>(points.size())) {
  // Each edge is in memory twice while it is copied.
  constexpr double kBytes = 12 + sizeof(Edge);
  Within within;
  within.limits = {bound.pair_distance};
  within.once = true;
  within.most = max_memory / kBytes;
  LowerRows rows;
  try {
    find_within(request, within, source, nullptr, rows, progress, nullptr);
  } catch (const TooManyPairs& e) {
    throw MemoryFailure(e.pairs * kBytes);
  }
  const double off = 4.0 * rounding_of_sums(points.padded);
  for (std::int64_t p = 0; p < points.size(); ++p) {
    const std::size_t id =
        static_cast<std::size_t>(points.order.id_at(Place{p}).value);
    std::vector<Edge>& edges = edges_[static_cast<std::size_t>(p)];
    edges.reserve(rows.index[id].size());
    for (std::size_t e = 0; e < rows.index[id].size(); ++e) {
      const std::int64_t other =
          points.order.place_of(PointId{rows.index[id][e] - 1}).value;
      const double both = points.sums[p] + points.sums[other];
      edges.push_back({static_cast<std::int32_t>(other),
                       both * (0.5 * (1.0 + rows.distance[id][e]) - off)});
    }
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return a.other < b.other; });
    std::vector<std::int32_t>().swap(rows.index[id]);
    std::vector<double>().swap(rows.distance[id]);
    poll_after(30.0 * static_cast<double>(edges.size()));
  }
}

Triangles::Triangles(const PairGraph& graph, const PreparedPoints& points,
                     const TripleOwners& owners, const TripleBound& bound)
    : graph_(graph),
      points_(points),
      owners_(owners),
      share_(bound.share * (1.0 + 0x1p-40)),
      least_(static_cast<std::size_t>(points.size()), -1.0) {}

void Triangles::enter(std::int64_t apex) {
  for (const std::int64_t j : others_)
    least_[static_cast<std::size_t>(j)] = -1.0;
  others_.clear();
  if (is_nearly_empty(apex)) return;
  const auto add = [&](std::int64_t other, double least) {
    if (!owners_.has(apex, other) || is_nearly_empty(other)) return;
    others_.push_back(other);
    least_[static_cast<std::size_t>(other)] = least;
  };
  if (!owners_.all())
    for (std::int64_t p = 0; p < apex; ++p) {
      const std::vector<PairGraph::Edge>& edges = graph_.of(p);
      const auto at =
          std::lower_bound(edges.begin(), edges.end(), apex,
                           [](const PairGraph::Edge& edge, std::int64_t place) {
                             return edge.other < place;
                           });
      if (at != edges.end() && at->other == apex) add(p, at->least);
    }
  for (const PairGraph::Edge& edge : graph_.of(apex))
    add(edge.other, edge.least);
}

}  // namespace cpu
}  // namespace fsknn
