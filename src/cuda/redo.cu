#include "cuda/redo.cuh"

#include <algorithm>

#include "cuda/candidates.cuh"
#include "cuda/distance.cuh"
#include "cuda/transfer.cuh"

namespace fsknn {
namespace cuda {
namespace {

// Grid: x over rows. Block: any. Shared: none.
__global__ void gather_sums(const double* from, const std::int32_t* places,
                            std::int64_t num_rows, double* sums) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < num_rows) sums[row] = from[places[row]];
}

}  // namespace

DoubleRedo::DoubleRedo(const Search& search, Workers& workers,
                       const Stream& stream, const DevicePoints& points,
                       const std::int32_t* list_rows, const Lists& nearest)
    : search_(search),
      workers_(workers),
      stream_(stream),
      points_(points),
      list_rows_(list_rows),
      nearest_(nearest),
      chunk_rows_(std::min(search.plan.chunk_size,
                           whole_tiles(search.rows.size()))),
      chunk_columns_(std::min(search.plan.chunk_size,
                              whole_tiles(search.columns.size()))),
      places_(chunk_rows_),
      ids_(chunk_rows_),
      rows_(chunk_rows_ * search.columns.padded),
      sums_(chunk_rows_),
      list_distance_(chunk_rows_ * search.plan.k),
      distances_(chunk_rows_ * chunk_columns_),
      list_index_(chunk_rows_ * search.plan.k) {}

bool DoubleRedo::run(const std::vector<std::int32_t>& places) {
  const std::int64_t count = static_cast<std::int64_t>(places.size());
  for (std::int64_t first = 0; first < count; first += chunk_rows_)
    if (!batch(places.data() + first, std::min(chunk_rows_, count - first)))
      return false;
  return true;
}

bool DoubleRedo::batch(const std::int32_t* places, std::int64_t num_rows) {
  const std::int64_t padded = search_.columns.padded;
  const std::int64_t num_columns = search_.columns.size();
  upload(places_, places, num_rows, stream_);
  Gather gather;
  gather.num_rows = num_rows;
  gather.num_places = whole_tiles(num_rows);
  gather.padded = padded;
  gather.from = points_.rows.data();
  gather.places = places_.data();
  gather.ids_from = points_.ids.data();
  gather.rows = rows_.data();
  gather.ids = ids_.data();
  start_gather(gather, stream_.get());
  gather_sums<<<static_cast<unsigned>((num_rows + 255) / 256), 256, 0,
                stream_.get()>>>(points_.sums.data(), places_.data(), num_rows,
                                 sums_.data());
  CUDA_CHECK(cudaGetLastError());

  Lists lists;
  lists.distance = list_distance_.data();
  lists.index = list_index_.data();
  lists.k = search_.plan.k;
  start_clear(lists, num_rows, stream_.get());
  bool go_on = true;
  for (std::int64_t column0 = 0; column0 < num_columns && go_on;
       column0 += search_.plan.chunk_size) {
    Chunk chunk;
    chunk.rows = rows_.data();
    chunk.row_sums = sums_.data();
    chunk.columns = points_.rows.data() + column0 * padded;
    chunk.column_sums = points_.sums.data() + column0;
    chunk.num_rows = num_rows;
    chunk.num_columns =
        std::min(search_.plan.chunk_size, num_columns - column0);
    chunk.padded = padded;
    chunk.undo = search_.undo;
    chunk.distances = distances_.data();
    chunk.stride = chunk_columns_;
    Selection selection;
    selection.distances = chunk.distances;
    selection.stride = chunk.stride;
    selection.num_rows = num_rows;
    selection.num_columns = chunk.num_columns;
    selection.column_ids = points_.ids.data() + column0;
    selection.self = -num_rows - 1;
    selection.own_ids = ids_.data();
    selection.lists = lists;
    start_distances(*search_.request.metric, chunk, stream_.get());
    start_selection(selection, stream_.get());
    stream_.wait();
    pairs_ += static_cast<double>(num_rows) *
              static_cast<double>(chunk.num_columns);
    go_on = workers_.go_on();
  }
  start_scatter(lists, places_.data(), list_rows_, num_rows, nearest_,
                stream_.get());
  stream_.wait();
  return go_on;
}

}  // namespace cuda
}  // namespace fsknn
