#include "cuda/search/redo.cuh"

#include <math_constants.h>

#include <algorithm>

#include "cuda/exact/candidates.cuh"
#include "cuda/exact/distance.cuh"
#include "cuda/device/transfer.cuh"

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

// Lists start from what their rows knew. Grid: x over slots of `to`. Block: any.
// Shared: none.
__global__ void start_from_bounds(const CandidateLists from,
                                  const std::int32_t* slots,
                                  std::int64_t num_rows,
                                  const CandidateLists to,
                                  std::int32_t* own_slots) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= to.num_slots) return;
  to.counts[row] = 0;
  own_slots[row] = static_cast<std::int32_t>(row);
  to.thresholds[row] = row < num_rows ? from.bounds[slots[row]] : CUDART_NAN_F;
}

unsigned blocks_for(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

void start_gather_sums(const double* from, const std::int32_t* places,
                       std::int64_t num_rows, double* sums,
                       cudaStream_t stream) {
  gather_sums<<<blocks_for(num_rows, 256), 256, 0, stream>>>(from, places,
                                                             num_rows, sums);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

WideFilter::WideFilter(const Search& search, const Stream& stream,
                       std::int64_t num_rows)
    : search_(search),
      stream_(stream),
      shape_(search.lists.num_slots, search.lists.capacity,
             search.filter->row_bytes() + 4 * search.filter->floats_a_slot(),
             search.padded),
      most_rows_(std::min(shape_.rows, query_slots(num_rows))),
      entries_(shape_.own_lists ? most_rows_ * shape_.capacity : 0),
      rows_(most_rows_ * search.filter->row_bytes()),
      values_(most_rows_ * search.filter->floats_a_slot()),
      thresholds_(most_rows_),
      slots_(most_rows_),
      own_slots_(most_rows_),
      places_(most_rows_),
      counts_(most_rows_),
      redo_places_(most_rows_),
      redo_count_(1) {}

void WideFilter::begin(const std::int32_t* slots, const std::int32_t* places,
                       std::int64_t num_rows) {
  num_rows_ = num_rows;
  const std::int64_t num_slots = query_slots(num_rows);
  std::vector<std::int32_t> slot_places(places, places + num_rows);
  slot_places.resize(static_cast<std::size_t>(num_slots), -1);
  upload(slots_, slots, num_rows, stream_);
  upload(places_, slot_places.data(), num_slots, stream_);
  clear_from(rows_, 0, stream_);
  if (values_.size() > 0) clear_from(values_, 0, stream_);
  clear_from(redo_count_, 0, stream_);

  work_.rows = {rows_.data(), values_.data(), num_slots};
  work_.columns = search_.columns;
  work_.lists = search_.lists;
  work_.lists.counts = counts_.data();
  work_.lists.thresholds = thresholds_.data();
  work_.lists.bounds = nullptr;
  work_.lists.places = places_.data();
  work_.lists.num_slots = num_slots;
  work_.lists.capacity = shape_.capacity;
  if (shape_.own_lists) work_.lists.entries = entries_.data();
  start_from_bounds<<<blocks_for(num_slots, 256), 256, 0, stream_.get()>>>(
      search_.lists, slots_.data(), num_rows, work_.lists, own_slots_.data());
  CUDA_CHECK(cudaGetLastError());
}

bool WideFilter::run(const PreparedRows& rows) {
  search_.filter->start_rows(rows, num_rows_, own_slots_.data(), work_.rows,
                             stream_.get());
  Cut cut;
  cut.lists = work_.lists;
  cut.redo = redo();
  cut.k = static_cast<std::int32_t>(search_.k);
  cut.end_slot = work_.lists.num_slots;
  search_.filter->set_errors(cut, work_.rows, work_.columns, stream_);
  FilterRounds rounds = search_.rounds;
  rounds.first_slab = 0;
  rounds.num_slabs = work_.lists.num_slots / kFilterSlab;
  rounds.symmetric = false;
  rounds.fill_blocks = 0;
  rounds.growth = 2.0;
  int launch = 0;
  for (const FilterJobs& jobs : schedule_filter(rounds)) {
    Event& done = launch_done_[launch++ % 2];
    done.wait();
    work_.jobs = jobs;
    search_.filter->start(work_, stream_.get());
    if (jobs.ends_round) start_cut(cut, stream_.get());
    done.record(stream_);
    if (!search_.workers->go_on()) return false;
  }
  return true;
}

WideRedo::WideRedo(const WideFilter::Search& search, const MetricEntry& metric,
                   const ExactStep& exact, const Stream& stream,
                   std::int64_t num_rows)
    : metric_(metric),
      exact_(exact),
      stream_(stream),
      filter_(search, stream, num_rows),
      prepared_(filter_.most_rows() * exact.padded),
      sums_(filter_.most_rows()) {}

bool WideRedo::run(const std::vector<std::int32_t>& slots,
                   const std::vector<std::int32_t>& places) {
  const std::int64_t count = static_cast<std::int64_t>(places.size());
  const std::int64_t most = filter_.most_rows();
  for (std::int64_t first = 0; first < count; first += most)
    if (!batch(slots.data() + first, places.data() + first,
               std::min(most, count - first)))
      return false;
  return true;
}

bool WideRedo::batch(const std::int32_t* slots, const std::int32_t* places,
                     std::int64_t num_rows) {
  filter_.begin(slots, places, num_rows);
  Gather gather;
  gather.num_rows = gather.num_places = num_rows;
  gather.padded = exact_.padded;
  gather.from = exact_.rows;
  gather.places = filter_.places();
  gather.rows = prepared_.data();
  start_gather(gather, stream_.get());
  start_gather_sums(exact_.row_sums, filter_.places(), num_rows, sums_.data(),
                    stream_.get());
  if (!filter_.run({prepared_.data(), sums_.data(), exact_.padded}))
    return false;

  ExactStep exact = exact_;
  exact.lists = filter_.lists();
  exact.redo = filter_.redo();
  exact.first_slot = 0;
  exact.end_slot = filter_.lists().num_slots;
  run_exact(metric_, exact, stream_);
  const auto get = [&](std::int32_t* to, const std::int32_t* from,
                       std::int64_t count) {
    CUDA_CHECK(cudaMemcpyAsync(to, from,
                               static_cast<std::size_t>(count) * sizeof(*to),
                               cudaMemcpyDeviceToHost, stream_.get()));
  };
  std::vector<std::int32_t> counts(static_cast<std::size_t>(num_rows));
  std::int32_t num_left = 0;
  get(counts.data(), filter_.lists().counts, num_rows);
  get(&num_left, exact.redo.count, 1);
  stream_.wait();
  for (const std::int32_t count : counts) pairs_ += std::max(count, 0);
  const std::size_t before = left_.size();
  left_.resize(before + static_cast<std::size_t>(num_left));
  if (num_left > 0) get(left_.data() + before, exact.redo.places, num_left);
  stream_.wait();
  return true;
}

DoubleRedo::DoubleRedo(const Search& search, Workers& workers,
                       const Stream& stream, const DevicePoints& rows,
                       const DevicePoints& columns,
                       const std::int32_t* list_rows, const Lists& nearest)
    : search_(search),
      workers_(workers),
      stream_(stream),
      row_points_(rows),
      points_(columns),
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
  gather.from = row_points_.rows.data();
  gather.places = places_.data();
  gather.ids_from = row_points_.ids.data();
  gather.rows = rows_.data();
  gather.ids = ids_.data();
  start_gather(gather, stream_.get());
  start_gather_sums(row_points_.sums.data(), places_.data(), num_rows,
                    sums_.data(), stream_.get());

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
    selection.own_ids = &row_points_ == &points_ || !search_.rows.self.empty()
                            ? ids_.data()
                            : nullptr;
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
