#include "cuda/search/graph_by_filter_panels.hpp"

#include <algorithm>
#include <utility>

#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"

namespace fsknn {
namespace cuda {

GraphByFilterPanels::GraphByFilterPanels(const Search& search, FilterTeam& team,
                                         int own)
    : layout_(layout_of(search, team, own)),
      exchange_(team, own),
      from_(*search.in_panels, search.prepare, threads_of(search),
            search.plan.streaming.prepare_rows),
      panels_{{search.plan.streaming.stream_rows, search.columns.padded},
              {search.plan.streaming.stream_rows, search.columns.padded}},
      part_{search, *team.workers, layout_, stream_, {from_, panels_}},
      team_(team),
      own_(own) {}

std::int64_t GraphByFilterPanels::num_launches(const FilterTeam& team,
                                               const Search& search) {
  if (search.plan.streaming.by_row_ranges())
    return RowRangePhase::num_launches(search) * 2;
  std::int64_t launches = 0;
  for (int w = 0; w < team.size(); ++w) {
    FilterRounds rounds = rounds_of_graph(search, team, w);
    rounds.risk = 0.0;
    launches += cuda::num_launches(rounds);
  }
  return launches * 2;
}

void GraphByFilterPanels::run() {
  FilteredGraph found;
  Unranked unranked;
  const WaitAtEnd wait(stream_);
  if (!filter(found)) return;
  // Only the filter needed it, and no device reads its lists any more.
  filter_phase_.reset();
  row_range_phase_.reset();
  unranked.pairs = std::move(found.pairs);
  unranked.pairs.hold_values();
  keep_wide(found, unranked);
  if (!redo(unranked)) return;
  RerankPhase reranking(part_, unranked);
  if (!reranking.run()) return;
  from_.check();
  stats_.seconds_emit = reranking.seconds_emit();
  stats_.seconds_device = seconds_since(start_) - stats_.seconds_emit;
  stats_.streamed = true;
}

/// Starts the phase with the points in the first form that suits them, and
/// reports that form. Returns whether to continue.
template <class Phase, class... More>
bool GraphByFilterPanels::begin(std::unique_ptr<Phase>& phase, More&... more) {
  for (RowsInForm rows = part_.search.plan.shape.rows;;) {
    phase = std::make_unique<Phase>(part_, rows, team_, own_, more...);
    if (!phase->make_rows()) return false;
    rows = phase->rows();
    if (phase->suits()) {
      team_.workers->tell_chosen(rows.numbers());
      return true;
    }
    rows = rows.otherwise();
    phase.reset();
  }
}

/// Returns whether to go on.
bool GraphByFilterPanels::filter(FilteredGraph& found) {
  if (part_.shape().by_row_ranges()) {
    if (!begin(row_range_phase_)) return false;
    start_ = Clock::now();
    return row_range_phase_->run(found, stats_);
  }
  if (!begin(filter_phase_, exchange_)) return false;
  FilterPhase& phase = *filter_phase_;
  if (!exchange_.begin(phase.lists())) return false;
  start_ = Clock::now();
  return phase.fill() && phase.run(stats_) && phase.collect(found, stats_);
}

/// Lets the candidates of longer lists wait with the others, as far as memory
/// allows. Rows to compute in doubles remain in `unranked.redone`.
void GraphByFilterPanels::keep_wide(FilteredGraph& found, Unranked& unranked) {
  if (found.wide.counts.empty()) {
    unranked.redone = std::move(found.redone);
    return;
  }
  const bool on_host = part_.shape().by_row_ranges();
  // The host holds no more than all lists of the filter would have held.
  const std::int64_t room =
      (on_host ? layout_.num_owned() * part_.shape().capacity
               : part_.room_for_pairs(
                     static_cast<std::int64_t>(found.redone.size()))) -
      unranked.pairs.num_pairs();
  const std::vector<std::int32_t>& places = unranked.pairs.places();
  std::vector<std::int32_t> wide_places, columns;
  std::vector<std::int64_t> first(1, 0);
  auto next = found.wide.columns.begin();
  for (std::size_t at = 0; at < found.redone.size(); ++at) {
    const std::int64_t own = found.redone[at];
    const auto from = next;
    next += found.wide.counts[at];
    if (from == next || first.back() + found.wide.counts[at] > room) {
      unranked.redone.push_back(own);
      continue;
    }
    columns.insert(columns.end(), from, next);
    unranked.wide_own.push_back(static_cast<std::int32_t>(own));
    wide_places.push_back(places[static_cast<std::size_t>(own)]);
    first.push_back(static_cast<std::int64_t>(columns.size()));
  }
  if (unranked.wide_own.empty()) return;
  stats_.rows_widened = static_cast<double>(unranked.wide_own.size());
  stats_.pairs_exact += static_cast<double>(columns.size());
  unranked.wide_pairs = WaitingList(
      std::move(wide_places), std::move(first),
      on_host ? WaitingList::Where::host : WaitingList::Where::device, stream_);
  unranked.wide_pairs.hold_values();
  CUDA_CHECK(cudaMemcpyAsync(unranked.wide_pairs.columns(), columns.data(),
                             columns.size() * sizeof(std::int32_t),
                             cudaMemcpyDefault, stream_.get()));
  stream_.wait();  // `columns` is freed
}

/// Recomputes rows that overflowed longer lists too. Returns whether to
/// continue.
bool GraphByFilterPanels::redo(Unranked& unranked) {
  if (unranked.redone.empty()) return true;
  std::vector<std::int32_t> ids;
  for (const std::int64_t own : unranked.redone)
    ids.push_back(layout_.row_ids[static_cast<std::size_t>(own)]);
  return redo_in_doubles(part_.search, ids, part_.shape().redo_rows,
                         part_.panels, part_.workers, stream_,
                         unranked.redone_lists, stats_);
}

}  // namespace cuda
}  // namespace fsknn
