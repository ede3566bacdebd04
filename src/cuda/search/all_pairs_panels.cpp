#include "cuda/search/all_pairs_panels.hpp"

#include <algorithm>
#include <vector>

#include "cuda/device/transfer.hpp"
#include "cuda/exact/distance.hpp"
#include "cuda/search/panel_correlations.hpp"

namespace fsknn {
namespace cuda {
namespace {

std::int64_t at_most(std::int64_t chunk_size, const PlacedPoints& points) {
  return std::min(chunk_size, whole_tiles(points.size()));
}

}  // namespace

AllPairsPanels::AllPairsPanels(const Search& search, Workers& workers)
    : search_(search),
      workers_(workers),
      symmetric_(&search.rows == &search.columns),
      chunk_rows_(at_most(search.plan.chunk_size, search.rows)),
      chunk_columns_(at_most(search.plan.chunk_size, search.columns)),
      rows_(chunk_rows_, search.rows.padded),
      columns_{{chunk_columns_, search.columns.padded},
               {chunk_columns_, search.columns.padded}},
      chunk_(chunk_rows_, chunk_columns_, search.columns.padded, search.undo),
      lists_(chunk_rows_, search.plan.k),
      list_correlation_(
          search.out.correlation != nullptr ? chunk_rows_ * search.plan.k : 0),
      answer_(search.out, chunk_rows_, search.plan.k, threads_of(search)),
      from_columns_(search.columns, search.prepare, threads_of(search)) {
  if (!symmetric_)
    from_queries_.reset(
        new PanelStream(search.rows, search.prepare, threads_of(search)));
}

void AllPairsPanels::run(std::int64_t first_split, std::int64_t last_split) {
  const Plan& plan = search_.plan;
  PanelStream& from = symmetric_ ? from_columns_ : *from_queries_;
  for (std::int64_t split = first_split; split < last_split; ++split) {
    const std::int64_t row0 = split * plan.chunk_size;
    from.fetch(Place{row0}, std::min(plan.chunk_size, from.size() - row0),
               rows_);
    const Panel rows = rows_.get(stream_);
    start_clear(lists_.lists(), rows.count, stream_.get());
    if (!for_panels(from_columns_, columns_, stream_,
                    [&](const Panel& columns) { return chunk(rows, columns); }))
      return;
    if (search_.out.correlation != nullptr && !correlate(rows)) return;
    CorrelationOf given;
    given.given = list_correlation_.data();
    answer_.write(lists_.lists(), rows.count,
                  search_.rows.order.id.data() + row0, given, stream_);
    rows_.release(stream_);
  }
  from_columns_.check();
  if (from_queries_) from_queries_->check();
}

/// Starts one chunk's kernels. Returns whether to go on.
bool AllPairsPanels::chunk(const Panel& rows, const Panel& columns) {
  Selection selection = chunk_.selection(rows, columns, lists_.lists());
  if (symmetric_) selection.self = rows.first.value - columns.first.value;
  if (!search_.rows.self.empty()) selection.own_ids = rows.ids;
  under_way_.begin();
  start_distances(*search_.request.metric, chunk_.chunk(rows, columns),
                  stream_.get());
  start_selection(selection, stream_.get());
  under_way_.end(stream_);
  pairs_ +=
      static_cast<double>(rows.count) * static_cast<double>(columns.count);
  return workers_.go_on();
}

/// The neighbours' correlations: few are read one by one, many by one more pass
/// over the columns.
bool AllPairsPanels::correlate(const Panel& rows) {
  PanelPairs pairs;
  pairs.rows = rows;
  pairs.places = from_columns_.places();
  pairs.padded = search_.columns.padded;
  pairs.lists = lists_.lists();
  pairs.correlation = list_correlation_.data();
  const std::int64_t entries = rows.count * search_.plan.k;
  // A point read alone takes a cache line for each of its values.
  if (entries <= std::min(chunk_columns_, from_columns_.size() / 8)) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(entries));
    download(ids.data(), lists_.index(), entries, stream_);
    stream_.wait();
    // A list that is not full is an error by and by: any row will do.
    std::replace(ids.begin(), ids.end(), kNoPoint, std::int32_t{0});
    from_columns_.fetch_some(ids.data(), entries, columns_[0]);
    pairs.in_order = true;
    pairs.columns = columns_[0].get(stream_);
    start_correlating(pairs, stream_.get());
    columns_[0].release(stream_);
    return workers_.go_on();
  }
  return correlate_all(pairs, from_columns_, columns_, workers_, stream_);
}

}  // namespace cuda
}  // namespace fsknn
