#include "cuda/search/groups_by_filter.hpp"

#include <math_constants.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/pieces.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"
#include "cuda/device/warps.cuh"

namespace fsknn {
namespace cuda {
namespace {

static_assert(kThreads == kFilterBlock, "a thread a slot");
// Limits of the number of points from which the filter's form is learnt. Within
// them, the sample uses the memory that the lists will take later.
constexpr std::int64_t kLeastSampled = 256, kMostSampled = 2048;

/// The initial values of the lists of list blocks. All pointers are device
/// memory.
struct Beginning {
  const ListBlock* blocks;          ///< [list blocks]
  const std::int32_t* data_places;  ///< [data slots]
  const std::int32_t* rows;         ///< by place: the row
  std::int32_t num_lists;           ///< of a row
  const float* values;              ///< [floats_a_slot x data slots]
  std::int64_t data_slots, floats_a_slot;
  // Out. [floats_a_slot x num_slots] and [num_slots]
  float* list_values;
  std::int64_t num_slots;
  std::int32_t* block_of;  ///< [list blocks]
  std::int32_t* slot_rows;
  std::int32_t* places;
  CandidateLists lists;  ///< counts, thresholds, bounds
};

// Grid: one block a list block. Block: one thread a slot. Shared: none.
__global__ void __launch_bounds__(kThreads) begin_lists(const Beginning begin) {
  const ListBlock own = begin.blocks[blockIdx.x];
  const std::int64_t slot =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t from =
      static_cast<std::int64_t>(own.block) * kThreads + threadIdx.x;
  const std::int32_t place = begin.data_places[from];
  const bool there = place >= 0;
  if (threadIdx.x == 0) begin.block_of[blockIdx.x] = own.block;
  for (std::int64_t v = 0; v < begin.floats_a_slot; ++v)
    begin.list_values[v * begin.num_slots + slot] =
        begin.values[v * begin.data_slots + from];
  begin.slot_rows[slot] =
      there ? begin.rows[place] * begin.num_lists + own.list : -1;
  begin.places[slot] = place;
  begin.lists.counts[slot] = there ? own.filled : 0;
  begin.lists.thresholds[slot] = there ? -CUDART_INF_F : CUDART_NAN_F;
  begin.lists.bounds[slot] = -CUDART_INF_F;
}

// Does the same for blocks that serve only as columns. Grid: one block a block
// of slots. Block: one thread a slot. Shared: none.
__global__ void __launch_bounds__(kThreads)
    copy_blocks(const std::int32_t* block_of, const std::int32_t* data_places,
                const float* values, std::int64_t data_slots,
                std::int64_t floats_a_slot, std::int32_t* places,
                float* list_values) {
  const std::int64_t slots = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t slot =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t from =
      static_cast<std::int64_t>(block_of[blockIdx.x]) * kThreads + threadIdx.x;
  places[slot] = data_places[from];
  for (std::int64_t v = 0; v < floats_a_slot; ++v)
    list_values[v * slots + slot] = values[v * data_slots + from];
}

// Takes another device's results: the entries that are not empty. Grid: x over
// entries. Block: any. Shared: none.
__global__ void take_found(const double* distance, const std::int32_t* index,
                           std::int64_t count, double* own_distance,
                           std::int32_t* own_index) {
  const std::int64_t at =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count || index[at] == kNoPoint) return;
  own_distance[at] = distance[at];
  own_index[at] = index[at];
}

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>(ceil_div(items, kThreads));
}

}  // namespace

GroupTeam::GroupTeam(const Search& search, const PointGroups& all,
                     const GroupBlocks& of_groups,
                     const std::vector<Device>& gpus, int count)
    : groups(all),
      blocks(of_groups),
      num_lists(all.num_lists()),
      found(static_cast<std::size_t>(count)),
      rows(static_cast<std::size_t>(search.columns.size())),
      places(blocks.places()) {
  GroupMeetings meetings;
  meetings.lists = groups.lists();
  meetings.k = search.plan.k;
  meetings.depth = search.plan.shape.rows.work;
  meetings.most_blocks = search.plan.list_blocks;
  meetings.span = std::max<std::int64_t>(
      1, std::min<std::int64_t>(
             16, ceil_div(search.plan.chunk_size, kFilterBlock)));
  batches = group_batches(blocks, meetings, count);
  for (int w = 0; w < count; ++w)
    devices.push_back(gpus[static_cast<std::size_t>(w)].cuda_id);
  const PointOrder& order = search.columns.order;
  for (std::size_t id = 0; id < order.place.size(); ++id) {
    const std::int32_t place = order.place[id];
    if (place < 0) continue;
    rows[static_cast<std::size_t>(place)] =
        static_cast<std::int32_t>(row_ids.size());
    row_ids.push_back(static_cast<std::int32_t>(id));
    row_places.push_back(place);
  }
}

std::int64_t GroupTeam::most_slots(int device) const {
  std::size_t most = 1;
  for (const GroupBatch& batch : batches[static_cast<std::size_t>(device)])
    most = std::max(most, batch.blocks.size());
  return static_cast<std::int64_t>(most) * kFilterBlock;
}

std::int64_t GroupTeam::num_launches() const {
  std::size_t launches = 1;
  for (const auto& of_device : batches)
    for (const GroupBatch& batch : of_device)
      launches += batch.launches.size() + 1;
  return static_cast<std::int64_t>(launches);
}

GroupsByFilter::GroupsByFilter(const Search& search, GroupTeam& team, int own)
    : ListsByFilter(search, *team.workers,
                    {{team.most_slots(own), candidates_for(search.plan.k),
                      team.most_slots(own)},
                     search.columns.size() * team.num_lists,
                     team.first_row(own + 1) - team.first_row(own),
                     team.num_lists}),
      team_(team),
      own_(own),
      data_places_(team.blocks.num_slots()),
      rows_(search.columns.size()),
      row_places_(search.columns.size()),
      blocks_(team.most_slots(own) / kFilterBlock),
      block_of_(blocks_.size()),
      slot_rows_(team.most_slots(own)),
      jobs_(kMostListedJobs) {
  upload(data_places_, team.places.data(), data_places_.size(), stream_);
  upload(rows_, team.rows.data(), rows_.size(), stream_);
  upload(row_places_, team.row_places.data(), row_places_.size(), stream_);
  make_form();
  values_ =
      DeviceBuffer<float>(slot_rows_.size() * formed_.filter->floats_a_slot());
  clear_from(values_, 0, stream_);
  candidates_.hold_entries();
  candidates_.meet_own(columns_.ids.data());
  if (team.size() > 1)
    start_clear(nearest_.lists(), search.columns.size() * team.num_lists,
                stream_.get());

  pass_.work.rows =
      list_rows(block_of_.data(), values_.data(), slot_rows_.size());
  set_points(*formed_.filter, pass_.work.rows, columns_);
  pass_.cut.redo.by_slot = exact_.redo.by_slot = true;
  // The values that it writes into rows are for the lists' copies of them, too.
  formed_.filter->set_errors(pass_.cut, data_rows(), data_rows(), stream_);
  formed_.filter->set_errors(pass_.cut, pass_.work.rows, pass_.work.columns,
                             stream_);
  exact_.sums_given = formed_.filter->tells_sums();
  exact_.slot_rows = slot_rows_.data();
  counter_.clear(stream_);
  stream_.wait();
}

FilterRows GroupsByFilter::list_rows(const std::int32_t* blocks, float* values,
                                     std::int64_t num_slots) {
  FilterRows rows = data_rows();
  rows.values = values;
  rows.num_slots = num_slots;
  rows.block_of = blocks;
  return rows;
}

/// Puts the points in the first form that suits them. Places are by group, so
/// the sample is drawn from all.
void GroupsByFilter::make_form() {
  const std::int64_t n = columns_.ids.size() > 0 ? search_.columns.size() : 0;
  const std::int64_t entries =
      slot_rows_.size() * candidates_for(search_.plan.k);
  const std::int64_t count = std::min(
      n, std::max(kLeastSampled,
                  std::min(kMostSampled, entries / (columns_.padded + 2))));
  std::vector<std::int32_t> places(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    places[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(n * i / count);
  // The first of them are a sample, too.
  const PointOrder shuffled = order_points(count, {}, true);
  std::vector<std::int32_t> sampled;
  for (const std::int32_t at : shuffled.id)
    sampled.push_back(places[static_cast<std::size_t>(at)]);
  DeviceBuffer<std::int32_t> d_places(count);
  GatheredRows gathered(count, columns_.padded, false);
  const WaitAtEnd wait(stream_);
  upload(d_places, sampled.data(), count, stream_);
  const Panel some = gathered.gather(columns_, d_places.data(), count, stream_);
  const FilterSample sample = {{some.rows, some.sums, columns_.padded},
                               count,
                               search_.undo.scale,
                               sought(search_)};
  formed_ =
      FormedPoints::make(*search_.request.metric, search_.plan.shape.rows,
                         sample, columns_.prepared(), slots_of(team_.places, n),
                         team_.blocks.num_slots(), stream_);
}

void GroupsByFilter::run() {
  workers_.tell_chosen(formed_.filter->numbers());
  const Clock::time_point start = Clock::now();
  for (const GroupBatch& batch : team_.batches[static_cast<std::size_t>(own_)])
    if (!meet(batch) || !redo(batch)) return;
  stats_.pairs_exact += counter_.total(stream_);
  stats_.pairs_filtered += search_.plan.num_pairs / team_.size();
  stats_.filter = formed_.filter->numbers();
  team_.found[static_cast<std::size_t>(own_)] = nearest_.lists();
  if (!workers_.meet()) return;
  gather();
  if (!workers_.meet()) return;
  stats_.seconds_device = seconds_since(start);
  const std::int64_t first = first_row(own_);
  answer_.write(found_from(first), first_row(own_ + 1) - first,
                team_.row_ids.data() + first,
                correlated(columns_, 0, row_places_.data() + first), stream_);
  stats_.seconds_emit = answer_.seconds();
}

/// Finds the lists of a batch. Returns whether to continue.
bool GroupsByFilter::meet(const GroupBatch& batch) {
  const std::int64_t blocks = static_cast<std::int64_t>(batch.blocks.size());
  const std::int64_t slots = blocks * kFilterBlock;
  upload(blocks_, batch.blocks.data(), blocks, stream_);
  candidates_.clear_redo(stream_);
  Beginning begin;
  begin.blocks = blocks_.data();
  begin.data_places = data_places_.data();
  begin.rows = rows_.data();
  begin.num_lists = static_cast<std::int32_t>(team_.num_lists);
  begin.values = data_rows().values;
  begin.data_slots = team_.blocks.num_slots();
  begin.floats_a_slot = formed_.filter->floats_a_slot();
  begin.list_values = values_.data();
  begin.num_slots = slot_rows_.size();
  begin.block_of = block_of_.data();
  begin.slot_rows = slot_rows_.data();
  begin.places = candidates_.place_there(slots);
  begin.lists = candidates_.lists();
  begin_lists<<<static_cast<unsigned>(blocks), kThreads, 0, stream_.get()>>>(
      begin);
  CUDA_CHECK(cudaGetLastError());

  set_slots({0}, {slots});
  // For few neighbours, almost no entry remains in a list.
  const bool hardly_any = pass_.cut.k <= FillRule::most &&
                          pass_.cut.row_slack == nullptr &&
                          batch.most_filled == kFilterBlock;
  pass_.work.fill_rule = {hardly_any ? pass_.cut.k : 0, pass_.cut.twice_error};
  KnownSchedule schedule(launches_of(batch));
  AroundLaunch around;
  around.before = [&](const FilterJobs& jobs, std::size_t launch) {
    upload(jobs_, batch.jobs.data() + batch.launches[launch].first_job,
           jobs.end_job / jobs.num_slabs, stream_);
  };
  if (!run_schedule(pass_, schedule, around, stream_)) return false;
  run_exact(*search_.request.metric, exact_, stream_);
  return workers_.go_on();
}

/// Returns its launches, whose jobs share one table.
std::vector<FilterJobs> GroupsByFilter::launches_of(const GroupBatch& batch) {
  std::vector<FilterJobs> all;
  for (const GroupLaunch& launch : batch.launches) {
    FilterJobs jobs;
    jobs.num_blocks = static_cast<std::int64_t>(batch.blocks.size());
    jobs.num_slabs = kSlabsABlock;
    jobs.end_job = (launch.end_job - launch.first_job) * jobs.num_slabs;
    jobs.symmetric = launch.symmetric;
    jobs.fill = launch.fill;
    jobs.ends_round = launch.ends_round;
    jobs.filled = launch.fill ? batch.most_filled : 0;
    jobs.counted = jobs.filled > 0;
    // Filling writes some entries of padding or of the row's own point.
    jobs.all_valid = !launch.fill;
    jobs.listed = jobs_.data();
    all.push_back(jobs);
  }
  return all;
}

/// Recomputes lists that overflowed, together with those of the same number
/// that are compared with the same blocks. Returns whether to continue.
bool GroupsByFilter::redo(const GroupBatch& batch) {
  const std::vector<std::int32_t> slots = candidates_.to_redo(stream_);
  // By target, the own group if it is left out, and the list.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>,
           std::vector<std::pair<std::int32_t, std::int32_t>>>
      alike;
  for (const std::int32_t slot : slots) {
    const ListBlock& block =
        batch.blocks[static_cast<std::size_t>(slot / kFilterBlock)];
    const std::int32_t place = team_.places[static_cast<std::size_t>(
        block.block * kFilterBlock + slot % kFilterBlock)];
    const std::vector<std::int64_t>& first = team_.blocks.first_block;
    const std::int64_t own =
        block.target >= 0
            ? -1
            : std::upper_bound(first.begin(), first.end(), block.block) -
                  first.begin() - 1;
    alike[{block.target, own, block.list}].push_back({place, slot});
  }
  for (auto& group : alike) {
    std::sort(group.second.begin(), group.second.end());
    RedoneRows rows;
    for (const auto& row : group.second) {
      rows.places.push_back(row.first);
      rows.slots.push_back(row.second);
    }
    if (!redo_in(std::get<0>(group.first), std::get<1>(group.first),
                 std::get<2>(group.first), rows))
      return false;
  }
  return true;
}

bool GroupsByFilter::redo_in(std::int64_t target, std::int64_t own,
                             std::int64_t list, const RedoneRows& rows) {
  const std::vector<std::int32_t> blocks = looked_in(team_.blocks, target, own);
  const std::int64_t count = static_cast<std::int64_t>(blocks.size());
  const std::int64_t slots = count * kFilterBlock;
  std::vector<std::int32_t> list_row = team_.rows;
  for (std::int32_t& row : list_row)
    row = static_cast<std::int32_t>(row * team_.num_lists + list);
  DeviceBuffer<std::int32_t> d_blocks(count), places(slots),
      d_list_rows(rows_.size());
  DeviceBuffer<float> values(slots * formed_.filter->floats_a_slot());
  const WaitAtEnd wait(stream_);
  upload(d_blocks, blocks.data(), count, stream_);
  upload(d_list_rows, list_row.data(), d_list_rows.size(), stream_);
  copy_blocks<<<static_cast<unsigned>(count), kThreads, 0, stream_.get()>>>(
      d_blocks.data(), data_places_.data(), data_rows().values,
      team_.blocks.num_slots(), formed_.filter->floats_a_slot(), places.data(),
      values.data());
  CUDA_CHECK(cudaGetLastError());

  FilterPass pass;
  pass.filter = formed_.filter.get();
  pass.slot_bytes = search_.plan.shape.rows.slot_bytes();
  pass.rounds.num_blocks = count;
  pass.rounds.depth = search_.plan.shape.rows.work;
  pass.rounds.chunk_size = search_.plan.chunk_size;
  pass.rounds.multiprocessors = multiprocessors_here();
  pass.work.columns = list_rows(d_blocks.data(), values.data(), slots);
  pass.cut.k = pass_.cut.k;
  pass.workers = &workers_;
  ExactStep exact = exact_;
  exact.slot_rows = nullptr;
  exact.list_rows = d_list_rows.data();
  CandidateLists lists = candidates_.all_lists();
  lists.column_places = places.data();
  const auto place_of = [&](std::int64_t group) {
    return team_.blocks.first_place[static_cast<std::size_t>(group)];
  };
  HeldSearch held = {search_, pass, exact, lists, columns_, columns_, {}};
  if (target >= 0)
    held.met = {{place_of(target), place_of(target + 1)}};
  else
    held.met = {{0, place_of(own)},
                {place_of(own + 1), search_.columns.size()}};
  return redo_held(held, rows, stream_, stats_);
}

Lists GroupsByFilter::found_from(std::int64_t row) {
  Lists lists = nearest_.lists();
  lists.k *= team_.num_lists;
  lists.distance += row * lists.k;
  lists.index += row * lists.k;
  return lists;
}

/// Gathers what the other devices found for this device's share of the points.
void GroupsByFilter::gather() {
  if (team_.size() == 1) return;
  const std::int64_t k = search_.plan.k * team_.num_lists;
  const std::int64_t all = (first_row(own_ + 1) - first_row(own_)) * k;
  const std::int64_t step = std::min(all, kStagedBytes / 12);
  if (all == 0) return;
  DeviceBuffer<double> distance(step);
  DeviceBuffer<std::int32_t> index(step);
  const WaitAtEnd wait(stream_);
  const Lists mine = found_from(first_row(own_));
  const int device = team_.devices[static_cast<std::size_t>(own_)];
  for (int other = 0; other < team_.size(); ++other) {
    if (other == own_) continue;
    const Lists& found = team_.found[static_cast<std::size_t>(other)];
    const int from = team_.devices[static_cast<std::size_t>(other)];
    for (std::int64_t at = 0; at < all; at += step) {
      const std::int64_t count = std::min(step, all - at);
      const std::int64_t first = first_row(own_) * k + at;
      CUDA_CHECK(cudaMemcpyPeerAsync(
          distance.data(), device, found.distance + first, from,
          static_cast<std::size_t>(count) * sizeof(double), stream_.get()));
      CUDA_CHECK(cudaMemcpyPeerAsync(
          index.data(), device, found.index + first, from,
          static_cast<std::size_t>(count) * sizeof(std::int32_t),
          stream_.get()));
      take_found<<<blocks_for(count), kThreads, 0, stream_.get()>>>(
          distance.data(), index.data(), count, mine.distance + at,
          mine.index + at);
      CUDA_CHECK(cudaGetLastError());
    }
  }
}

}  // namespace cuda
}  // namespace fsknn
