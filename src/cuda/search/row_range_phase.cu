#include "cuda/search/row_range_phase.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"
#include "cuda/device/warps.cuh"
#include "cuda/plan/pieces.hpp"

namespace fsknn {
namespace cuda {
namespace {

// The number of parts of the host's work for its threads.
constexpr std::int64_t kParts = 64;

// Grid: x over jobs. Block: kThreads. Shared: none.
__global__ void __launch_bounds__(kThreads)
    list_jobs(const RowRangeLaunch launch, ListedJob* jobs) {
  const std::int64_t at =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < launch.num_jobs()) jobs[at] = launch.job(at);
}

/// Calls work(part) for each of kParts, by the host's threads.
template <class Work>
void in_parts(int num_threads, Work work) {
  PieceTeam team(kParts, num_threads,
                 [&](std::int64_t, std::int64_t part) { work(part); });
  team.begin(1);
  team.release(1);
  team.finish(0);
}

/// The limit for wide lists: rows with more are computed in doubles.
std::int32_t most_waiting(std::int64_t k) {
  const std::int64_t most = std::min<std::int64_t>(kMostRanked, 2 * k);
  return static_cast<std::int32_t>(std::max<std::int64_t>(1024, most));
}

std::int64_t entries_for(const FilterStreaming& shape) {
  return std::max(
      shape.row_range_blocks * kFilterBlock * shape.capacity,
      kFilterBlock * static_cast<std::int64_t>(wider_capacity(shape.capacity)));
}

}  // namespace

RowRangePhase::RowRangePhase(const PanelsPart& part, const RowsInForm& rows,
                             FilterTeam& team, int own)
    : PanelPhase(part, rows),
      team_(team),
      own_(own),
      blocks_(part.num_points()),
      block_bytes_(kFilterBlock * filter_->row_bytes()),
      values_(filter_->floats_a_slot() * part.layout.num_slots),
      ids_(part.num_points()),
      panels_{DeviceBuffer<unsigned char>(
                  row_range_panel_bytes(shape_.panel_blocks, block_bytes_)),
              DeviceBuffer<unsigned char>(
                  row_range_panel_bytes(shape_.panel_blocks, block_bytes_))},
      rows_(*filter_, shape_.row_range_blocks * kFilterBlock),
      entries_(entries_for(shape_)),
      lists_({shape_.row_range_blocks * kFilterBlock, shape_.capacity,
              shape_.row_range_blocks * kFilterBlock, false},
             part.stream),
      jobs_(shape_.row_range_blocks * shape_.panel_blocks),
      from_slots_(shape_.row_range_blocks * kFilterBlock),
      first_(from_slots_.size() + 1),
      counts_(own_places_.size(), 0),
      found_at_(own_places_.size(), 0) {
  upload(ids_, part.search.in_panels->order.id.data(), ids_.size(),
         part.stream);
  if (values_.size() > 0) clear_from(values_, 0, part.stream);
  CandidateLists entries;
  entries.entries = entries_.data();
  lists_.borrow_entries(entries);
  lists_.meet(panel_places_.data(), ids_.data(), ids_.data());
}

RowRangePhase::~RowRangePhase() {
  cudaStreamSynchronize(copies_.get());
  cudaStreamSynchronize(part_.stream.get());
}

std::int64_t RowRangePhase::num_launches(const Search& search) {
  const FilterStreaming& shape = search.plan.streaming;
  const FilterBlocks blocks(search.columns.size());
  return ceil_div(blocks.count, shape.row_range_blocks) *
         ceil_div(blocks.count, shape.panel_blocks);
}

/// The first device's worker does this for all.
bool RowRangePhase::make_room_on_host() {
  // Otherwise rows would not fit there.
  tell(LearntForms::Stage::learnt, nullptr, 0);
  if (own_ == 0) {
    const std::int64_t bytes = blocks_.count * block_bytes_;
    // A form that did not suit may have left memory there.
    team_.host_rows = PinnedBuffer<unsigned char>();
    team_.host_rows = PinnedBuffer<unsigned char>(bytes);
    unsigned char* const rows = team_.host_rows.data();
    // Padding has zeros.
    in_parts(threads_of(part_.search), [&](std::int64_t part) {
      const std::int64_t first = bytes * part / kParts;
      std::memset(
          rows + first, 0,
          static_cast<std::size_t>(bytes * (part + 1) / kParts - first));
    });
  }
  return part_.workers.meet();
}

bool RowRangePhase::make_rows() {
  if (!make_room_on_host()) return false;
  // Each device needs the filter's values of all points besides rows, and
  // computes all of them. Several devices write the same rows.
  const FilterRows to = {team_.host_rows.data(), values_.data(),
                         part_.layout.num_slots};
  if (!make_all(part_.panels.buffers, to)) return false;
  // All devices write the rows into the same memory. The values, which each
  // device has for itself, therefore show what it learnt.
  tell(LearntForms::Stage::made, values_.data(),
       values_.size() * static_cast<std::int64_t>(sizeof(float)));
  return part_.workers.meet();
}

bool RowRangePhase::run(FilteredGraph& found, Stats& stats) {
  const std::int64_t first = part_.layout.first_slot.value / kFilterBlock;
  const std::int64_t end = part_.layout.end_slot.value / kFilterBlock;
  found_.reserve(own_places_.size() *
                 static_cast<std::size_t>(part_.search.plan.k) * 5 / 4);
  for (std::int64_t block = first; block < end;
       block += shape_.row_range_blocks)
    if (!find(block, std::min(shape_.row_range_blocks, end - block)))
      return false;
  found.pairs = gather();
  for (std::size_t own = 0; own < counts_.size(); ++own)
    if (counts_[own] == 0)
      found.redone.push_back(static_cast<std::int64_t>(own));
  const double owned = static_cast<double>(part_.layout.num_owned());
  const double redone = static_cast<double>(found.redone.size());
  const double met = static_cast<double>(part_.num_points());
  stats.filter = filter_->numbers();
  stats.pairs_filtered = owned * met;
  stats.pairs_exact = static_cast<double>(found.pairs.num_pairs());
  stats.rows_recomputed = redone;
  if (redone == 0 || wider_capacity(shape_.capacity) == shape_.capacity)
    return true;
  stats.pairs_filtered += redone * met;
  return find_widely(found);
}

/// Finds the candidates of blocks of rows from first_block on.
bool RowRangePhase::find(std::int64_t first_block, std::int64_t num_blocks) {
  const Stream& stream = part_.stream;
  const std::int64_t first = first_block * kFilterBlock;
  const RowRange row_range = {lists_, num_blocks * kFilterBlock};
  const FilterRows rows = rows_.first(row_range.num_slots);
  CUDA_CHECK(cudaMemcpyAsync(
      rows.rows, team_.host_rows.data() + first_block * block_bytes_,
      static_cast<std::size_t>(num_blocks * block_bytes_),
      cudaMemcpyHostToDevice, stream.get()));
  const auto bytes_of = [](std::int64_t slots) {
    return static_cast<std::size_t>(slots) * sizeof(float);
  };
  CUDA_CHECK(cudaMemcpy2DAsync(
      rows.values, bytes_of(row_range.num_slots), values_.data() + first,
      bytes_of(part_.layout.num_slots), bytes_of(row_range.num_slots),
      static_cast<std::size_t>(filter_->floats_a_slot()),
      cudaMemcpyDeviceToDevice, stream.get()));
  lists_.place(slot_places_.data() + first, row_range.num_slots, stream);
  if (!meet_all(row_range)) return false;
  std::int64_t at = static_cast<std::int64_t>(found_.size());
  const std::vector<std::int32_t> counts = take(row_range, kMostRanked, found_);
  for (std::int64_t r = 0; r < row_range.num_slots; ++r) {
    const std::int32_t place =
        part_.layout.places[static_cast<std::size_t>(first + r)];
    if (place < 0) continue;
    const std::size_t own = static_cast<std::size_t>(
        part_.layout.list_rows[static_cast<std::size_t>(place)]);
    counts_[own] = counts[static_cast<std::size_t>(r)];
    found_at_[own] = at;
    at += counts_[own];
  }
  return part_.workers.go_on();
}

/// Compares the rows of a range of slots with all columns.
bool RowRangePhase::meet_all(const RowRange& row_range) {
  const Stream& stream = part_.stream;
  const WaitAtEnd wait(copies_);
  const CandidateLists& lists = row_range.lists.lists();
  row_range.lists.clear_redo(stream);
  start_candidates(lists, stream.get());
  FilterPass pass;
  pass.filter = filter_.get();
  pass.workers = &part_.workers;
  pass.work.rows = rows_.first(row_range.num_slots);
  pass.work.columns = {nullptr, values_.data(), part_.layout.num_slots};
  pass.work.lists = pass.cut.lists = lists;
  pass.cut.redo = row_range.lists.redo();
  pass.cut.k = static_cast<std::int32_t>(part_.search.plan.k);
  pass.cut.end_slot = {row_range.num_slots};
  filter_->set_errors(pass.cut, pass.work.rows, pass.work.columns, stream);

  RowRangeShape shape;
  shape.row_blocks = row_range.num_slots / kFilterBlock;
  shape.num_blocks = blocks_.count;
  shape.panel_blocks = shape_.panel_blocks;
  shape.fill_blocks = shape_.fill_blocks;
  shape.multiprocessors = multiprocessors_;
  copy_panel(0);
  copy_panel(1);
  const std::vector<RowRangeLaunch> launches = schedule_row_range(shape);
  std::vector<FilterJobs> all_jobs;
  for (const RowRangeLaunch& launch : launches) {
    FilterJobs jobs;
    jobs.num_blocks = blocks_.count;
    jobs.symmetric = false;
    jobs.fill = launch.fill;
    jobs.listed = jobs_.data();
    jobs.end_job = launch.num_jobs() * kSlabsABlock;
    jobs.ends_round = launch.ends_round;
    jobs.filled =
        launch.fill ? static_cast<std::int32_t>(launch.end_block * kFilterBlock)
                    : 0;
    all_jobs.push_back(jobs);
  }
  KnownSchedule schedule(std::move(all_jobs));
  AroundLaunch around;
  around.before = [&](const FilterJobs&, std::size_t at) {
    begin_launch(launches[at], pass.work);
  };
  around.after = [&](std::size_t at) { return end_launch(launches[at]); };
  return run_schedule(pass, schedule, around, stream);
}

/// Sets the jobs of a launch, and the panel that they read.
void RowRangePhase::begin_launch(const RowRangeLaunch& launch,
                                 FilterWork& work) {
  const cudaStream_t stream = part_.stream.get();
  const std::int64_t panel = launch.first_block / shape_.panel_blocks;
  if (launch.first_block % shape_.panel_blocks == 0)
    ready_[panel % 2].hold(part_.stream);
  // Columns are identified by their slots among all.
  work.columns.rows =
      panels_[panel % 2].data() - panel * shape_.panel_blocks * block_bytes_;
  const std::int64_t num_jobs = launch.num_jobs();
  list_jobs<<<static_cast<unsigned>(ceil_div(num_jobs, kThreads)), kThreads, 0,
              stream>>>(launch, jobs_.data());
  CUDA_CHECK(cudaGetLastError());
}

/// Starts copying the panel after the next into the finished one's memory.
/// Returns how many panels are finished.
std::int64_t RowRangePhase::end_launch(const RowRangeLaunch& launch) {
  if (launch.end_block % shape_.panel_blocks != 0 &&
      launch.end_block != blocks_.count)
    return 0;
  const std::int64_t panel = launch.first_block / shape_.panel_blocks;
  free_[panel % 2].record(part_.stream);
  copy_panel(panel + 2);
  return 1;
}

/// Copies the filter's rows of a panel of columns, once its buffer is free.
void RowRangePhase::copy_panel(std::int64_t panel) {
  const std::int64_t first = panel * shape_.panel_blocks;
  if (first >= blocks_.count) return;
  const std::int64_t count =
      std::min(shape_.panel_blocks, blocks_.count - first);
  free_[panel % 2].hold(copies_);
  CUDA_CHECK(cudaMemcpyAsync(panels_[panel % 2].data(),
                             team_.host_rows.data() + first * block_bytes_,
                             static_cast<std::size_t>(count * block_bytes_),
                             cudaMemcpyHostToDevice, copies_.get()));
  ready_[panel % 2].record(copies_);
}

/// Appends the lists' candidates to `columns` as panel places, in the order of
/// their slots. Returns the number of each list; 0 if it overflowed, has too
/// few (NaN sums), or more than `most`.
std::vector<std::int32_t> RowRangePhase::take(
    const RowRange& row_range, std::int32_t most,
    std::vector<std::int32_t>& columns) {
  const Stream& stream = part_.stream;
  std::vector<std::int32_t> counts =
      row_range.lists.counts(Slot{0}, Slot{row_range.num_slots}, stream);
  const CandidateLists& lists = row_range.lists.lists();
  // Copies through a panel's memory, as many lists at a time as fit.
  const std::int64_t room =
      panels_[0].size() / static_cast<std::int64_t>(sizeof(std::int32_t));
  std::vector<std::int32_t> slots;
  std::vector<std::int64_t> first(1, 0);
  PairsFromLists from;
  from.lists = lists;
  from.own_slots = from_slots_.data();
  from.panel_places = panel_places_.data();
  WaitingPairs to;
  to.first = first_.data();
  to.columns = reinterpret_cast<std::int32_t*>(panels_[0].data());
  const auto send = [&] {
    if (slots.empty()) return;
    from.num_owned = static_cast<std::int64_t>(slots.size());
    upload(from_slots_, slots.data(), from.num_owned, stream);
    upload(first_, first.data(), from.num_owned + 1, stream);
    start_waiting(from, to, stream.get());
    const std::size_t before = columns.size();
    const std::size_t more = static_cast<std::size_t>(first.back());
    columns.resize(before + more);
    CUDA_CHECK(cudaMemcpyAsync(columns.data() + before, to.columns,
                               more * sizeof(std::int32_t),
                               cudaMemcpyDeviceToHost, stream.get()));
    stream.wait();
    slots.clear();
    first.resize(1);
  };
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] < part_.search.plan.k || counts[r] > most ||
        counts[r] > lists.capacity)
      counts[r] = 0;
    if (counts[r] == 0) continue;
    if (first.back() + counts[r] > room) send();
    slots.push_back(static_cast<std::int32_t>(r));
    first.push_back(first.back() + counts[r]);
  }
  send();
  return counts;
}

/// Gathers the candidates of owned points in the order of their rows, in memory
/// that the device reads.
WaitingList RowRangePhase::gather() {
  std::vector<std::int64_t> first(counts_.size() + 1, 0);
  for (std::size_t own = 0; own < counts_.size(); ++own)
    first[own + 1] = first[own] + counts_[own];
  WaitingList list(own_places_, first, WaitingList::Where::host, part_.stream);
  std::int32_t* const to = list.columns();
  const std::int64_t owned = part_.layout.num_owned();
  in_parts(threads_of(part_.search), [&](std::int64_t part) {
    const std::size_t end =
        static_cast<std::size_t>(owned * (part + 1) / kParts);
    for (std::size_t own = static_cast<std::size_t>(owned * part / kParts);
         own < end; ++own)
      std::copy_n(found_.data() + found_at_[own], counts_[own],
                  to + first[own]);
  });
  std::vector<std::int32_t>().swap(found_);
  return list;
}

/// Converts rows ids[first] .. from doubles into the first slots of rows_.
void RowRangePhase::form_rows(const std::vector<std::int32_t>& ids,
                              std::int64_t first, std::int64_t count) {
  const Stream& stream = part_.stream;
  PanelBuffer& buffer = part_.panels.buffers[0];
  const FilterRows to = rows_.first(query_slots(count));
  rows_.clear(stream);
  const std::vector<std::int32_t> slots = counting(0, count);
  upload(from_slots_, slots.data(), count, stream);
  for (std::int64_t at = 0; at < count; at += buffer.most_rows()) {
    const std::int64_t some = std::min(buffer.most_rows(), count - at);
    part_.panels.from.fetch_some(ids.data() + first + at, some, buffer);
    const Panel panel = buffer.get(stream);
    filter_->start_rows({panel.rows, panel.sums, part_.search.columns.padded},
                        some, from_slots_.data() + at, to, stream.get());
    buffer.release(stream);
  }
  stream.wait();
}

/// Uses longer lists, in the memory of those no longer needed.
bool RowRangePhase::find_widely(FilteredGraph& found) {
  const Stream& stream = part_.stream;
  const std::int32_t capacity = wider_capacity(shape_.capacity);
  const std::int64_t redone = static_cast<std::int64_t>(found.redone.size());
  const std::int64_t most_rows =
      std::min({entries_.size() / capacity / kFilterBlock * kFilterBlock,
                from_slots_.size(), query_slots(redone)});
  CandidateStore lists({most_rows, capacity, most_rows, false}, stream);
  const WaitAtEnd wait(stream);
  lists.borrow_entries(lists_.lists());
  lists.meet(panel_places_.data(), ids_.data(), ids_.data());
  std::vector<std::int32_t> ids, places;
  for (const std::int64_t own : found.redone) {
    ids.push_back(part_.layout.row_ids[static_cast<std::size_t>(own)]);
    places.push_back(own_places_[static_cast<std::size_t>(own)]);
  }
  for (std::int64_t first = 0; first < redone; first += most_rows) {
    const std::int64_t count = std::min(most_rows, redone - first);
    const RowRange row_range = {lists, query_slots(count)};
    form_rows(ids, first, count);
    std::vector<std::int32_t> slot_places(places.begin() + first,
                                          places.begin() + first + count);
    slot_places.resize(static_cast<std::size_t>(row_range.num_slots), -1);
    lists.place(slot_places.data(), row_range.num_slots, stream);
    if (!meet_all(row_range)) {
      stream.wait();
      return false;
    }
    const std::vector<std::int32_t> counts =
        take(row_range, most_waiting(part_.search.plan.k), found.wide.columns);
    found.wide.counts.insert(found.wide.counts.end(), counts.begin(),
                             counts.begin() + count);
  }
  return true;
}

}  // namespace cuda
}  // namespace fsknn
