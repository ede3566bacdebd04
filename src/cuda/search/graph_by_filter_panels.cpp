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
  if (search.plan.streaming.by_stretches())
    return StretchPhase::num_launches(search) * 2;
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
  Unsettled unsettled;
  const WaitAtEnd wait(stream_);
  if (!filter(found)) return;
  // Only the filter needed it, and nobody reads its lists any more.
  filter_phase_.reset();
  stretch_phase_.reset();
  unsettled.pairs = std::move(found.pairs);
  unsettled.pairs.hold_values();
  keep_wide(found, unsettled);
  if (!redo(unsettled)) return;
  SettlePhase settling(part_, unsettled);
  if (!settling.run()) return;
  from_.check();
  stats_.seconds_emit = settling.seconds_emit();
  stats_.seconds_device = seconds_since(start_) - stats_.seconds_emit;
  stats_.streamed = true;
}

/// Begins the phase with the points in the first form that suits them, and
/// tells of it. Returns whether to go on.
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
  if (part_.shape().by_stretches()) {
    if (!begin(stretch_phase_)) return false;
    start_ = Clock::now();
    return stretch_phase_->run(found, stats_);
  }
  if (!begin(filter_phase_, exchange_)) return false;
  FilterPhase& phase = *filter_phase_;
  if (!exchange_.begin(phase.lists())) return false;
  start_ = Clock::now();
  return phase.fill() && phase.run(stats_) && phase.collect(found, stats_);
}

/// What longer lists found waits with all the rest, as much as there is room
/// for. What is to be done in doubles is left in `unsettled.redone`.
void GraphByFilterPanels::keep_wide(FilteredGraph& found,
                                    Unsettled& unsettled) {
  if (found.wide.counts.empty()) {
    unsettled.redone = std::move(found.redone);
    return;
  }
  const bool on_host = part_.shape().by_stretches();
  // On the host no more than all lists of the filter would have held.
  const std::int64_t room =
      (on_host ? layout_.num_owned() * part_.shape().capacity
               : part_.room_for_pairs(
                     static_cast<std::int64_t>(found.redone.size()))) -
      unsettled.pairs.num_pairs();
  const std::vector<std::int32_t>& places = unsettled.pairs.places();
  std::vector<std::int32_t> wide_places, columns;
  std::vector<std::int64_t> first(1, 0);
  auto next = found.wide.columns.begin();
  for (std::size_t at = 0; at < found.redone.size(); ++at) {
    const std::int64_t own = found.redone[at];
    const auto from = next;
    next += found.wide.counts[at];
    if (from == next || first.back() + found.wide.counts[at] > room) {
      unsettled.redone.push_back(own);
      continue;
    }
    columns.insert(columns.end(), from, next);
    unsettled.wide_own.push_back(static_cast<std::int32_t>(own));
    wide_places.push_back(places[static_cast<std::size_t>(own)]);
    first.push_back(static_cast<std::int64_t>(columns.size()));
  }
  if (unsettled.wide_own.empty()) return;
  stats_.rows_widened = static_cast<double>(unsettled.wide_own.size());
  stats_.pairs_exact += static_cast<double>(columns.size());
  unsettled.wide_pairs = WaitingList(
      std::move(wide_places), std::move(first),
      on_host ? WaitingList::Where::host : WaitingList::Where::device, stream_);
  unsettled.wide_pairs.hold_values();
  CUDA_CHECK(cudaMemcpyAsync(unsettled.wide_pairs.columns(), columns.data(),
                             columns.size() * sizeof(std::int32_t),
                             cudaMemcpyDefault, stream_.get()));
  stream_.wait();  // `columns` goes
}

/// Rows that overflowed longer lists too. Returns whether to go on.
bool GraphByFilterPanels::redo(Unsettled& unsettled) {
  if (unsettled.redone.empty()) return true;
  std::vector<std::int32_t> ids;
  for (const std::int64_t own : unsettled.redone)
    ids.push_back(layout_.row_ids[static_cast<std::size_t>(own)]);
  return redo_in_doubles(part_.search, ids, part_.shape().redo_rows,
                         part_.panels, part_.workers, stream_,
                         unsettled.redone_lists, stats_);
}

}  // namespace cuda
}  // namespace fsknn
