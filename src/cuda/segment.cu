#include "cuda/segment.cuh"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cuda/check.cuh"
#include "cuda/distance.cuh"
#include "cuda/plan.hpp"

namespace fsknn {
namespace cuda {
namespace {

std::int64_t whole_tiles(std::int64_t count) {
  return (count + kChunkUnit - 1) / kChunkUnit * kChunkUnit;
}

template <class T>
void upload(DeviceBuffer<T>& to, const T* from, std::int64_t count,
            const Stream& stream) {
  CUDA_CHECK(cudaMemcpyAsync(to.data(), from,
                             static_cast<std::size_t>(count) * sizeof(T),
                             cudaMemcpyHostToDevice, stream.get()));
}

/// count values, and zeros after them to the buffer's end.
template <class T>
void upload_padded(DeviceBuffer<T>& to, const T* from, std::int64_t count,
                   const Stream& stream) {
  upload(to, from, count, stream);
  CUDA_CHECK(cudaMemsetAsync(
      to.data() + count, 0,
      static_cast<std::size_t>(to.size() - count) * sizeof(T), stream.get()));
}

template <class T>
void download(T* to, const DeviceBuffer<T>& from, std::int64_t count,
              const Stream& stream) {
  CUDA_CHECK(cudaMemcpyAsync(to, from.data(),
                             static_cast<std::size_t>(count) * sizeof(T),
                             cudaMemcpyDeviceToHost, stream.get()));
}

}  // namespace

DevicePoints::DevicePoints(const PreparedPoints& points,
                           std::int64_t num_places, const Stream& stream)
    : rows(num_places * points.padded), sums(num_places), ids(num_places) {
  const std::int64_t n = points.size();
  upload_padded(rows, points.rows.data(), n * points.padded, stream);
  upload_padded(sums, points.sums.data(), n, stream);
  upload_padded(ids, points.order.id.data(), n, stream);
}

Segment::Segment(const Search& search, Workers& workers)
    : search_(search),
      workers_(workers),
      symmetric_(&search.rows == &search.columns),
      columns_(search.columns, search.plan.padded_points, stream_),
      chunk_rows_(std::min(search.plan.chunk_size,
                           whole_tiles(search.rows.size()))),
      chunk_columns_(std::min(search.plan.chunk_size,
                              whole_tiles(search.columns.size()))),
      distances_(chunk_rows_ * chunk_columns_),
      list_distance_(chunk_rows_ * search.plan.k),
      list_index_(chunk_rows_ * search.plan.k),
      slice_ranks_(ranks_at_a_time(chunk_rows_, search.plan.k)),
      slice_distance_(chunk_rows_ * slice_ranks_),
      slice_index_(chunk_rows_ * slice_ranks_),
      h_distance_(chunk_rows_ * slice_ranks_),
      h_index_(chunk_rows_ * slice_ranks_) {
  if (!symmetric_)
    own_rows_ =
        DevicePoints(search.rows, search.plan.padded_queries, stream_);
  lists_.distance = list_distance_.data();
  lists_.index = list_index_.data();
  lists_.k = search.plan.k;
  if (search.out.correlation == nullptr) return;
  const std::vector<std::int32_t>& place = search.columns.order.place;
  const std::int64_t num_places = static_cast<std::int64_t>(place.size());
  column_places_ = DeviceBuffer<std::int32_t>(num_places);
  upload(column_places_, place.data(), num_places, stream_);
  slice_correlation_ = DeviceBuffer<double>(chunk_rows_ * slice_ranks_);
  h_correlation_ = PinnedBuffer<double>(chunk_rows_ * slice_ranks_);
}

void Segment::run(std::int64_t first_split, std::int64_t last_split) {
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
bool Segment::chunk(std::int64_t row0, std::int64_t num_rows,
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

/// The split's lists to the answer, some ranks at a time.
void Segment::emit(std::int64_t row0, std::int64_t num_rows) {
  stream_.wait();
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t k = search_.plan.k;
  const DevicePoints& rows = symmetric_ ? columns_ : own_rows_;
  Slice slice;
  slice.lists = lists_;
  slice.num_rows = num_rows;
  slice.distance = slice_distance_.data();
  slice.index = slice_index_.data();
  CorrelationOf from;
  from.rows = rows.rows.data() + row0 * search_.columns.padded;
  from.columns = columns_.rows.data();
  from.places = column_places_.data();
  from.padded = search_.columns.padded;
  from.correlation = slice_correlation_.data();
  // Last ranks first: a distance that is too large is seen before a list that
  // it left unfilled is read from.
  for (std::int64_t end = k; end > 0; end = slice.rank0) {
    slice.rank0 = std::max<std::int64_t>(0, end - slice_ranks_);
    slice.num_ranks = end - slice.rank0;
    const std::int64_t size = slice.num_ranks * num_rows;
    start_slice(slice, stream_.get());
    download(h_distance_.data(), slice_distance_, size, stream_);
    download(h_index_.data(), slice_index_, size, stream_);
    stream_.wait();
    const double* farthest = h_distance_.data() + size - num_rows;
    for (std::int64_t r = 0; r < num_rows; ++r)
      if (!(farthest[r] < HUGE_VAL)) throw RangeFailure();
    if (search_.out.correlation != nullptr) {
      start_correlations(slice, from, stream_.get());
      download(h_correlation_.data(), slice_correlation_, size, stream_);
      stream_.wait();
    }
    write_out(row0, slice);
  }
  seconds_emit_ += std::chrono::duration<double>(
                       std::chrono::steady_clock::now() - start)
                       .count();
}

void Segment::write_out(std::int64_t row0, const Slice& slice) {
  const Neighbours& out = search_.out;
  const std::int32_t* id = search_.rows.order.id.data() + row0;
  for (std::int64_t rank = 0; rank < slice.num_ranks; ++rank) {
    const std::int64_t from = rank * slice.num_rows;
    const std::int64_t to = (slice.rank0 + rank) * out.rows;
    for (std::int64_t r = 0; r < slice.num_rows; ++r) {
      out.index[to + id[r]] = h_index_.data()[from + r] + 1;
      out.distance[to + id[r]] = h_distance_.data()[from + r];
    }
    if (out.correlation == nullptr) continue;
    for (std::int64_t r = 0; r < slice.num_rows; ++r)
      out.correlation[to + id[r]] = h_correlation_.data()[from + r];
  }
}

}  // namespace cuda
}  // namespace fsknn
