#include "cuda/search/queries_by_filter.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/base/pieces.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/plan/plan.hpp"

namespace fsknn {
namespace cuda {
namespace {

std::vector<std::int32_t> counting(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(first));
  return numbers;
}

}  // namespace

QueriesByFilter::QueriesByFilter(const Search& search, Workers& workers)
    : ListsByFilter(search, workers,
                    {{query_slots(most_rows(search)),
                      candidates_for(search.plan.k), most_rows(search)},
                     most_rows(search),
                     most_rows(search)}),
      blocks_(search.columns.size()),
      own_rows_(search.rows, search.prepare, threads_of(search),
                search.plan.padded_queries, stream_),
      column_places_(blocks_.num_slots()),
      row_slots_(most_rows(search)),
      list_rows_(search.rows.size()) {
  hold_form();
  row_form_ = std::make_unique<FilterForm>(stored_.filter(),
                                           query_slots(row_slots_.size()));
  const std::vector<std::int32_t> places = blocks_.places();
  upload(column_places_, places.data(), column_places_.size(), stream_);
  const std::vector<std::int32_t> row_slots = counting(0, row_slots_.size());
  upload(row_slots_, row_slots.data(), row_slots_.size(), stream_);
  candidates_.hold_entries();
  candidates_.meet(column_places_.data(), columns_.ids.data(),
                   search.rows.self.empty() ? nullptr : own_rows_.ids.data());
  exact_.list_rows = list_rows_.data();
  stream_.wait();
}

std::int64_t QueriesByFilter::num_launches(const Search& search,
                                           std::int64_t num_rows) {
  const std::int64_t most = most_rows(search);
  const std::int64_t launches =
      cuda::num_launches(rounds_of_queries(search, std::min(num_rows, most)));
  return launches * ((num_rows + most - 1) / most);
}

void QueriesByFilter::run(std::int64_t first_row, std::int64_t end_row) {
  workers_.tell_chosen(stored_.filter().numbers());
  const std::int64_t most = row_slots_.size();
  for (std::int64_t row0 = first_row; row0 < end_row; row0 += most) {
    const std::int64_t num_rows = std::min(most, end_row - row0);
    const Clock::time_point start = Clock::now();
    // Queries that were done again may have left another.
    if (!stored_.holds_form()) hold_form();
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
  row_form_->clear(stream_);
  candidates_.clear_redo(stream_);
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
