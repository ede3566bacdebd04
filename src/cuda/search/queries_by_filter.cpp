#include "cuda/search/queries_by_filter.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/pieces.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/redo_held.hpp"

namespace fsknn {
namespace cuda {
namespace {

std::vector<std::int32_t> counting(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(first));
  return numbers;
}

/// The points, in the filter's form too.
StoredPoints& formed(const Search& search, StoredPoints& stored,
                     const Stream& stream) {
  stored.hold_form(search.plan.shape.rows, search.undo, sought(search), stream);
  return stored;
}

}  // namespace

QueriesByFilter::QueriesByFilter(const Search& search, Workers& workers)
    : search_(search),
      blocks_(search.columns.size()),
      most_rows_(queries_at_a_time(search.rows.size(), search.plan.k)),
      stored_(formed(search, search.store->get(columns_of(search), stream_),
                     stream_)),
      columns_(stored_.points()),
      own_rows_(search.rows, search.prepare, threads_of(search),
                search.plan.padded_queries, stream_),
      column_places_(blocks_.num_slots()),
      row_slots_(most_rows_),
      list_rows_(search.rows.size()),
      row_form_(stored_.filter(), query_slots(most_rows_)),
      candidates_(
          {query_slots(most_rows_), candidates_for(search.plan.k), most_rows_},
          stream_),
      nearest_(most_rows_, search.plan.k),
      answer_(search.out, most_rows_, search.plan.k, threads_of(search)) {
  const std::vector<std::int32_t> places = blocks_.places();
  upload(column_places_, places.data(), column_places_.size(), stream_);
  const std::vector<std::int32_t> row_slots = counting(0, most_rows_);
  upload(row_slots_, row_slots.data(), most_rows_, stream_);
  candidates_.hold_entries();
  candidates_.meet(column_places_.data(), columns_.ids.data(),
                   search.rows.self.empty() ? nullptr : own_rows_.ids.data());
  hold_form();
  pass_.slot_bytes = search.plan.shape.rows.slot_bytes();
  pass_.workers = &workers;
  pass_.cut.redo = candidates_.redo();
  pass_.cut.k = static_cast<std::int32_t>(search.plan.k);
  stream_.wait();
}

std::int64_t QueriesByFilter::num_launches(const Search& search,
                                           std::int64_t num_rows) {
  const std::int64_t most =
      queries_at_a_time(search.rows.size(), search.plan.k);
  const std::int64_t launches =
      cuda::num_launches(rounds_of_queries(search, std::min(num_rows, most)));
  return launches * ((num_rows + most - 1) / most);
}

void QueriesByFilter::run(std::int64_t first_row, std::int64_t end_row) {
  pass_.workers->tell_chosen(pass_.filter->numbers());
  for (std::int64_t row0 = first_row; row0 < end_row; row0 += most_rows_) {
    const std::int64_t num_rows = std::min(most_rows_, end_row - row0);
    const Clock::time_point start = Clock::now();
    // Queries that were done again may have left another.
    if (!stored_.holds_form()) hold_form();
    if (!batch(row0, num_rows) || !redo(row0)) return;
    stats_.seconds_device += seconds_since(start);
    CorrelationOf from;
    from.rows = own_rows_.rows.data() + row0 * own_rows_.padded;
    from.row_sums = own_rows_.sums.data() + row0;
    from.columns = columns_.rows.data();
    from.column_sums = columns_.sums.data();
    from.places = columns_.places.data();
    from.padded = columns_.padded;
    answer_.write(nearest_.lists(), num_rows,
                  search_.rows.order.id.data() + row0, from, stream_);
  }
  stats_.seconds_emit = answer_.seconds();
}

void QueriesByFilter::hold_form() {
  formed(search_, stored_, stream_);
  pass_.filter = &stored_.filter();
  pass_.work.columns = stored_.form().rows();
}

/// A batch's candidates, and the nearest of them. Returns whether to go on.
bool QueriesByFilter::batch(std::int64_t row0, std::int64_t num_rows) {
  const std::int64_t num_slots = query_slots(num_rows);
  std::vector<std::int32_t> places = counting(row0, num_rows);
  places.resize(static_cast<std::size_t>(num_slots), -1);
  candidates_.place(places.data(), num_slots, stream_);
  const std::vector<std::int32_t> list_rows = counting(0, num_rows);
  CUDA_CHECK(cudaMemcpyAsync(list_rows_.data() + row0, list_rows.data(),
                             list_rows.size() * sizeof(std::int32_t),
                             cudaMemcpyHostToDevice, stream_.get()));
  row_form_.clear(stream_);
  candidates_.clear_redo(stream_);
  start_candidates(candidates_.lists(), stream_.get());
  pass_.work.rows = row_form_.first(num_slots);
  stored_.filter().start_rows({own_rows_.rows.data() + row0 * own_rows_.padded,
                               own_rows_.sums.data() + row0, own_rows_.padded},
                              num_rows, row_slots_.data(), pass_.work.rows,
                              stream_.get());
  pass_.work.lists = pass_.cut.lists = candidates_.lists();
  pass_.cut.end_slot = {num_slots};
  stored_.filter().set_errors(pass_.cut, pass_.work.rows, pass_.work.columns,
                              stream_);
  pass_.rounds = rounds_of_queries(search_, num_rows);
  exact_.lists = candidates_.lists();
  exact_.redo = candidates_.redo();
  exact_.end_slot = {num_slots};
  exact_.rows = own_rows_.rows.data();
  exact_.row_sums = own_rows_.sums.data();
  exact_.columns = columns_.rows.data();
  exact_.column_sums = columns_.sums.data();
  exact_.list_rows = list_rows_.data();
  exact_.padded = columns_.padded;
  exact_.undo = search_.undo;
  exact_.sums_told = pass_.filter->tells_sums();
  exact_.nearest = nearest_.lists();
  exact_.counts = counter_.data();
  counter_.clear(stream_);
  begin_settling(search_, pass_, exact_, num_rows, stream_);

  if (!run_rounds(pass_, stream_)) return false;
  stats_.filter = pass_.filter->numbers();
  stats_.pairs_filtered +=
      static_cast<double>(num_rows) * static_cast<double>(blocks_.num_points);
  run_exact(*search_.request.metric, exact_, stream_);
  stats_.pairs_exact += counter_.total(stream_);
  return true;
}

/// Queries whose candidates overflowed. Returns whether to go on.
bool QueriesByFilter::redo(std::int64_t row0) {
  RedoneRows rows;
  rows.places = candidates_.to_redo(stream_);
  for (const std::int32_t place : rows.places)
    rows.slots.push_back(place - static_cast<std::int32_t>(row0));
  return redo_held({search_,
                    pass_,
                    exact_,
                    candidates_.all_lists(),
                    own_rows_,
                    columns_,
                    {},
                    &stored_},
                   rows, stream_, stats_);
}

}  // namespace cuda
}  // namespace fsknn
