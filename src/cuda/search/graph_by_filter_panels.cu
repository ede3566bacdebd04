#include "cuda/search/graph_by_filter_panels.cuh"

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "cuda/search/all_pairs_panels.cuh"
#include "cuda/device/transfer.cuh"

namespace fsknn {
namespace cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSample = 64;
// Of a panel, where there is memory: some milliseconds' worth.
constexpr std::int64_t kLongPanel = std::int64_t{64} << 20;
// An entry of a list that is written out: distance, correlation, number.
constexpr std::int64_t kListDoubles = 3;

/// Of each owned point, by its number's place among all that take part.
std::vector<std::int32_t> ranks_of(const FilterLayout& layout,
                                   const PlacedPoints& ranked) {
  std::vector<std::int32_t> ranks;
  ranks.reserve(layout.row_ids.size());
  for (const std::int32_t id : layout.row_ids)
    ranks.push_back(ranked.order.place[static_cast<std::size_t>(id)]);
  return ranks;
}

/// How many of ascending ranks are smaller.
std::int64_t before(const std::vector<std::int32_t>& ranks, std::int64_t rank) {
  return std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
}

FilterRounds narrow_rounds(FilterRounds rounds, const FilterStreaming& shape) {
  rounds.fill_blocks = shape.fill_blocks;
  rounds.growth = shape.growth;
  return rounds;
}

}  // namespace

GraphByFilterPanels::GraphByFilterPanels(const Search& search, FilterTeam& team, int own)
    : search_(search),
      team_(team),
      workers_(*team.workers),
      shape_(search.streaming),
      layout_(layout_of(search, team, own)),
      rounds_(narrow_rounds(
          rounds_of(search, layout_.first_slot / kFilterBlock,
                    layout_.end_slot / kFilterBlock,
                    team.shares[static_cast<std::size_t>(own)].device),
          shape_)),
      own_ranks_(ranks_of(layout_, *search.ranked)),
      exchange_(team, own),
      from_(*search.ranked, search.prepare, threads_of(search)),
      panels_{{shape_.stream_rows, search.columns.padded},
              {shape_.stream_rows, search.columns.padded}},
      filter_(make_pair_filter(*search.request.metric,
                               search.columns.num_features)),
      ids_(num_points()),
      slot_places_(layout_.num_slots),
      slot_ranks_(layout_.num_slots),
      rank_slots_(num_points()),
      rank_ids_(num_points()),
      own_slots_(num_owned()),
      d_own_ranks_(num_owned()),
      counts_(layout_.num_slots),
      thresholds_(layout_.num_slots),
      bounds_(layout_.num_slots),
      filter_rows_(layout_.num_slots * filter_->row_bytes()),
      filter_values_(layout_.num_slots * filter_->floats_a_slot()),
      redo_places_(num_owned()),
      redo_count_(1) {
  const PointOrder& order = search.columns.order;
  const PointOrder& ranked = search.ranked->order;
  std::vector<std::int32_t> rank_slots(ranked.id.size());
  std::vector<std::int32_t> slot_ranks(layout_.places.size(), -1);
  for (std::size_t rank = 0; rank < ranked.id.size(); ++rank) {
    const std::int32_t place =
        order.place[static_cast<std::size_t>(ranked.id[rank])];
    const std::int32_t slot = layout_.slots[static_cast<std::size_t>(place)];
    rank_slots[rank] = slot;
    slot_ranks[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(rank);
  }
  std::vector<std::int32_t> own_slots;
  own_slots.reserve(own_ranks_.size());
  for (const std::int32_t rank : own_ranks_)
    own_slots.push_back(rank_slots[static_cast<std::size_t>(rank)]);
  upload(ids_, order.id.data(), num_points(), stream_);
  upload(slot_places_, layout_.places.data(), layout_.num_slots, stream_);
  upload(slot_ranks_, slot_ranks.data(), layout_.num_slots, stream_);
  upload(rank_slots_, rank_slots.data(), num_points(), stream_);
  upload(rank_ids_, ranked.id.data(), num_points(), stream_);
  upload(own_slots_, own_slots.data(), num_owned(), stream_);
  upload(d_own_ranks_, own_ranks_.data(), num_owned(), stream_);
  clear_from(redo_count_, 0, stream_);
  clear_from(filter_rows_, 0, stream_);
  if (filter_values_.size() > 0) clear_from(filter_values_, 0, stream_);

  work_.rows = {filter_rows_.data(), filter_values_.data(), layout_.num_slots};
  work_.columns = work_.rows;
  work_.lists.counts = counts_.data();
  work_.lists.thresholds = thresholds_.data();
  work_.lists.bounds = bounds_.data();
  work_.lists.places = work_.lists.column_places = slot_places_.data();
  work_.lists.row_ids = work_.lists.column_ids = ids_.data();
  work_.lists.num_slots = layout_.num_slots;
  work_.lists.capacity = shape_.capacity;
  cut_.redo = {redo_places_.data(), redo_count_.data()};
  cut_.k = static_cast<std::int32_t>(search.plan.k);
  cut_.first_slot = layout_.first_slot;
  cut_.end_slot = layout_.end_slot;
  FilterShare& share = team.shares[static_cast<std::size_t>(own)];
  share.first_slot = layout_.first_slot;
  share.end_slot = layout_.end_slot;
  stream_.wait();  // the vectors go
}

std::int64_t GraphByFilterPanels::num_launches(const FilterTeam& team,
                                         const Search& search) {
  return GraphByFilter::num_launches(team, search) * 2;
}

void GraphByFilterPanels::run() {
  if (!make_rows() || !exchange_.begin(work_.lists)) return;
  const Clock::time_point start = Clock::now();
  if (!fill() || !filter()) return;
  collect();
  if (!redo_widely() || !redo() || !settle()) return;
  from_.check();
  stats_.seconds_device =
      std::chrono::duration<double>(Clock::now() - start).count() -
      stats_.seconds_emit;
  stats_.streamed = true;
}

/// The points in the filter's form, a panel at a time. Returns whether to go on.
bool GraphByFilterPanels::make_rows() {
  const std::int64_t padded = search_.columns.padded;
  // Points are shuffled: the first of them are a sample.
  const std::int64_t sample =
      std::min({kSample, num_points(), panels_[0].most_rows()});
  from_.fetch_some(search_.columns.order.id.data(), sample, panels_[0]);
  const Panel first = panels_[0].get(stream_);
  filter_->learn({first.rows, first.sums, padded}, sample, search_.undo,
                 stream_.get());
  panels_[0].release(stream_);
  if (!make_all_rows()) return false;
  filter_->set_errors(cut_, work_.rows, work_.columns, stream_);
  entries_ =
      DeviceBuffer<Candidate>(layout_.num_slots * shape_.capacity);
  work_.lists.entries = entries_.data();
  start_candidates(work_.lists, stream_.get());
  cut_.lists = work_.lists;
  stream_.wait();
  return true;
}

bool GraphByFilterPanels::make_all_rows() {
  // The lists are not there yet: panels may be as large as they will be.
  const std::int64_t padded = search_.columns.padded;
  const std::int64_t lists = layout_.num_slots * shape_.capacity *
                             static_cast<std::int64_t>(sizeof(Candidate));
  const std::int64_t rows = std::min(
      whole_tiles(num_points()),
      std::max(kChunkUnit, std::min(kLongPanel, lists / 2) /
                               (padded * 8 + 12) / kChunkUnit * kChunkUnit));
  PanelBuffer panels[2] = {{rows, padded}, {rows, padded}};
  const bool go_on = for_panels(from_, panels, stream_, [&](const Panel& panel) {
    filter_->start_rows({panel.rows, panel.sums, padded}, panel.count,
                        rank_slots_.data() + panel.first, work_.rows,
                        stream_.get());
    return workers_.go_on();
  });
  stream_.wait();
  return go_on;
}

/// The first round, whose lists are long, for some slots at a time.
bool GraphByFilterPanels::fill() {
  DeviceBuffer<Candidate> entries(shape_.fill_slots * shape_.fill_capacity);
  for (std::int64_t slot = layout_.first_slot; slot < layout_.end_slot;
       slot += shape_.fill_slots) {
    FilterWork work = work_;
    work.lists.capacity = shape_.fill_capacity;
    work.lists.entries = entries.data() - slot * shape_.fill_capacity;
    Cut cut = cut_;
    cut.lists = work.lists;
    cut.first_slot = slot;
    cut.end_slot = std::min(slot + shape_.fill_slots, layout_.end_slot);
    FilterRounds rounds = rounds_;
    rounds.first_slab = cut.first_slot / kFilterSlab;
    rounds.num_slabs = (cut.end_slot - cut.first_slot) / kFilterSlab;
    for (const FilterJobs& jobs : schedule_filter(rounds)) {
      if (!jobs.fill) break;
      work.jobs = jobs;
      filter_->start(work, stream_.get());
      if (!jobs.ends_round) continue;
      cut.filled = static_cast<std::int32_t>(jobs.end_delta * kFilterBlock);
      start_cut(cut, stream_.get());
    }
    start_narrowing(work.lists, work_.lists, cut.first_slot, cut.end_slot,
                    stream_.get());
  }
  // Lists that are too short for what was kept say so. What is in lists from
  // here on are pairs of two points, as the rounds are.
  cut_.all_valid = true;
  start_cut(cut_, stream_.get());
  const bool go_on = exchange_.publish(stream_) && workers_.go_on();
  stream_.wait();
  return go_on;
}

bool GraphByFilterPanels::filter() {
  int launch = 0;
  for (const FilterJobs& jobs : schedule_filter(rounds_)) {
    if (jobs.fill) continue;
    Event& done = launch_done_[launch++ % 2];
    done.wait();
    work_.jobs = jobs;
    filter_->start(work_, stream_.get());
    if (jobs.ends_round) {
      if (!exchange_.gather(stream_)) return false;
      start_cut(cut_, stream_.get());
      if (!exchange_.publish(stream_)) return false;
    }
    done.record(stream_);
    if (!workers_.go_on()) {
      stream_.wait();
      return false;
    }
  }
  stream_.wait();
  const double n = static_cast<double>(num_points());
  stats_.pairs_filtered = n * (n - 1) / 2 / team_.size();
  // The others may still read this device's lists: see that they do not.
  return workers_.meet();
}

/// The candidates into one list.
void GraphByFilterPanels::collect() {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(layout_.num_slots));
  std::vector<std::int64_t> first(own_ranks_.size() + 1, 0);
  const std::int64_t room = room_for_pairs();
  download(counts.data(), counts_, layout_.num_slots, stream_);
  stream_.wait();
  for (std::size_t own = 0; own < own_ranks_.size(); ++own) {
    const std::int32_t place = layout_.row_places[own];
    const std::int32_t slot = layout_.slots[static_cast<std::size_t>(place)];
    std::int32_t count = counts[static_cast<std::size_t>(slot)];
    // Overflowed; or too few, where sums are no numbers; or so many that the
    // memory is used up.
    if (count < search_.plan.k || first[own] + count > room) {
      redone_.push_back(static_cast<std::int64_t>(own));
      count = 0;
    }
    most_pairs_ = std::max(most_pairs_, count);
    first[own + 1] = first[own] + count;
  }
  stats_.rows_redone = static_cast<double>(redone_.size());
  stats_.pairs_exact = static_cast<double>(first.back());
  first_pair_ = DeviceBuffer<std::int64_t>(num_owned() + 1);
  upload(first_pair_, first.data(), first_pair_.size(), stream_);
  pair_columns_ = DeviceBuffer<std::int32_t>(std::max<std::int64_t>(1, first.back()));
  pairs_.own_ranks = d_own_ranks_.data();
  pairs_.first = first_pair_.data();
  pairs_.columns = pair_columns_.data();
  PairsFromLists lists;
  lists.lists = work_.lists;
  lists.own_slots = own_slots_.data();
  lists.slot_ranks = slot_ranks_.data();
  lists.num_owned = num_owned();
  start_waiting(lists, pairs_, stream_.get());
  stream_.wait();
}

/// Rows that overflowed, by longer lists in the memory of those that are not
/// needed any more; then what only the filter needs goes. Leaves in redone_ what
/// is to be done in doubles. Returns whether to go on.
bool GraphByFilterPanels::redo_widely() {
  std::vector<std::int32_t> counts, columns;
  if (!redone_.empty() && WideFilter::helps(work_.lists)) {
    WideFilter::Search search;
    search.workers = &workers_;
    search.filter = filter_.get();
    search.columns = work_.columns;
    search.lists = work_.lists;
    search.rounds = rounds_;
    search.padded = search_.columns.padded;
    search.k = search_.plan.k;
    StreamedWide::Rows rows;
    for (const std::int64_t own : redone_) {
      const std::size_t at = static_cast<std::size_t>(own);
      rows.ids.push_back(layout_.row_ids[at]);
      rows.places.push_back(layout_.row_places[at]);
      rows.slots.push_back(
          layout_.slots[static_cast<std::size_t>(rows.places.back())]);
    }
    StreamedWide wide(search, from_, panels_[0], stream_,
                      static_cast<std::int64_t>(redone_.size()));
    if (!wide.run(rows, slot_ranks_.data())) return false;
    stats_.pairs_filtered += static_cast<double>(redone_.size()) *
                             static_cast<double>(num_points());
    counts = wide.counts();
    columns = wide.columns();
  }
  let_go();
  if (!counts.empty()) keep_wide(counts, columns);
  return true;
}

/// What was found waits with all the rest.
void GraphByFilterPanels::keep_wide(const std::vector<std::int32_t>& counts,
                              const std::vector<std::int32_t>& all_columns) {
  std::vector<std::int64_t> left, first(1, 0);
  std::vector<std::int32_t> columns;
  const std::int64_t room = room_for_pairs() - pair_columns_.size();
  auto found = all_columns.begin();
  for (std::size_t at = 0; at < redone_.size(); ++at) {
    const std::int32_t count = counts[at];
    if (count == 0 || first.back() + count > room) {
      left.push_back(redone_[at]);
      found += count;
      continue;
    }
    columns.insert(columns.end(), found, found + count);
    found += count;
    wide_own_.push_back(static_cast<std::int32_t>(redone_[at]));
    wide_ranks_.push_back(own_ranks_[static_cast<std::size_t>(redone_[at])]);
    first.push_back(first.back() + count);
    most_wide_pairs_ = std::max(most_wide_pairs_, count);
  }
  redone_.swap(left);
  if (wide_own_.empty()) return;
  const auto copy = [&](auto& to, const auto& from) {
    to = std::decay_t<decltype(to)>(static_cast<std::int64_t>(from.size()));
    upload(to, from.data(), to.size(), stream_);
  };
  copy(d_wide_own_, wide_own_);
  copy(d_wide_ranks_, wide_ranks_);
  copy(wide_first_, first);
  copy(wide_columns_, columns);
  wide_values_ = DeviceBuffer<double>(wide_columns_.size());
  wide_pairs_.own_ranks = d_wide_ranks_.data();
  wide_pairs_.first = wide_first_.data();
  wide_pairs_.columns = wide_columns_.data();
  wide_pairs_.values = wide_values_.data();
  stats_.rows_widened = static_cast<double>(wide_own_.size());
  stats_.pairs_exact += static_cast<double>(columns.size());
  stream_.wait();
}

/// Of what only the filter needs.
void GraphByFilterPanels::let_go() {
  filter_rows_ = {};
  filter_values_ = {};
  filter_.reset();
  entries_ = {};
  ids_ = {};
  slot_places_ = {};
  slot_ranks_ = {};
  rank_slots_ = {};
  own_slots_ = {};
  counts_ = {};
  thresholds_ = {};
  bounds_ = {};
  pair_values_ = DeviceBuffer<double>(pair_columns_.size());
  pairs_.values = pair_values_.data();
}

/// Rows that overflowed longer lists too, in doubles. Returns whether to go on.
bool GraphByFilterPanels::redo() {
  if (redone_.empty()) return true;
  RowsByPanels rows(search_, workers_, from_, panels_, stream_,
                    shape_.redo_rows);
  std::vector<std::int32_t> ids;
  for (const std::int64_t own : redone_)
    ids.push_back(layout_.row_ids[static_cast<std::size_t>(own)]);
  const bool go_on = rows.run(ids);
  redone_distance_ = rows.distance();
  redone_index_ = rows.index();
  redone_correlation_ = rows.correlation();
  stats_.pairs_exact += rows.pairs();
  return go_on;
}

double GraphByFilterPanels::bytes_held() const {
  const double points = static_cast<double>(num_points());
  const double owned = static_cast<double>(num_owned());
  return shape_.bytes_fixed + 4 * points + 16 * owned +
         12 * static_cast<double>(pair_columns_.size() +
                                  wide_columns_.size()) +
         16 * static_cast<double>(wide_own_.size());
}

/// Pairs that may wait: besides them something has to stay, or rows to be done in
/// doubles.
std::int64_t GraphByFilterPanels::room_for_pairs() const {
  const double row_bytes =
      static_cast<double>(search_.columns.padded) * 8 + 12;
  const double redo =
      static_cast<double>(shape_.redo_rows) *
      (row_bytes + static_cast<double>(shape_.stream_rows) * 8 +
       static_cast<double>(search_.plan.k) * 20);
  const double stay = static_cast<double>(shape_.stream_rows) * row_bytes;
  const double held = shape_.bytes_fixed +
                      20 * static_cast<double>(num_points()) +
                      16 * static_cast<double>(redone_.size());
  return static_cast<std::int64_t>(
      std::max(0.0, shape_.bytes_usable - held - std::max(redo, stay)) / 12);
}

/// Of owned points, how many have a smaller rank.
std::int64_t GraphByFilterPanels::owned_before(std::int64_t rank) const {
  return before(own_ranks_, rank);
}

/// The exact step: as many points as fit stay, and all after them come by; then
/// those that come next. Each pair of panels is met once, for both its sides.
bool GraphByFilterPanels::settle() {
  const std::int64_t n = num_points();
  const double row_bytes =
      static_cast<double>(search_.columns.padded) * 8 + 12;
  const double room = shape_.bytes_usable - bytes_held();
  std::int64_t stay = static_cast<std::int64_t>(room / row_bytes) /
                      kChunkUnit * kChunkUnit;
  stay = std::min(whole_tiles(n), std::max(stay, shape_.stream_rows));
  // Equal stretches are the least to carry.
  const std::int64_t stretches = (n + stay - 1) / stay;
  stay = std::min(stay, whole_tiles((n + stretches - 1) / stretches));
  PanelBuffer buffer(stay, search_.columns.padded);
  // What stays is not needed any more when its rows are written out: many at a
  // time, in its memory; where that is too small, fewer.
  write_rows_ = buffer.size() / (kListDoubles * search_.plan.k);
  if (write_rows_ < shape_.write_rows) {
    write_rows_ = shape_.write_rows;
    lists_ = DeviceBuffer<double>(write_rows_ * kListDoubles * search_.plan.k);
  }
  write_rows_ = std::min(write_rows_, whole_tiles(n));
  answer_.reset(new AnswerWriter(search_.out, write_rows_, search_.plan.k,
                                 threads_of(search_)));
  for (std::int64_t first = 0; first < n; first += stay) {
    from_.fetch(first, std::min(stay, n - first), buffer);
    if (!settle_panel(buffer)) return false;
    buffer.release(stream_);
  }
  return true;
}

bool GraphByFilterPanels::settle_panel(PanelBuffer& buffer) {
  const Panel panel = buffer.get(stream_);
  const MetricEntry& metric = *search_.request.metric;
  Settling settling;
  settling.padded = search_.columns.padded;
  settling.undo = search_.undo;
  const auto side = [&](const Panel& rows, const Panel& columns) {
    settling.rows = rows;
    settling.columns = columns;
    settling.pairs = pairs_;
    settling.first_owned = owned_before(rows.first);
    settling.end_owned = owned_before(rows.first + rows.count);
    return settling;
  };
  const auto wide_side = [&](const Panel& rows, const Panel& columns) {
    side(rows, columns);
    settling.pairs = wide_pairs_;
    settling.first_owned = before(wide_ranks_, rows.first);
    settling.end_owned = before(wide_ranks_, rows.first + rows.count);
    return settling;
  };
  const bool any_wide = !wide_own_.empty();
  start_settling(metric, side(panel, panel), stream_.get());
  if (any_wide)
    start_settling(metric, wide_side(panel, panel), stream_.get());
  const bool go_on = for_panels(
      from_, panels_, stream_,
      [&](const Panel& other) {
        start_settling(metric, side(other, panel), side(panel, other),
                       stream_.get());
        if (any_wide)
          start_settling(metric, wide_side(other, panel),
                         wide_side(panel, other), stream_.get());
        return workers_.go_on();
      },
      panel.first + panel.count);
  if (go_on) write_out(panel, buffer);
  return go_on;
}

/// The neighbours of the panel's points, all of whose pairs are settled.
void GraphByFilterPanels::write_out(const Panel& panel, PanelBuffer& buffer) {
  const std::int64_t k = search_.plan.k;
  double* const distances =
      lists_.size() > 0 ? lists_.data() : buffer.memory();
  double* const correlations = distances + write_rows_ * k;
  std::int32_t* const indices =
      reinterpret_cast<std::int32_t*>(correlations + write_rows_ * k);
  const std::int64_t end = owned_before(panel.first + panel.count);
  const bool correlated = search_.out.correlation != nullptr;
  for (std::int64_t own = owned_before(panel.first); own < end;
       own += write_rows_) {
    Ranking ranking;
    ranking.pairs = pairs_;
    ranking.first_owned = own;
    ranking.end_owned = std::min(own + write_rows_, end);
    ranking.ids = rank_ids_.data();
    ranking.most_pairs = most_pairs_;
    ranking.nearest.distance = distances;
    ranking.nearest.index = indices;
    ranking.nearest.k = k;
    ranking.correlation = correlated ? correlations : nullptr;
    start_ranking(*search_.request.metric, ranking, stream_.get());
    // Over the empty lists of those that were filtered again.
    Ranking again = ranking;
    again.pairs = wide_pairs_;
    again.first_owned = before(wide_own_, ranking.first_owned);
    again.end_owned = before(wide_own_, ranking.end_owned);
    again.most_pairs = most_wide_pairs_;
    again.rows = d_wide_own_.data();
    again.first_row = ranking.first_owned;
    start_ranking(*search_.request.metric, again, stream_.get());
    const auto copy = [&](auto* to, std::int64_t row, const auto& from,
                          std::size_t which) {
      CUDA_CHECK(cudaMemcpyAsync(
          to + row * k, from.data() + which * static_cast<std::size_t>(k),
          static_cast<std::size_t>(k) * sizeof(*to),
          cudaMemcpyHostToDevice, stream_.get()));
    };
    const auto first = std::lower_bound(redone_.begin(), redone_.end(), own);
    for (auto it = first; it != redone_.end() && *it < ranking.end_owned;
         ++it) {
      const std::size_t which = static_cast<std::size_t>(it - redone_.begin());
      copy(distances, *it - own, redone_distance_, which);
      copy(indices, *it - own, redone_index_, which);
      if (correlated)
        copy(correlations, *it - own, redone_correlation_, which);
    }
    CorrelationOf given;
    given.given = correlations;
    answer_->write(ranking.nearest, ranking.end_owned - own,
                   layout_.row_ids.data() + own, given, stream_);
  }
  stats_.seconds_emit = answer_->seconds();
}

}  // namespace cuda
}  // namespace fsknn
