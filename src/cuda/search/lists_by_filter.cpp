#include "cuda/search/lists_by_filter.hpp"

namespace fsknn {
namespace cuda {

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
  stored_.hold_form(search_.plan.shape.rows, search_.undo, sought(search_),
                    stream_);
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

void ListsByFilter::begin_rounds(std::int64_t num_lists) {
  pass_.filter->set_errors(pass_.cut, pass_.work.rows, pass_.work.columns,
                           stream_);
  exact_.sums_told = pass_.filter->tells_sums();
  start_candidates(candidates_.lists(), stream_.get());
  counter_.clear(stream_);
  begin_settling(search_, pass_, exact_, num_lists, stream_);
}

void ListsByFilter::rank() {
  run_exact(*search_.request.metric, exact_, stream_);
  stats_.pairs_exact += counter_.total(stream_);
}

CorrelationOf ListsByFilter::correlated(const DevicePoints& rows,
                                        std::int64_t first_row,
                                        const std::int32_t* row_places) const {
  CorrelationOf from;
  from.rows = rows.rows.data() + first_row * rows.padded;
  from.row_sums = rows.sums.data() + first_row;
  from.row_places = row_places;
  from.columns = columns_.rows.data();
  from.column_sums = columns_.sums.data();
  from.places = columns_.places.data();
  from.padded = columns_.padded;
  return from;
}

}  // namespace cuda
}  // namespace fsknn
