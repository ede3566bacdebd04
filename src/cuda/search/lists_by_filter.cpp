#include "cuda/search/lists_by_filter.hpp"

#include <algorithm>
#include <utility>

#include "core/base/pieces.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/tree_schedule.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// The blocks of a device's parts, and the end.
std::vector<std::int64_t> first_blocks(const Search& search,
                                       const FilterTeam& team, int own) {
  const FilterBlocks blocks(search.columns.size());
  const int parts = static_cast<int>(search.plan.shape.parts);
  std::vector<std::int64_t> first;
  for (int part = own * parts; part <= (own + 1) * parts; ++part)
    first.push_back(first_block_of(blocks, part, team.size() * parts));
  return first;
}

}  // namespace

ListsByFilter::ListsByFilter(const Search& search, Workers& workers,
                             const Room& room)
    : search_(search),
      workers_(workers),
      stored_(search.store->get(columns_of(search), stream_)),
      columns_(stored_.points()),
      candidates_(room.candidates, stream_),
      nearest_(room.lists, search.plan.k),
      answer_(search.out, room.written, search.plan.k * room.lists_a_row,
              threads_of(search)) {
  pass_.slot_bytes = search.plan.shape.rows.slot_bytes();
  pass_.workers = &workers;
  pass_.cut.redo = exact_.redo = candidates_.redo();
  pass_.cut.k = static_cast<std::int32_t>(search.plan.k);
  exact_.undo = search.undo;
  exact_.nearest = nearest_.lists();
  exact_.counts = counter_.data();
}

void ListsByFilter::hold_form() {
  stored_.hold_form(search_.plan.shape.rows, search_.undo.scale,
                    sought(search_), stream_);
}

void ListsByFilter::set_points(PairFilter& filter, const FilterRows& columns,
                               const DevicePoints& rows) {
  pass_.filter = &filter;
  pass_.work.columns = columns;
  exact_.rows = rows.rows.data();
  exact_.row_sums = rows.sums.data();
  exact_.columns = columns_.rows.data();
  exact_.column_sums = columns_.sums.data();
  exact_.padded = columns_.padded;
}

void ListsByFilter::set_slots(Slot first, Slot end) {
  pass_.work.lists = pass_.cut.lists = exact_.lists = candidates_.lists();
  pass_.cut.first_slot = exact_.first_slot = first;
  pass_.cut.end_slot = exact_.end_slot = end;
}

void ListsByFilter::begin_rounds(std::int64_t num_lists, Slot first, Slot end) {
  pass_.filter->set_errors(pass_.cut, pass_.work.rows, pass_.work.columns,
                           stream_);
  exact_.sums_given = pass_.filter->tells_sums();
  start_candidates(candidates_.lists(), stream_.get(), first, end);
  counter_.clear(stream_);
  begin_reranking(search_, pass_, exact_, num_lists, stream_);
}

void ListsByFilter::rank() {
  run_exact(*search_.request.metric, exact_, stream_);
  stats_.pairs_exact += counter_.total(stream_);
}

ListsByFilter::Room GraphByFilter::room_of(const Search& search,
                                           const FilterTeam& team, int own) {
  const FilterBlocks blocks(search.columns.size());
  const std::vector<std::int64_t> first = first_blocks(search, team, own);
  std::int64_t most = 0;
  for (std::size_t part = 0; part + 1 < first.size(); ++part)
    most = std::max(most, blocks.first_place(first[part + 1]).value -
                              blocks.first_place(first[part]).value);
  return {
      {blocks.num_slots(), candidates_for(search.plan.k), most}, most, most};
}

GraphByFilter::GraphByFilter(const Search& search, FilterTeam& team, int own)
    : ListsByFilter(search, *team.workers, room_of(search, team, own)),
      team_(team),
      exchange_(team, own),
      list_rows_(search.columns.size()),
      row_places_(room_of(search, team, own).lists) {
  hold_columns();
  const FilterBlocks blocks(search.columns.size());
  const std::vector<std::int64_t> first = first_blocks(search, team, own);
  layout_ = FilterLayout(blocks, first, search.columns.order, stored_.places(),
                         threads_of(search));
  for (std::size_t part = 0; part + 1 < first.size(); ++part)
    parts_.push_back({first[part], first[part + 1], layout_.part_rows[part],
                      layout_.part_rows[part + 1]});
  upload(list_rows_, layout_.list_rows.data(), list_rows_.size(), stream_);
  std::int64_t most = 0;
  for (const Part& part : parts_)
    most = std::max(most, part.end_block - part.first_block);
  if (stored_.tree() == nullptr)
    candidates_.hold_entries(candidates_for(search.plan.k), layout_.num_slots);
  else
    candidates_.hold_entries(candidates_in_tree(search.plan.k),
                             most * kFilterBlock);
  candidates_.place(layout_.places.data(), layout_.num_slots, stream_);
  candidates_.meet_own(columns_.ids.data());
  pass_.rounds = rounds_of_graph(search, team, own);
  exact_.list_rows = list_rows_.data();
  if (stored_.tree() != nullptr) {
    // Estimates need points in random order.
    pass_.rounds.risk = 0.0;
    return;
  }
  pass_.exchange = &exchange_;
  exchange_.own_slots(layout_.first_slot, layout_.end_slot);
}

/// Also after recomputed rows have left another form.
void GraphByFilter::hold_columns() {
  hold_form();
  if (stored_.tree() == nullptr && search_.plan.shape.needs_tree)
    throw NoTree();
  set_points(stored_.filter(), stored_.form().rows(), columns_);
  pass_.work.rows = pass_.work.columns;
}

std::int64_t GraphByFilter::num_launches(const FilterTeam& team,
                                         const Search& search) {
  std::int64_t launches = 0;
  for (int w = 0; w < team.size(); ++w)
    launches += cuda::num_launches(rounds_of_graph(search, team, w));
  return launches;
}

void GraphByFilter::run() {
  workers_.tell_chosen(pass_.filter->numbers(), stored_.tree() != nullptr);
  for (const Part& part : parts_)
    if (!run_part(part)) return;
  stats_.seconds_emit = answer_.seconds();
}

/// Finds and writes the neighbours of a part's points. Returns whether to
/// continue.
bool GraphByFilter::run_part(const Part& part) {
  if (!stored_.holds_form()) hold_columns();
  if (&part == &parts_.front())
    stats_.seconds_device = stored_.seconds_tree();
  else
    candidates_.clear_redo(stream_);
  upload(row_places_, layout_.row_places.data() + part.first_row, part.size(),
         stream_);
  const FilterBlocks blocks(search_.columns.size());
  const Slot first = blocks.first_slot(part.first_block);
  const Slot end = blocks.first_slot(part.end_block);
  if (stored_.tree() != nullptr) {
    candidates_.use_entries(first);
    set_slots(first, end);
    begin_rounds(part.size(), first, end);
  } else {
    set_slots(first, end);
    begin_rounds(part.size());
  }
  stream_.wait();
  if (pass_.exchange != nullptr && !exchange_.begin(candidates_.lists()))
    return false;
  const Clock::time_point start = Clock::now();
  if (!compare(part)) return false;
  stats_.filter = pass_.filter->numbers();
  rank();
  const auto slot_of = [&](std::int32_t place) {
    return layout_.slots[static_cast<std::size_t>(place)];
  };
  if (!redo(columns_, slot_of)) return false;
  if (pass_.exchange != nullptr && !workers_.meet()) return false;
  stats_.seconds_device += seconds_since(start);
  answer_.write(nearest_.lists(), part.size(),
                layout_.row_ids.data() + part.first_row,
                correlated(columns_, 0, row_places_.data()), stream_);
  return true;
}

/// Compares all pairs of a part's points that cannot be pruned. Returns whether
/// to continue.
bool GraphByFilter::compare(const Part& part) {
  const double n = static_cast<double>(search_.columns.size());
  if (stored_.tree() == nullptr) {
    stats_.pairs_filtered = n * (n - 1) / 2 / team_.size();
    return run_rounds(pass_, stream_);
  }
  const double size = static_cast<double>(part.size());
  const double pairs = size * (size - 1) / 2 + size * (n - size);
  pass_.rounds.first_slab = part.first_block * kSlabsABlock;
  pass_.rounds.num_slabs = (part.end_block - part.first_block) * kSlabsABlock;
  const TreeRows rows = {
      columns_.prepared(), candidates_.lists().places,
      ReachRule::of(columns_.padded, search_.undo.scale, exact_.limits.scale)};
  const std::int64_t shares =
      team_.size() * static_cast<std::int64_t>(parts_.size());
  const std::int64_t pieces =
      std::max<std::int64_t>(1, num_launches(team_, search_) / shares);
  TreeSchedule schedule(*stored_.tree(), rows, pass_, part.first_block,
                        part.end_block, pieces, stream_);
  AroundLaunch around;
  around.after = [&](std::size_t) { return schedule.take_pieces(); };
  if (!run_schedule(pass_, schedule, around, stream_) ||
      !workers_.go_on(schedule.take_pieces()))
    return false;
  const double met = schedule.pairs();
  stats_.pairs_filtered += met;
  stats_.pairs_pruned += pairs - met;
  return true;
}

QueriesByFilter::QueriesByFilter(const Search& search, Workers& workers)
    : ListsByFilter(search, workers,
                    {{query_slots(most_rows(search)),
                      candidates_for_queries(search.plan.k, search.rows.size()),
                      most_rows(search)},
                     most_rows(search),
                     most_rows(search)}),
      blocks_(search.columns.size()),
      own_rows_(search.rows, search.prepare, threads_of(search),
                search.plan.padded_queries, stream_),
      row_slots_(most_rows(search)) {
  hold_form();
  row_form_ = std::make_unique<FilterForm>(stored_.filter(),
                                           query_slots(row_slots_.size()));
  const std::vector<std::int32_t> row_slots = counting(0, row_slots_.size());
  upload(row_slots_, row_slots.data(), row_slots_.size(), stream_);
  candidates_.hold_entries();
  meet_columns();
  stream_.wait();
}

std::int64_t QueriesByFilter::num_launches(const Search& search,
                                           std::int64_t num_rows) {
  const std::int64_t most = most_rows(search);
  const std::int64_t launches =
      cuda::num_launches(rounds_of_queries(search, std::min(num_rows, most)));
  return launches * ((num_rows + most - 1) / most);
}

/// Uses the slots of the form that is held.
void QueriesByFilter::meet_columns() {
  candidates_.meet(stored_.slot_places(), columns_.ids.data(),
                   search_.rows.self.empty() ? nullptr : own_rows_.ids.data());
}

void QueriesByFilter::run(std::int64_t first_row, std::int64_t end_row) {
  workers_.tell_chosen(stored_.filter().numbers());
  const std::int64_t most = row_slots_.size();
  for (std::int64_t row0 = first_row; row0 < end_row; row0 += most) {
    const std::int64_t num_rows = std::min(most, end_row - row0);
    const Clock::time_point start = Clock::now();
    // Recomputed queries may have left another form.
    if (!stored_.holds_form()) {
      hold_form();
      meet_columns();
    }
    if (row0 > first_row) candidates_.clear_redo(stream_);
    const auto slot_of = [&](std::int32_t place) {
      return place - static_cast<std::int32_t>(row0);
    };
    if (!batch(row0, num_rows) || !redo(own_rows_, slot_of)) return;
    stats_.seconds_device += seconds_since(start);
    answer_.write(nearest_.lists(), num_rows,
                  search_.rows.order.id.data() + row0,
                  correlated(own_rows_, row0, nullptr), stream_);
  }
  stats_.seconds_emit = answer_.seconds();
}

/// Finds a batch's candidates, and the nearest of them. Returns whether to
/// continue.
bool QueriesByFilter::batch(std::int64_t row0, std::int64_t num_rows) {
  const std::int64_t num_slots = query_slots(num_rows);
  std::vector<std::int32_t> places = counting(row0, num_rows);
  places.resize(static_cast<std::size_t>(num_slots), -1);
  candidates_.place(places.data(), num_slots, stream_);
  // By place: query row0 + r is in slot r, and its list is row r.
  exact_.list_rows = row_slots_.data() - row0;
  row_form_->clear(stream_);
  set_points(stored_.filter(), stored_.form().rows(), own_rows_);
  set_slots({0}, {num_slots});
  pass_.work.rows = row_form_->first(num_slots);
  pass_.filter->start_rows({own_rows_.rows.data() + row0 * own_rows_.padded,
                            own_rows_.sums.data() + row0, own_rows_.padded},
                           num_rows, row_slots_.data(), pass_.work.rows,
                           stream_.get());
  pass_.rounds = rounds_of_queries(search_, num_rows);
  begin_rounds(num_rows);

  if (!run_rounds(pass_, stream_)) return false;
  stats_.filter = pass_.filter->numbers();
  stats_.pairs_filtered +=
      static_cast<double>(num_rows) * static_cast<double>(blocks_.num_points);
  rank();
  return true;
}

}  // namespace cuda
}  // namespace fsknn
