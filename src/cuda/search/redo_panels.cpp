#include "cuda/search/redo_panels.hpp"

#include <algorithm>

#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"
#include "cuda/exact/rerank.hpp"
#include "cuda/search/panel_correlations.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Candidates are ranked by comparing all with each other, so rows with more are
// computed in doubles.
constexpr std::int32_t kMostWaiting = 1024;

/// Appends what the filter found for its first `count` rows to `found`.
void take_waiting(WideFilter& filter, std::int64_t count, std::int64_t k,
                  const std::int32_t* panel_places, const Stream& stream,
                  WideCandidates& found) {
  const CandidateStore& candidates = filter.candidates();
  std::vector<std::int32_t> counts =
      candidates.counts(Slot{0}, Slot{count}, stream);
  std::vector<std::int64_t> first(1, 0);
  for (std::int32_t& pairs : counts) {
    if (pairs < k || pairs > kMostWaiting) pairs = 0;
    first.push_back(first.back() + pairs);
  }
  found.counts.insert(found.counts.end(), counts.begin(), counts.end());
  if (first.back() == 0) return;
  DeviceBuffer<std::int64_t> d_first(count + 1);
  DeviceBuffer<std::int32_t> d_columns(first.back());
  upload(d_first, first.data(), d_first.size(), stream);
  PairsFromLists from;
  from.lists = candidates.lists();
  from.own_slots = filter.slots();
  from.panel_places = panel_places;
  from.num_owned = count;
  WaitingPairs to;
  to.first = d_first.data();
  to.columns = d_columns.data();
  start_waiting(from, to, stream.get());
  const std::size_t before = found.columns.size();
  found.columns.resize(before + static_cast<std::size_t>(d_columns.size()));
  download(found.columns.data() + before, d_columns, d_columns.size(), stream);
  stream.wait();
}

}  // namespace

bool filter_widely(const FilterPass& pass, const CandidateLists& lists,
                   const RedoneRows& rows, const std::vector<std::int32_t>& ids,
                   const std::int32_t* panel_places, const Panels& panels,
                   const Stream& stream, WideCandidates& found) {
  PanelBuffer& buffer = panels.buffers[0];
  const std::int64_t padded = panels.from.points().padded;
  WideFilter filter(pass, lists, padded, stream, rows.size());
  const WaitAtEnd wait(stream);
  const auto bring = [&](std::int64_t first, std::int64_t count) {
    panels.from.fetch_some(ids.data() + first, count, buffer);
    const Panel panel = buffer.get(stream);
    return PreparedRows{panel.rows, panel.sums, padded};
  };
  const auto take = [&](std::int64_t, std::int64_t count) {
    buffer.release(stream);
    take_waiting(filter, count, pass.cut.k, panel_places, stream, found);
  };
  return filter_widely(filter, rows, buffer.most_rows(), bring, take);
}

bool redo_in_doubles(const Search& search, const std::vector<std::int32_t>& ids,
                     std::int64_t most_rows, const Panels& panels,
                     Workers& workers, const Stream& stream,
                     RowsInDoubles& found, Stats& stats) {
  const std::int64_t k = search.plan.k;
  const bool correlated = search.out.correlation != nullptr;
  const std::size_t size = ids.size() * static_cast<std::size_t>(k);
  found.distance.resize(size);
  found.index.resize(size);
  if (correlated) found.correlation.resize(size);
  PanelBuffer own_rows(most_rows, search.columns.padded);
  DoublePass redo(lists_of(search), workers, stream, most_rows,
                  whole_tiles(panels.buffers[0].most_rows()));
  DeviceBuffer<double> correlations(correlated ? most_rows * k : 0);
  const WaitAtEnd wait(stream);
  const auto bring = [&](std::int64_t first, std::int64_t count) {
    panels.from.fetch_some(ids.data() + first, count, own_rows);
    return own_rows.get(stream);
  };
  const auto for_points = [&](auto use) {
    return for_panels(panels, stream, use);
  };
  const auto take = [&](std::int64_t first, const Panel& rows) {
    if (correlated) {
      PanelPairs pairs;
      pairs.rows = rows;
      pairs.padded = search.columns.padded;
      pairs.lists = redo.view();
      pairs.correlation = correlations.data();
      if (!correlate_all(pairs, panels, workers, stream)) return false;
    }
    // The rows are needed until here.
    own_rows.release(stream);
    const std::int64_t at = first * k, entries = rows.count * k;
    download(found.distance.data() + at, redo.lists().distance(), entries,
             stream);
    download(found.index.data() + at, redo.lists().index(), entries, stream);
    if (correlated)
      download(found.correlation.data() + at, correlations, entries, stream);
    stream.wait();
    return true;
  };
  const bool go_on =
      redo.run(static_cast<std::int64_t>(ids.size()), bring, for_points, take);
  stats.pairs_exact += redo.pairs();
  return go_on;
}

}  // namespace cuda
}  // namespace fsknn
