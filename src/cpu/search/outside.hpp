#pragma once

// Finds the shortest edges that leave components of points, by the filter and
// the exact step of the CPU engine.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/graph/cut.hpp"
#include "core/graph/spanning.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/plan.hpp"
#include "cpu/filter/form.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/pass.hpp"

namespace fsknn {
namespace cpu {

/// Points in their exact form, and the distance of any two of them. Points are
/// given by their numbers.
class ExactPoints : public Ranks {
 public:
  /// progress (may be null) is polled only for interrupts.
  ExactPoints(const Request& request, const RowSource& source,
              Progress* progress);

  bool is_near(std::int32_t i, const TreeEdge& edge, std::int64_t k,
               const std::vector<std::int32_t>& members) const override;
  /// The signed r of an edge's ends; only for correlations.
  double correlation(const TreeEdge& edge) const;

  Place place(std::int32_t i) const {
    return points.order.place_of(PointId{i});
  }

  const Kernels& kernels;
  const MetricEntry metric;
  const DistanceRule rule;
  const PreparedPoints points;

 private:
  struct Suited {};
  ExactPoints(const Request& request, const RowSource& source,
              Progress* progress, Suited);
  ExactPoints(const Request& request, const RowSource& source, int exponent,
              Progress* progress);
};

/// Searches all pairs of a searched point and any other point in one pass. Each
/// component has one threshold: its shortest leaving edge so far. Boxes prune
/// tiles where a sample says that it pays.
class OutsideSearch final : public Outside {
 public:
  /// The points and the request must outlive this object.
  OutsideSearch(const ExactPoints& exact, const Request& request,
                Progress* progress);
  void lower(const std::vector<std::int32_t>& component,
             const std::vector<char>& search,
             std::vector<TreeEdge>& best) override;

  int passes() const { return passes_; }
  /// The pairs of all passes.
  const PassCounts& counts() const { return counts_; }

 private:
  void prepare();

  const ExactPoints& exact_;
  const Request& request_;
  Progress* progress_;
  Plan plan_;
  FilterScale scale_;
  Thresholds thresholds_;
  FilterRows rows_;                 ///< in the order of exact_.points
  std::vector<std::int32_t> twin_;  ///< [points]: the first with an equal row
  /// [places] the point's number in the order of a tree; empty: no boxes.
  std::vector<std::int32_t> rank_;
  PassCounts counts_;
  int passes_ = 0;
};

}  // namespace cpu
}  // namespace fsknn
