#include "cuda/search/graph_by_filter.hpp"

#include <utility>

#include "core/base/pieces.hpp"
#include "cuda/device/transfer.hpp"

namespace fsknn {
namespace cuda {

GraphByFilter::GraphByFilter(const Search& search, FilterTeam& team, int own)
    : GraphByFilter(search, team, own, layout_of(search, team, own)) {}

GraphByFilter::GraphByFilter(const Search& search, FilterTeam& team, int own,
                             FilterLayout layout)
    : ListsByFilter(search, *team.workers,
                    {{layout.num_slots, candidates_for(search.plan.k),
                      layout.num_owned()},
                     layout.num_owned(),
                     layout.num_owned()}),
      team_(team),
      layout_(std::move(layout)),
      exchange_(team, own),
      list_rows_(search.columns.size()),
      row_places_(layout_.num_owned()) {
  upload(list_rows_, layout_.list_rows.data(), list_rows_.size(), stream_);
  upload(row_places_, layout_.row_places.data(), row_places_.size(), stream_);
  candidates_.hold_entries();
  candidates_.place(layout_.places.data(), layout_.num_slots, stream_);
  candidates_.meet_own(columns_.ids.data());
  hold_form();
  set_points(stored_.filter(), stored_.form().rows(), columns_);
  set_slots(layout_.first_slot, layout_.end_slot);
  pass_.work.rows = pass_.work.columns;
  pass_.rounds = rounds_of_graph(search, team, own);
  pass_.exchange = &exchange_;
  exact_.list_rows = list_rows_.data();
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
  begin_rounds(layout_.num_owned());
  stream_.wait();
  if (!exchange_.begin(candidates_.lists())) return;
  const Clock::time_point start = Clock::now();
  if (!run_rounds(pass_, stream_)) return;
  const double n = static_cast<double>(search_.columns.size());
  stats_.pairs_filtered = n * (n - 1) / 2 / team_.size();
  stats_.filter = pass_.filter->numbers();
  rank();
  const auto slot_of = [&](std::int32_t place) {
    return layout_.slots[static_cast<std::size_t>(place)];
  };
  if (!redo(columns_, slot_of) || !workers_.meet()) return;
  stats_.seconds_device = seconds_since(start);
  answer_.write(nearest_.lists(), layout_.num_owned(), layout_.row_ids.data(),
                correlated(columns_, 0, row_places_.data()), stream_);
  stats_.seconds_emit = answer_.seconds();
}

}  // namespace cuda
}  // namespace fsknn
