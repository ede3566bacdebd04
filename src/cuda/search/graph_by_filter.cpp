#include "cuda/search/graph_by_filter.hpp"

#include "core/base/pieces.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/search/redo_held.hpp"

namespace fsknn {
namespace cuda {

GraphByFilter::GraphByFilter(const Search& search, FilterTeam& team, int own)
    : search_(search),
      team_(team),
      workers_(*team.workers),
      layout_(layout_of(search, team, own)),
      exchange_(team, own),
      stored_(search.store->get(columns_of(search), stream_)),
      points_(stored_.points()),
      d_list_rows_(search.columns.size()),
      d_row_places_(layout_.num_owned()),
      candidates_({layout_.num_slots, candidates_for(search.plan.k),
                   layout_.num_owned()},
                  stream_),
      nearest_(layout_.num_owned(), search.plan.k),
      answer_(search.out, layout_.num_owned(), search.plan.k,
              threads_of(search)) {
  upload(d_list_rows_, layout_.list_rows.data(), d_list_rows_.size(), stream_);
  upload(d_row_places_, layout_.row_places.data(), d_row_places_.size(),
         stream_);
  candidates_.hold_entries();
  candidates_.place(layout_.places.data(), layout_.num_slots, stream_);
  candidates_.meet_own(points_.ids.data());
  stored_.hold_form(search.plan.shape.rows, search.undo, sought(search),
                    stream_);

  pass_.filter = &stored_.filter();
  pass_.slot_bytes = search.plan.shape.rows.slot_bytes();
  pass_.rounds = rounds_of_graph(search, team, own);
  pass_.exchange = &exchange_;
  pass_.workers = &workers_;
  pass_.work.rows = pass_.work.columns = stored_.form().rows();
  pass_.work.lists = pass_.cut.lists = candidates_.lists();
  pass_.cut.redo = candidates_.redo();
  pass_.cut.k = static_cast<std::int32_t>(search.plan.k);
  pass_.cut.first_slot = layout_.first_slot;
  pass_.cut.end_slot = layout_.end_slot;
  exchange_.own_slots(layout_.first_slot, layout_.end_slot);
}

std::int64_t GraphByFilter::num_launches(const FilterTeam& team,
                                         const Search& search) {
  std::int64_t launches = 0;
  for (int w = 0; w < team.size(); ++w)
    launches += cuda::num_launches(rounds_of_graph(search, team, w));
  return launches;
}

void GraphByFilter::run() {
  workers_.tell_chosen(pass_.filter->numbers());
  begin_lists();
  if (!exchange_.begin(candidates_.lists())) return;
  const Clock::time_point start = Clock::now();
  if (!run_rounds(pass_, stream_)) return;
  const double n = static_cast<double>(search_.columns.size());
  stats_.pairs_filtered = n * (n - 1) / 2 / team_.size();
  stats_.filter = pass_.filter->numbers();
  finish();
  if (!redo() || !workers_.meet()) return;
  stats_.seconds_device = seconds_since(start);
  write_out();
  stats_.seconds_emit = answer_.seconds();
}

/// What the filter's form errs by, and empty lists.
void GraphByFilter::begin_lists() {
  pass_.filter->set_errors(pass_.cut, pass_.work.rows, pass_.work.columns,
                           stream_);
  start_candidates(candidates_.lists(), stream_.get());
  begin_exact();
  stream_.wait();
}

/// What rounds and the exact step after them settle.
void GraphByFilter::begin_exact() {
  exact_.lists = candidates_.lists();
  exact_.redo = candidates_.redo();
  exact_.first_slot = layout_.first_slot;
  exact_.end_slot = layout_.end_slot;
  exact_.rows = exact_.columns = points_.rows.data();
  exact_.row_sums = exact_.column_sums = points_.sums.data();
  exact_.list_rows = d_list_rows_.data();
  exact_.padded = points_.padded;
  exact_.undo = search_.undo;
  exact_.sums_told = pass_.filter->tells_sums();
  exact_.nearest = nearest_.lists();
  exact_.counts = counter_.data();
  counter_.clear(stream_);
  begin_settling(search_, pass_, exact_, layout_.num_owned(), stream_);
}

/// The nearest of the candidates of each owned slot.
void GraphByFilter::finish() {
  run_exact(*search_.request.metric, exact_, stream_);
  stats_.pairs_exact += counter_.total(stream_);
}

/// Rows whose candidates overflowed. Returns whether to go on.
bool GraphByFilter::redo() {
  RedoneRows rows;
  rows.places = candidates_.to_redo(stream_);
  for (const std::int32_t place : rows.places)
    rows.slots.push_back(layout_.slots[static_cast<std::size_t>(place)]);
  return redo_held({search_,
                    pass_,
                    exact_,
                    candidates_.all_lists(),
                    points_,
                    points_,
                    {},
                    &stored_},
                   rows, stream_, stats_);
}

void GraphByFilter::write_out() {
  CorrelationOf from;
  from.rows = points_.rows.data();
  from.row_sums = from.column_sums = points_.sums.data();
  from.row_places = d_row_places_.data();
  from.columns = points_.rows.data();
  from.places = points_.places.data();
  from.padded = points_.padded;
  answer_.write(nearest_.lists(), layout_.num_owned(), layout_.row_ids.data(),
                from, stream_);
}

}  // namespace cuda
}  // namespace fsknn
