#include "cuda/search/all_pairs_panels.hpp"

#include <algorithm>
#include <vector>

#include "cuda/device/transfer.hpp"
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
      pass_(lists_of(search), workers, stream_, chunk_rows_, chunk_columns_,
            symmetric_),
      list_correlation_(
          search.out.correlation != nullptr ? chunk_rows_ * search.plan.k : 0),
      answer_(search.out, chunk_rows_, search.plan.k, threads_of(search)),
      from_columns_(search.columns, search.prepare, threads_of(search)) {
  if (!symmetric_)
    from_queries_.reset(
        new PanelStream(search.rows, search.prepare, threads_of(search)));
}

void AllPairsPanels::run(std::int64_t first_split, std::int64_t last_split) {
  PanelStream& from = symmetric_ ? from_columns_ : *from_queries_;
  const std::int64_t row0 = first_split * search_.plan.chunk_size;
  const std::int64_t end =
      std::min(last_split * search_.plan.chunk_size, from.size());
  const auto bring = [&](std::int64_t first, std::int64_t count) {
    from.fetch(Place{row0 + first}, count, rows_);
    Panel rows = rows_.get(stream_);
    if (search_.rows.self.empty()) rows.ids = nullptr;
    return rows;
  };
  const auto for_points = [&](auto use) {
    return for_panels(from_columns_, columns_, stream_, use);
  };
  const auto take = [&](std::int64_t first, const Panel& rows) {
    if (search_.out.correlation != nullptr && !correlate(rows)) return false;
    CorrelationOf given;
    given.given = list_correlation_.data();
    answer_.write(pass_.view(), rows.count,
                  search_.rows.order.id.data() + row0 + first, given, stream_);
    rows_.release(stream_);
    return true;
  };
  if (!pass_.run(end - row0, bring, for_points, take)) return;
  from_columns_.check();
  if (from_queries_) from_queries_->check();
}

/// Computes the neighbours' correlations: few neighbours are read one by one,
/// many by another pass over the columns.
bool AllPairsPanels::correlate(const Panel& rows) {
  PanelPairs pairs;
  pairs.rows = rows;
  pairs.places = from_columns_.places();
  pairs.padded = search_.columns.padded;
  pairs.lists = pass_.view();
  pairs.correlation = list_correlation_.data();
  const std::int64_t entries = rows.count * search_.plan.k;
  // Reading a single point takes a cache line for each of its values.
  if (entries <= std::min(chunk_columns_, from_columns_.size() / 8)) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(entries));
    download(ids.data(), pass_.lists().index(), entries, stream_);
    stream_.wait();
    // A list that is not full becomes an error later, so any row will do.
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
