#include "cuda/search/all_pairs.cuh"

#include <algorithm>

#include "cuda/exact/distance.cuh"
#include "cuda/plan/plan.hpp"
#include "cuda/search/point_store.cuh"

namespace fsknn {
namespace cuda {

AllPairs::AllPairs(const Search& search, Workers& workers)
    : search_(search),
      workers_(workers),
      symmetric_(&search.rows == &search.columns),
      columns_(search.store->get(columns_of(search), stream_).points()),
      chunk_rows_(
          std::min(search.plan.chunk_size, whole_tiles(search.rows.size()))),
      chunk_columns_(
          std::min(search.plan.chunk_size, whole_tiles(search.columns.size()))),
      chunk_(chunk_rows_, chunk_columns_, search.columns.padded, search.undo),
      lists_(chunk_rows_, search.plan.k),
      answer_(search.out, chunk_rows_, search.plan.k, threads_of(search)) {
  if (!symmetric_)
    own_rows_ = DevicePoints(search.rows, search.prepare, threads_of(search),
                             search.plan.padded_queries, stream_);
}

void AllPairs::run(std::int64_t first_split, std::int64_t last_split) {
  const Plan& plan = search_.plan;
  for (std::int64_t split = first_split; split < last_split; ++split) {
    const std::int64_t row0 = split * plan.chunk_size;
    const std::int64_t num_rows =
        std::min(plan.chunk_size, search_.rows.size() - row0);
    start_clear(lists_.lists(), num_rows, stream_.get());
    for (std::int64_t c = 0; c < plan.chunks_per_split; ++c)
      if (!chunk(row0, num_rows, c * plan.chunk_size)) return;
    emit(row0, num_rows);
  }
}

/// Starts one chunk's kernels. Returns whether to go on.
bool AllPairs::chunk(std::int64_t row0, std::int64_t num_rows,
                     std::int64_t column0) {
  const Panel rows = row_points().panel(Place{row0}, num_rows);
  const Panel columns = columns_.panel(
      Place{column0},
      std::min(search_.plan.chunk_size, search_.columns.size() - column0));
  Selection selection = chunk_.selection(rows, columns, lists_.lists());
  if (symmetric_) selection.self = row0 - column0;
  if (!search_.rows.self.empty()) selection.own_ids = rows.ids;
  under_way_.begin();
  start_distances(*search_.request.metric, chunk_.chunk(rows, columns),
                  stream_.get());
  start_selection(selection, stream_.get());
  under_way_.end(stream_);
  pairs_ += static_cast<double>(num_rows) * static_cast<double>(columns.count);
  return workers_.go_on();
}

/// The split's lists to the answer.
void AllPairs::emit(std::int64_t row0, std::int64_t num_rows) {
  CorrelationOf from;
  from.rows = row_points().rows.data() + row0 * search_.columns.padded;
  from.columns = columns_.rows.data();
  from.places = columns_.places.data();
  from.padded = search_.columns.padded;
  answer_.write(lists_.lists(), num_rows, search_.rows.order.id.data() + row0,
                from, stream_);
}

}  // namespace cuda
}  // namespace fsknn
