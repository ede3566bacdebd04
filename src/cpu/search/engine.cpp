#include "cpu/search/engine.hpp"

#include "core/base/pieces.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/by_groups.hpp"
#include "cpu/missing/masked_search.hpp"
#include "cpu/search/held.hpp"
#include "cpu/search/unheld.hpp"

namespace fsknn {
namespace cpu {

void find_neighbours(const Request& given, const RowSource& points,
                     const RowSource* queries, const Neighbours& out,
                     Progress* progress, Stats* stats) {
  const Request asked = suited(given, points, queries, progress);
  if (asked.groups != nullptr &&
      (queries != nullptr || asked.na_pairwise || points.on_disk()))
    return find_by_groups(
        asked, points, queries, out, progress, stats,
        [&](const Request& part, const RowSource* rows, const Neighbours& to,
            Progress* of_part, Stats* found) {
          find_neighbours(part, points, rows, to, of_part, found);
        });
  if (asked.na_pairwise)
    return find_masked(asked, points, queries, out, progress, stats);
  const double rows_asked = static_cast<double>(
      queries != nullptr ? queries->num_points() : points.num_points());
  // The filter computes some 16 products in one instruction.
  Request request = asked;
  request.num_threads = useful_threads(
      asked.num_threads, rows_asked * static_cast<double>(points.num_points()) *
                             static_cast<double>(points.num_features()) / 16);
  if (few_queries(request, queries))
    return find_for_few(request, points, *queries, out, progress, stats);
  if (points.on_disk() || (queries != nullptr && queries->on_disk()))
    return find_streamed(request, points, queries, out, progress, stats);
  HeldPoints(request, points)
      .find_neighbours(request, queries, out, progress, stats);
}

}  // namespace cpu
}  // namespace fsknn
