#include "cpu/search/engine.hpp"

#include "core/rows/prepared.hpp"
#include "cpu/missing/masked_search.hpp"
#include "cpu/search/held.hpp"

namespace fsknn {
namespace cpu {

void find_within(const Request& given, const Within& within,
                 const RowSource& points, const RowSource* queries,
                 WithinAnswer& answer, Progress* progress, Stats* stats) {
  const Request asked = suited(given, points, queries, progress);
  if (asked.na_pairwise)
    return find_masked_within(asked, within, points, queries, answer, progress,
                              stats);
  const RowSource& asked_for = queries != nullptr ? *queries : points;
  Request request = asked;
  request.num_threads = threads_for(asked.num_threads, asked_for.num_points(),
                                    points.num_points(), points.num_features());
  check_sample(request, within, points, queries);
  HeldPoints(request, points)
      .find_within(request, within, queries, answer, progress, stats);
}

}  // namespace cpu
}  // namespace fsknn
