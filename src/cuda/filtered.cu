#include "cuda/filtered.cuh"

#include <algorithm>

#include "cuda/distance.cuh"
#include "cuda/plan.hpp"
#include "cuda/transfer.cuh"

namespace fsknn {
namespace cuda {
namespace {

std::int64_t whole_tiles(std::int64_t count) {
  return (count + kChunkUnit - 1) / kChunkUnit * kChunkUnit;
}

std::int64_t rows_at_a_time(const Search& search) {
  return std::min(search.plan.chunk_size, whole_tiles(search.rows.size()));
}

}  // namespace

FilteredGraph::FilteredGraph(const Search& search, Workers& workers,
                             const std::vector<FilterJobs>& launches)
    : search_(search),
      workers_(workers),
      launches_(launches),
      blocks_(search.columns.size()),
      points_(search.columns, search, search.plan.padded_points, stream_),
      row_ids_(search.columns.order.id),
      d_list_rows_(search.columns.size()),
      d_row_places_(search.columns.size()),
      nearest_distance_(search.columns.size() * search.plan.k),
      nearest_index_(search.columns.size() * search.plan.k),
      redo_places_(search.columns.size()),
      redo_count_(1),
      answer_(search.out, search.columns.size(), search.plan.k,
              threads_of(search)) {
  const PointOrder& order = search.columns.order;
  std::sort(row_ids_.begin(), row_ids_.end());
  list_rows_.resize(row_ids_.size());
  row_places_.resize(row_ids_.size());
  for (std::size_t row = 0; row < row_ids_.size(); ++row) {
    const std::int32_t place = order.place[static_cast<std::size_t>(row_ids_[row])];
    row_places_[row] = place;
    list_rows_[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(row);
  }
  upload(d_list_rows_, list_rows_.data(), d_list_rows_.size(), stream_);
  upload(d_row_places_, row_places_.data(), d_row_places_.size(), stream_);
  clear_from(redo_count_, 0, stream_);
  nearest_.distance = nearest_distance_.data();
  nearest_.index = nearest_index_.data();
  nearest_.k = search.plan.k;
}

void FilteredGraph::run() {
  if (filter() && redo()) write_out();
}

/// The candidates, and the nearest of them. Returns whether to go on.
bool FilteredGraph::filter() {
  const std::int64_t num_slots = blocks_.num_slots();
  const std::unique_ptr<PairFilter> filter = make_pair_filter(
      *search_.request.metric, search_.columns.num_features);
  const std::int32_t capacity = candidates_for(search_.plan.k);
  const std::vector<std::int32_t> slot_places = blocks_.places();
  std::vector<std::int32_t> place_slots(
      static_cast<std::size_t>(search_.columns.size()));
  for (std::size_t slot = 0; slot < slot_places.size(); ++slot)
    if (slot_places[slot] >= 0)
      place_slots[static_cast<std::size_t>(slot_places[slot])] =
          static_cast<std::int32_t>(slot);
  DeviceBuffer<std::int32_t> places(num_slots), counts(num_slots);
  DeviceBuffer<std::int32_t> slots(search_.columns.size());
  DeviceBuffer<float> thresholds(num_slots);
  DeviceBuffer<Candidate> entries(num_slots * capacity);
  DeviceBuffer<unsigned char> rows(num_slots * filter->row_bytes());
  DeviceBuffer<float> values(num_slots * filter->floats_a_slot());
  upload(places, slot_places.data(), num_slots, stream_);
  upload(slots, place_slots.data(), slots.size(), stream_);
  clear_from(rows, 0, stream_);
  if (values.size() > 0) clear_from(values, 0, stream_);

  FilterWork work;
  work.rows = {rows.data(), values.data(), num_slots};
  work.columns = work.rows;
  work.lists.entries = entries.data();
  work.lists.counts = counts.data();
  work.lists.thresholds = thresholds.data();
  work.lists.places = places.data();
  work.lists.num_slots = num_slots;
  work.lists.capacity = capacity;
  start_candidates(work.lists, stream_.get());
  filter->start_rows({points_.rows.data(), points_.sums.data(), padded()},
                     slots.size(), slots.data(), work.rows, stream_.get());

  Cut cut;
  cut.lists = work.lists;
  cut.redo = {redo_places_.data(), redo_count_.data()};
  cut.k = static_cast<std::int32_t>(search_.plan.k);
  filter->set_errors(cut, work.rows, work.columns, stream_);
  int launch = 0;
  for (const FilterJobs& jobs : launches_) {
    Event& done = launch_done_[launch++ % 2];
    done.wait();
    work.jobs = jobs;
    filter->start(work, stream_.get());
    cut.filled = jobs.fill ? static_cast<std::int32_t>(kFilterBlock) : 0;
    if (jobs.ends_round) start_cut(cut, stream_.get());
    done.record(stream_);
    if (!workers_.go_on()) {
      stream_.wait();
      return false;
    }
  }
  const double n = static_cast<double>(blocks_.num_points);
  pairs_filtered_ = n * (n - 1) / 2;

  ExactStep step;
  step.lists = work.lists;
  step.redo = cut.redo;
  step.rows = points_.rows.data();
  step.ids = points_.ids.data();
  step.list_rows = d_list_rows_.data();
  step.padded = padded();
  step.nearest = nearest_;
  start_exact(*search_.request.metric, step, stream_.get());
  std::vector<std::int32_t> h_counts(static_cast<std::size_t>(num_slots));
  download(h_counts.data(), counts, num_slots, stream_);
  stream_.wait();
  for (std::size_t slot = 0; slot < h_counts.size(); ++slot)
    if (slot_places[slot] >= 0 && h_counts[slot] > 0)
      pairs_exact_ += h_counts[slot];
  return true;
}

/// Rows whose candidates overflowed, by the float64 pass over all points.
bool FilteredGraph::redo() {
  std::int32_t count = 0;
  download(&count, redo_count_, 1, stream_);
  stream_.wait();
  rows_redone_ = count;
  if (count == 0) return true;
  std::vector<std::int32_t> places(static_cast<std::size_t>(count));
  download(places.data(), redo_places_, count, stream_);
  stream_.wait();
  std::sort(places.begin(), places.end());
  const std::int64_t batch = rows_at_a_time(search_);
  for (std::int64_t first = 0; first < count; first += batch)
    if (!redo_batch(places.data() + first,
                    std::min<std::int64_t>(batch, count - first)))
      return false;
  return true;
}

bool FilteredGraph::redo_batch(const std::int32_t* places,
                               std::int64_t num_rows) {
  const std::int64_t k = search_.plan.k, chunk_size = search_.plan.chunk_size;
  const std::int64_t num_columns = search_.columns.size();
  Gather gather;
  gather.num_rows = num_rows;
  gather.num_places = whole_tiles(num_rows);
  gather.padded = padded();
  DeviceBuffer<std::int32_t> d_places(num_rows), ids(num_rows);
  DeviceBuffer<double> rows(gather.num_places * padded());
  DeviceBuffer<double> list_distance(num_rows * k);
  DeviceBuffer<std::int32_t> list_index(num_rows * k);
  const std::int64_t stride = std::min(chunk_size, whole_tiles(num_columns));
  DeviceBuffer<double> distances(num_rows * stride);
  upload(d_places, places, num_rows, stream_);
  gather.from = points_.rows.data();
  gather.places = d_places.data();
  gather.ids_from = points_.ids.data();
  gather.rows = rows.data();
  gather.ids = ids.data();
  start_gather(gather, stream_.get());

  Lists lists;
  lists.distance = list_distance.data();
  lists.index = list_index.data();
  lists.k = k;
  start_clear(lists, num_rows, stream_.get());
  bool go_on = true;
  for (std::int64_t column0 = 0; column0 < num_columns && go_on;
       column0 += chunk_size) {
    Chunk chunk;
    chunk.rows = rows.data();
    chunk.row_sums = points_.sums.data();  // rows of length 1: all are 0
    chunk.columns = points_.rows.data() + column0 * padded();
    chunk.column_sums = points_.sums.data() + column0;
    chunk.num_rows = num_rows;
    chunk.num_columns = std::min(chunk_size, num_columns - column0);
    chunk.padded = padded();
    chunk.undo = search_.undo;
    chunk.distances = distances.data();
    chunk.stride = stride;
    Selection selection;
    selection.distances = chunk.distances;
    selection.stride = chunk.stride;
    selection.num_rows = num_rows;
    selection.num_columns = chunk.num_columns;
    selection.column_ids = points_.ids.data() + column0;
    selection.self = -num_rows - 1;
    selection.own_ids = ids.data();
    selection.lists = lists;
    start_distances(*search_.request.metric, chunk, stream_.get());
    start_selection(selection, stream_.get());
    stream_.wait();
    pairs_exact_ += static_cast<double>(num_rows) *
                    static_cast<double>(chunk.num_columns);
    go_on = workers_.go_on();
  }
  start_scatter(lists, d_places.data(), d_list_rows_.data(), num_rows, nearest_,
                stream_.get());
  stream_.wait();
  return go_on;
}

void FilteredGraph::write_out() {
  CorrelationOf from;
  from.rows = points_.rows.data();
  from.row_places = d_row_places_.data();
  from.columns = points_.rows.data();
  from.places = points_.places.data();
  from.padded = padded();
  answer_.write(nearest_, search_.columns.size(), row_ids_.data(), from,
                stream_);
}

}  // namespace cuda
}  // namespace fsknn
