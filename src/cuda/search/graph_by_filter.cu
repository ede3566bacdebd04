#include "cuda/search/graph_by_filter.cuh"

#include <algorithm>
#include <chrono>

#include "cuda/plan/plan.hpp"
#include "cuda/search/redo.cuh"
#include "cuda/device/transfer.cuh"

namespace fsknn {
namespace cuda {
namespace {

using Clock = std::chrono::steady_clock;

int multiprocessors_of(int device) {
  int count = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount,
                                    device));
  return count;
}

}  // namespace

FilterLayout layout_of(const Search& search, const FilterTeam& team, int own) {
  const FilterBlocks blocks(search.columns.size());
  return FilterLayout(blocks, first_block_of(blocks, own, team.size()),
                      first_block_of(blocks, own + 1, team.size()),
                      search.columns.order);
}

FilterRounds rounds_of(const Search& search, std::int64_t first_block,
                       std::int64_t end_block, int device) {
  FilterRounds rounds;
  rounds.num_blocks = FilterBlocks(search.columns.size()).count;
  rounds.first_slab = first_block * (kFilterBlock / kFilterSlab);
  rounds.num_slabs = (end_block - first_block) * (kFilterBlock / kFilterSlab);
  rounds.depth =
      work_depth(*search.request.metric, search.columns.num_features);
  rounds.fill_blocks =
      fill_blocks_for(search.columns.size(), search.plan.k);
  rounds.chunk_size = search.plan.chunk_size;
  rounds.multiprocessors = multiprocessors_of(device);
  return rounds;
}

FilterLayout::FilterLayout(const FilterBlocks& blocks, std::int64_t first_block,
                           std::int64_t end_block, const PointOrder& order)
    : num_slots(blocks.num_slots()),
      first_slot(first_block * kFilterBlock),
      end_slot(end_block * kFilterBlock),
      places(blocks.places()),
      slots(static_cast<std::size_t>(blocks.num_points)),
      list_rows(static_cast<std::size_t>(blocks.num_points), -1) {
  for (std::size_t slot = 0; slot < places.size(); ++slot)
    if (places[slot] >= 0)
      slots[static_cast<std::size_t>(places[slot])] =
          static_cast<std::int32_t>(slot);
  const std::int64_t first = blocks.first(first_block);
  const std::int64_t end = blocks.first(end_block);
  // Places in the order of their points' numbers: those numbers from the first
  // to the last, which is quicker than to sort.
  row_ids.reserve(static_cast<std::size_t>(end - first));
  row_places.reserve(static_cast<std::size_t>(end - first));
  for (std::size_t id = 0; id < order.place.size(); ++id) {
    const std::int32_t place = order.place[id];
    if (place < first || place >= end) continue;
    list_rows[static_cast<std::size_t>(place)] =
        static_cast<std::int32_t>(row_ids.size());
    row_ids.push_back(static_cast<std::int32_t>(id));
    row_places.push_back(place);
  }
}

GraphByFilter::GraphByFilter(const Search& search, FilterTeam& team, int own)
    : search_(search),
      team_(team),
      workers_(*team.workers),
      device_(team.shares[static_cast<std::size_t>(own)].device),
      blocks_(search.columns.size()),
      layout_(layout_of(search, team, own)),
      exchange_(team, own),
      points_(search.columns, search, search.plan.padded_points, stream_),
      filter_(make_pair_filter(*search.request.metric,
                               search.columns.num_features)),
      d_slot_places_(layout_.num_slots),
      d_slots_(search.columns.size()),
      d_list_rows_(search.columns.size()),
      d_row_places_(num_owned()),
      filter_rows_(layout_.num_slots * filter_->row_bytes()),
      filter_values_(layout_.num_slots * filter_->floats_a_slot()),
      counts_(layout_.num_slots),
      thresholds_(layout_.num_slots),
      bounds_(layout_.num_slots),
      entries_(layout_.num_slots * candidates_for(search.plan.k)),
      nearest_distance_(num_owned() * search.plan.k),
      nearest_index_(num_owned() * search.plan.k),
      redo_places_(num_owned()),
      redo_count_(1),
      answer_(search.out, num_owned(), search.plan.k, threads_of(search)) {
  upload(d_slot_places_, layout_.places.data(), layout_.num_slots, stream_);
  upload(d_slots_, layout_.slots.data(), d_slots_.size(), stream_);
  upload(d_list_rows_, layout_.list_rows.data(), d_list_rows_.size(), stream_);
  upload(d_row_places_, layout_.row_places.data(), num_owned(), stream_);
  clear_from(redo_count_, 0, stream_);
  clear_from(filter_rows_, 0, stream_);
  if (filter_values_.size() > 0) clear_from(filter_values_, 0, stream_);
  nearest_.distance = nearest_distance_.data();
  nearest_.index = nearest_index_.data();
  nearest_.k = search.plan.k;

  work_.rows = {filter_rows_.data(), filter_values_.data(), layout_.num_slots};
  work_.columns = work_.rows;
  work_.lists.entries = entries_.data();
  work_.lists.counts = counts_.data();
  work_.lists.thresholds = thresholds_.data();
  work_.lists.bounds = bounds_.data();
  work_.lists.places = work_.lists.column_places = d_slot_places_.data();
  work_.lists.row_ids = work_.lists.column_ids = points_.ids.data();
  work_.lists.num_slots = layout_.num_slots;
  work_.lists.capacity = candidates_for(search.plan.k);
  cut_.redo = {redo_places_.data(), redo_count_.data()};
  cut_.k = static_cast<std::int32_t>(search.plan.k);
  cut_.first_slot = layout_.first_slot;
  cut_.end_slot = layout_.end_slot;

  FilterShare& share = team.shares[static_cast<std::size_t>(own)];
  share.first_slot = layout_.first_slot;
  share.end_slot = layout_.end_slot;
}

std::int64_t GraphByFilter::num_launches(const FilterTeam& team,
                                         const Search& search) {
  std::int64_t launches = 0;
  const FilterBlocks blocks(search.columns.size());
  for (int w = 0; w < team.size(); ++w)
    launches += static_cast<std::int64_t>(
        schedule_filter(
            rounds_of(search, first_block_of(blocks, w, team.size()),
                      first_block_of(blocks, w + 1, team.size()),
                      team.shares[static_cast<std::size_t>(w)].device))
            .size());
  return launches;
}

void GraphByFilter::run() {
  make_rows();
  if (!exchange_.begin(work_.lists)) return;
  const Clock::time_point start = Clock::now();
  if (!filter()) return;
  finish();
  if (!redo() || !workers_.meet()) return;
  stats_.seconds_device =
      std::chrono::duration<double>(Clock::now() - start).count();
  write_out();
  stats_.seconds_emit = answer_.seconds();
}

/// The points in the filter's form, and empty lists.
void GraphByFilter::make_rows() {
  const PreparedRows points = {points_.rows.data(), points_.sums.data(),
                               padded()};
  // Points are shuffled: the first of them are a sample.
  filter_->learn(points, search_.columns.size(), search_.undo, stream_.get());
  filter_->start_rows(points, d_slots_.size(), d_slots_.data(), work_.rows,
                      stream_.get());
  filter_->set_errors(cut_, work_.rows, work_.columns, stream_);
  start_candidates(work_.lists, stream_.get());
  cut_.lists = work_.lists;
  stream_.wait();
}

/// The candidates. Returns whether to go on.
bool GraphByFilter::filter() {
  rounds_ = rounds_of(search_, layout_.first_slot / kFilterBlock,
                      layout_.end_slot / kFilterBlock, device_);
  int launch = 0;
  for (const FilterJobs& jobs : schedule_filter(rounds_)) {
    Event& done = launch_done_[launch++ % 2];
    done.wait();
    work_.jobs = jobs;
    filter_->start(work_, stream_.get());
    if (jobs.ends_round) {
      // The first round's pairs are all for the lists of their rows.
      if (!jobs.fill && !exchange_.gather(stream_)) return false;
      cut_.filled = jobs.fill ? static_cast<std::int32_t>(
                                    jobs.end_delta * kFilterBlock)
                              : 0;
      cut_.all_valid = !jobs.fill;
      start_cut(cut_, stream_.get());
      if (!exchange_.publish(stream_)) return false;
    }
    done.record(stream_);
    if (!workers_.go_on()) {
      stream_.wait();
      return false;
    }
  }
  const double n = static_cast<double>(blocks_.num_points);
  stats_.pairs_filtered = n * (n - 1) / 2 / team_.size();
  return true;
}

/// The nearest of the candidates of each owned slot.
void GraphByFilter::finish() {
  exact_.lists = work_.lists;
  exact_.redo = cut_.redo;
  exact_.first_slot = layout_.first_slot;
  exact_.end_slot = layout_.end_slot;
  exact_.rows = exact_.columns = points_.rows.data();
  exact_.row_sums = exact_.column_sums = points_.sums.data();
  exact_.list_rows = d_list_rows_.data();
  exact_.padded = padded();
  exact_.undo = search_.undo;
  exact_.nearest = nearest_;
  run_exact(*search_.request.metric, exact_, stream_);
  const std::size_t num_slots =
      static_cast<std::size_t>(layout_.end_slot - layout_.first_slot);
  std::vector<std::int32_t> counts(num_slots);
  CUDA_CHECK(cudaMemcpyAsync(counts.data(),
                             counts_.data() + layout_.first_slot,
                             num_slots * sizeof(std::int32_t),
                             cudaMemcpyDeviceToHost, stream_.get()));
  stream_.wait();
  for (std::size_t at = 0; at < num_slots; ++at)
    if (layout_.places[static_cast<std::size_t>(layout_.first_slot) + at] >=
            0 &&
        counts[at] > 0)
      stats_.pairs_exact += counts[at];
}

/// Rows whose candidates overflowed: by longer lists, and what is too much for
/// those in doubles. Returns whether to go on.
bool GraphByFilter::redo() {
  std::int32_t count = 0;
  download(&count, redo_count_, 1, stream_);
  stream_.wait();
  stats_.rows_redone = count;
  if (count == 0) return true;
  std::vector<std::int32_t> places(static_cast<std::size_t>(count));
  download(places.data(), redo_places_, count, stream_);
  stream_.wait();
  std::sort(places.begin(), places.end());
  if (WideFilter::helps(work_.lists) && !redo_widely(places)) return false;
  stats_.rows_widened = count - static_cast<double>(places.size());
  if (places.empty()) return true;
  DoubleRedo redo(search_, workers_, stream_, points_, points_,
                  d_list_rows_.data(), nearest_);
  const bool go_on = redo.run(places);
  stats_.pairs_exact += redo.pairs();
  return go_on;
}

/// Leaves in `places` what is to be done in doubles. Returns whether to go on.
bool GraphByFilter::redo_widely(std::vector<std::int32_t>& places) {
  WideFilter::Search search;
  search.workers = &workers_;
  search.filter = filter_.get();
  search.columns = work_.columns;
  search.lists = work_.lists;
  search.rounds = rounds_;
  search.padded = padded();
  search.k = search_.plan.k;
  std::vector<std::int32_t> slots;
  for (const std::int32_t place : places)
    slots.push_back(layout_.slots[static_cast<std::size_t>(place)]);
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

void GraphByFilter::write_out() {
  CorrelationOf from;
  from.rows = points_.rows.data();
  from.row_places = d_row_places_.data();
  from.columns = points_.rows.data();
  from.places = points_.places.data();
  from.padded = padded();
  answer_.write(nearest_, num_owned(), layout_.row_ids.data(), from, stream_);
}

}  // namespace cuda
}  // namespace fsknn
