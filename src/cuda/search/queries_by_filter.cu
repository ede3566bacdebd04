#include "cuda/search/queries_by_filter.cuh"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "cuda/plan/plan.hpp"
#include "cuda/search/redo.cuh"
#include "cuda/device/transfer.cuh"

namespace fsknn {
namespace cuda {
namespace {

using Clock = std::chrono::steady_clock;

FilterRounds rounds_of(const Search& search, std::int64_t num_rows) {
  int device = 0, multiprocessors = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors,
                                    cudaDevAttrMultiProcessorCount, device));
  FilterRounds rounds;
  rounds.num_blocks = FilterBlocks(search.columns.size()).count;
  rounds.num_slabs = query_slots(num_rows) / kFilterSlab;
  rounds.symmetric = false;
  rounds.fill_blocks = fill_blocks_for(search.columns.size(), search.plan.k);
  rounds.depth =
      work_depth(*search.request.metric, search.columns.num_features);
  rounds.chunk_size = search.plan.chunk_size;
  rounds.multiprocessors = multiprocessors;
  return rounds;
}

std::vector<std::int32_t> counting(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(first));
  return numbers;
}

}  // namespace

QueriesByFilter::QueriesByFilter(const Search& search, Workers& workers)
    : search_(search),
      workers_(workers),
      blocks_(search.columns.size()),
      most_rows_(queries_at_a_time(search.rows.size(), search.plan.k)),
      columns_(search.columns, search, search.plan.padded_points, stream_),
      own_rows_(search.rows, search, search.plan.padded_queries, stream_),
      filter_(make_pair_filter(*search.request.metric,
                               search.columns.num_features)),
      column_places_(blocks_.num_slots()),
      row_slots_(most_rows_),
      row_places_(query_slots(most_rows_)),
      list_rows_(search.rows.size()),
      column_form_(blocks_.num_slots() * filter_->row_bytes()),
      row_form_(query_slots(most_rows_) * filter_->row_bytes()),
      column_values_(blocks_.num_slots() * filter_->floats_a_slot()),
      row_values_(query_slots(most_rows_) * filter_->floats_a_slot()),
      counts_(query_slots(most_rows_)),
      thresholds_(query_slots(most_rows_)),
      bounds_(query_slots(most_rows_)),
      entries_(query_slots(most_rows_) * candidates_for(search.plan.k)),
      nearest_distance_(most_rows_ * search.plan.k),
      nearest_index_(most_rows_ * search.plan.k),
      redo_places_(most_rows_),
      redo_count_(1),
      answer_(search.out, most_rows_, search.plan.k, threads_of(search)) {
  nearest_.distance = nearest_distance_.data();
  nearest_.index = nearest_index_.data();
  nearest_.k = search.plan.k;
  clear_from(column_form_, 0, stream_);
  clear_from(column_values_, 0, stream_);
  const std::vector<std::int32_t> places = blocks_.places();
  upload(column_places_, places.data(), column_places_.size(), stream_);
  std::vector<std::int32_t> slots(
      static_cast<std::size_t>(search.columns.size()));
  for (std::size_t slot = 0; slot < places.size(); ++slot)
    if (places[slot] >= 0)
      slots[static_cast<std::size_t>(places[slot])] =
          static_cast<std::int32_t>(slot);
  DeviceBuffer<std::int32_t> d_slots(search.columns.size());
  upload(d_slots, slots.data(), d_slots.size(), stream_);
  const PreparedRows points = {columns_.rows.data(), columns_.sums.data(),
                               padded()};
  filter_->learn(points, search.columns.size(), search.undo, stream_.get());
  filter_->start_rows(points, d_slots.size(), d_slots.data(),
                      {column_form_.data(), column_values_.data(),
                       blocks_.num_slots()},
                      stream_.get());
  const std::vector<std::int32_t> row_slots = counting(0, most_rows_);
  upload(row_slots_, row_slots.data(), most_rows_, stream_);
  stream_.wait();
}

std::int64_t QueriesByFilter::num_launches(const Search& search,
                                           std::int64_t num_rows) {
  const std::int64_t most = queries_at_a_time(search.rows.size(), search.plan.k);
  const std::int64_t launches = static_cast<std::int64_t>(
      schedule_filter(rounds_of(search, std::min(num_rows, most))).size());
  return launches * ((num_rows + most - 1) / most);
}

void QueriesByFilter::run(std::int64_t first_row, std::int64_t end_row) {
  for (std::int64_t row0 = first_row; row0 < end_row; row0 += most_rows_) {
    const std::int64_t num_rows = std::min(most_rows_, end_row - row0);
    const Clock::time_point start = Clock::now();
    row0_ = row0;
    num_rows_ = num_rows;
    if (!batch(row0, num_rows) || !redo()) return;
    stats_.seconds_device +=
        std::chrono::duration<double>(Clock::now() - start).count();
    CorrelationOf from;
    from.rows = own_rows_.rows.data() + row0 * padded();
    from.columns = columns_.rows.data();
    from.places = columns_.places.data();
    from.padded = padded();
    answer_.write(nearest_, num_rows, search_.rows.order.id.data() + row0, from,
                  stream_);
  }
  stats_.seconds_emit = answer_.seconds();
}

/// Candidates and the nearest of them. Returns whether to go on.
bool QueriesByFilter::batch(std::int64_t row0, std::int64_t num_rows) {
  const std::int64_t num_slots = query_slots(num_rows);
  std::vector<std::int32_t> places = counting(row0, num_rows);
  places.resize(static_cast<std::size_t>(num_slots), -1);
  upload(row_places_, places.data(), num_slots, stream_);
  const std::vector<std::int32_t> list_rows = counting(0, num_rows);
  CUDA_CHECK(cudaMemcpyAsync(list_rows_.data() + row0, list_rows.data(),
                             list_rows.size() * sizeof(std::int32_t),
                             cudaMemcpyHostToDevice, stream_.get()));
  clear_from(row_form_, 0, stream_);
  clear_from(row_values_, 0, stream_);
  clear_from(redo_count_, 0, stream_);

  FilterWork& work = work_;
  work.rows = {row_form_.data(), row_values_.data(), num_slots};
  work.columns = {column_form_.data(), column_values_.data(),
                  blocks_.num_slots()};
  work.lists.entries = entries_.data();
  work.lists.counts = counts_.data();
  work.lists.thresholds = thresholds_.data();
  work.lists.bounds = bounds_.data();
  work.lists.places = row_places_.data();
  work.lists.column_places = column_places_.data();
  work.lists.column_ids = columns_.ids.data();
  if (!search_.rows.self.empty()) work.lists.row_ids = own_rows_.ids.data();
  work.lists.num_slots = num_slots;
  work.lists.capacity = candidates_for(search_.plan.k);
  start_candidates(work.lists, stream_.get());
  filter_->start_rows({own_rows_.rows.data() + row0 * padded(),
                       own_rows_.sums.data() + row0, padded()},
                      num_rows, row_slots_.data(), work.rows, stream_.get());

  Cut cut;
  cut.lists = work.lists;
  cut.redo = {redo_places_.data(), redo_count_.data()};
  cut.k = static_cast<std::int32_t>(search_.plan.k);
  cut.end_slot = num_slots;
  filter_->set_errors(cut, work.rows, work.columns, stream_);
  int launch = 0;
  for (const FilterJobs& jobs : schedule_filter(rounds_of(search_, num_rows))) {
    Event& done = launch_done_[launch++ % 2];
    done.wait();
    work.jobs = jobs;
    filter_->start(work, stream_.get());
    cut.filled = jobs.fill ? static_cast<std::int32_t>(jobs.end_delta *
                                                       kFilterBlock)
                           : 0;
    if (jobs.ends_round) start_cut(cut, stream_.get());
    done.record(stream_);
    if (!workers_.go_on()) return false;
  }
  stats_.pairs_filtered += static_cast<double>(num_rows) *
                           static_cast<double>(blocks_.num_points);

  ExactStep& step = exact_;
  step.lists = work.lists;
  step.redo = cut.redo;
  step.end_slot = num_slots;
  step.rows = own_rows_.rows.data();
  step.row_sums = own_rows_.sums.data();
  step.columns = columns_.rows.data();
  step.column_sums = columns_.sums.data();
  step.list_rows = list_rows_.data();
  step.padded = padded();
  step.undo = search_.undo;
  step.nearest = nearest_;
  run_exact(*search_.request.metric, step, stream_);
  std::vector<std::int32_t> counts(static_cast<std::size_t>(num_rows));
  download(counts.data(), counts_, num_rows, stream_);
  stream_.wait();
  for (const std::int32_t count : counts)
    stats_.pairs_exact += std::max(count, 0);
  return true;
}

/// Queries whose candidates overflowed: by longer lists, and what is too much for
/// those in doubles. Returns whether to go on.
bool QueriesByFilter::redo() {
  std::int32_t count = 0;
  download(&count, redo_count_, 1, stream_);
  stream_.wait();
  stats_.rows_redone += count;
  if (count == 0) return true;
  std::vector<std::int32_t> places(static_cast<std::size_t>(count));
  download(places.data(), redo_places_, count, stream_);
  stream_.wait();
  std::sort(places.begin(), places.end());
  if (WideFilter::helps(work_.lists) && !redo_widely(places)) return false;
  stats_.rows_widened += count - static_cast<double>(places.size());
  if (places.empty()) return true;
  DoubleRedo redo(search_, workers_, stream_, own_rows_, columns_,
                  list_rows_.data(), nearest_);
  const bool go_on = redo.run(places);
  stats_.pairs_exact += redo.pairs();
  return go_on;
}

/// Leaves in `places` what is to be done in doubles. Returns whether to go on.
bool QueriesByFilter::redo_widely(std::vector<std::int32_t>& places) {
  WideFilter::Search search;
  search.workers = &workers_;
  search.filter = filter_.get();
  search.columns = work_.columns;
  search.lists = work_.lists;
  search.lists.num_slots = counts_.size();  // the memory of all that there are
  search.rounds = rounds_of(search_, num_rows_);
  search.padded = padded();
  search.k = search_.plan.k;
  std::vector<std::int32_t> slots;
  for (const std::int32_t place : places)
    slots.push_back(place - static_cast<std::int32_t>(row0_));
  WideRedo redo(search, *search_.request.metric, exact_, stream_,
                static_cast<std::int64_t>(places.size()));
  const bool go_on = redo.run(slots, places);
  stats_.pairs_exact += redo.pairs();
  stats_.pairs_filtered += static_cast<double>(places.size()) *
                           static_cast<double>(blocks_.num_points);
  places = redo.left();
  std::sort(places.begin(), places.end());
  return go_on;
}

}  // namespace cuda
}  // namespace fsknn
