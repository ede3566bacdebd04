#include "cpu/search/engine.hpp"

#include <algorithm>

#include "core/base/pieces.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/by_groups.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/missing/masked_search.hpp"
#include "cpu/search/held.hpp"
#include "cpu/search/unheld.hpp"

namespace fsknn {
namespace cpu {

int threads_for(int asked, std::int64_t rows, std::int64_t columns,
                std::int64_t features) {
  return useful_threads(
      asked, static_cast<double>(std::max<std::int64_t>(rows, Tile::rows)) *
                 static_cast<double>(columns) * static_cast<double>(features) /
                 16);
}

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
  Request request = asked;
  request.num_threads = threads_for(
      asked.num_threads, (queries != nullptr ? *queries : points).num_points(),
      points.num_points(), points.num_features());
  if (few_queries(request, queries))
    return find_for_few(request, points, *queries, out, progress, stats);
  if (points.on_disk() || (queries != nullptr && queries->on_disk()))
    return find_streamed(request, points, queries, out, progress, stats);
  HeldPoints(request, points)
      .find_neighbours(request, queries, out, progress, stats);
}

}  // namespace cpu
}  // namespace fsknn
