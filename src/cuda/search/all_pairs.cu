#include "cuda/search/all_pairs.cuh"

#include <algorithm>

#include "cuda/device/check.cuh"
#include "cuda/exact/distance.cuh"
#include "cuda/plan/plan.hpp"
#include "cuda/device/transfer.cuh"

namespace fsknn {
namespace cuda {

AllPairs::AllPairs(const Search& search, Workers& workers)
    : search_(search),
      workers_(workers),
      symmetric_(&search.rows == &search.columns),
      columns_(search.columns, search, search.plan.padded_points, stream_),
      chunk_rows_(std::min(search.plan.chunk_size,
                           whole_tiles(search.rows.size()))),
      chunk_columns_(std::min(search.plan.chunk_size,
                              whole_tiles(search.columns.size()))),
      distances_(chunk_rows_ * chunk_columns_),
      list_distance_(chunk_rows_ * search.plan.k),
      list_index_(chunk_rows_ * search.plan.k),
      answer_(search.out, chunk_rows_, search.plan.k,
              threads_of(search)) {
  if (!symmetric_)
    own_rows_ =
        DevicePoints(search.rows, search, search.plan.padded_queries, stream_);
  lists_.distance = list_distance_.data();
  lists_.index = list_index_.data();
  lists_.k = search.plan.k;
}

void AllPairs::run(std::int64_t first_split, std::int64_t last_split) {
  const Plan& plan = search_.plan;
  for (std::int64_t split = first_split; split < last_split; ++split) {
    const std::int64_t row0 = split * plan.chunk_size;
    const std::int64_t num_rows =
        std::min(plan.chunk_size, search_.rows.size() - row0);
    start_clear(lists_, num_rows, stream_.get());
    for (std::int64_t c = 0; c < plan.chunks_per_split; ++c)
      if (!chunk(row0, num_rows, c * plan.chunk_size)) return;
    emit(row0, num_rows);
  }
}

/// Starts one chunk's kernels. Returns whether to go on.
bool AllPairs::chunk(std::int64_t row0, std::int64_t num_rows,
                    std::int64_t column0) {
  const DevicePoints& rows = symmetric_ ? columns_ : own_rows_;
  const std::int64_t padded = search_.columns.padded;
  Chunk chunk;
  chunk.rows = rows.rows.data() + row0 * padded;
  chunk.row_sums = rows.sums.data() + row0;
  chunk.columns = columns_.rows.data() + column0 * padded;
  chunk.column_sums = columns_.sums.data() + column0;
  chunk.num_rows = num_rows;
  chunk.num_columns =
      std::min(search_.plan.chunk_size, search_.columns.size() - column0);
  chunk.padded = padded;
  chunk.undo = search_.undo;
  chunk.distances = distances_.data();
  chunk.stride = chunk_columns_;

  Selection selection;
  selection.distances = chunk.distances;
  selection.stride = chunk.stride;
  selection.num_rows = num_rows;
  selection.num_columns = chunk.num_columns;
  selection.column_ids = columns_.ids.data() + column0;
  selection.self = symmetric_ ? row0 - column0 : -num_rows - 1;
  if (!search_.rows.self.empty()) selection.own_ids = rows.ids.data() + row0;
  selection.lists = lists_;

  Event& done = chunk_done_[num_chunks_++ % 2];
  done.wait();
  start_distances(*search_.request.metric, chunk, stream_.get());
  start_selection(selection, stream_.get());
  done.record(stream_);
  pairs_ += static_cast<double>(num_rows) *
            static_cast<double>(chunk.num_columns);
  return workers_.go_on();
}

/// The split's lists to the answer.
void AllPairs::emit(std::int64_t row0, std::int64_t num_rows) {
  const DevicePoints& rows = symmetric_ ? columns_ : own_rows_;
  CorrelationOf from;
  from.rows = rows.rows.data() + row0 * search_.columns.padded;
  from.columns = columns_.rows.data();
  from.places = columns_.places.data();
  from.padded = search_.columns.padded;
  answer_.write(lists_, num_rows, search_.rows.order.id.data() + row0, from,
                stream_);
}

}  // namespace cuda
}  // namespace fsknn
