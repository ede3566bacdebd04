#include "cuda/search/search.hpp"

#include <algorithm>

#include "cuda/device/check.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/exact/gather.hpp"
#include "cuda/plan/group_pairs.hpp"

namespace fsknn {
namespace cuda {

DoubleLists lists_of(const Search& search) {
  return {*search.request.metric, search.columns.padded, search.plan.k,
          search.undo};
}

Sought sought(const Search& search) {
  const CudaPlan& plan = search.plan;
  Sought all;
  all.num_points = search.columns.size();
  all.k = plan.k;
  all.forced = plan.shape.forced;
  all.candidate_cost = plan.shape.candidate_cost;
  all.tree = plan.shape.tree;
  all.capacity = plan.streamed ? plan.streaming.capacity : plan.shape.capacity;
  // In this search, a recomputed row needs another pass over all columns: bytes
  // with 8 of 100 rows recomputed took as long as floats.
  if (plan.streamed && plan.streaming.by_row_ranges()) all.capacity /= 2;
  // Otherwise only some points are present in doubles, or a point has many
  // lists.
  all.reranks = !plan.streamed && !plan.groups_at_once;
  if (plan.groups_at_once) {
    const double lists =
        static_cast<double>(all.num_points) *
        static_cast<double>(search.request.groups->num_lists());
    all.num_points = static_cast<std::int64_t>(2 * plan.num_pairs / lists);
    all.capacity = 2 * all.capacity / growth_of_rounds(plan.k);
  }
  return all;
}

int threads_of(const Search& search) {
  return std::max(1, search.request.num_threads / search.plan.num_workers);
}

DevicePoints::DevicePoints(const PlacedPoints& points, const RowRecipe& prepare,
                           int num_threads, std::int64_t num_places,
                           const Stream& stream)
    : padded(points.padded),
      rows(num_places * points.padded),
      sums(num_places),
      ids(num_places),
      places(points.source->num_points()) {
  const std::int64_t n = points.size();
  clear_from(rows, n * points.padded, stream);
  clear_from(sums, n, stream);
  upload_padded(ids, points.own_ids(), n, stream);
  upload(places, points.order.place.data(), places.size(), stream);
  PrepareTarget target;
  target.device = current_device();
  target.stream = stream.get();
  target.rows = rows.data();
  target.sums = sums.data();
  target.places = places.data();
  Preparer preparer(*points.source, prepare, num_threads, {target.device});
  preparer.prepare(PointId{0}, places.size(), {target});
  preparer.check();
}

Panel GatheredRows::gather(const DevicePoints& points,
                           const std::int32_t* places, std::int64_t num_rows,
                           const Stream& stream) {
  GatheredPoints gathered;
  gathered.from = points.rows.data();
  gathered.from_sums = points.sums.data();
  gathered.from_ids = points.ids.data();
  gathered.places = places;
  gathered.rows = rows_.data();
  gathered.sums = sums_.data();
  gathered.ids = ids_.data();
  gathered.num_rows = num_rows;
  gathered.num_places = ids_.size() > 0 ? whole_tiles(num_rows) : num_rows;
  gathered.padded = padded;
  start_gathering(gathered, stream.get());
  return {rows_.data(), sums_.data(), ids_.data(), Place{0}, num_rows};
}

}  // namespace cuda
}  // namespace fsknn
