#include "cuda/search/all_pairs.hpp"

#include <algorithm>
#include <vector>

#include "cuda/device/transfer.hpp"
#include "cuda/exact/distance.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/panel_correlations.hpp"
#include "cuda/search/point_store.hpp"

namespace fsknn {
namespace cuda {
namespace {

std::int64_t at_most(std::int64_t chunk_size, const PlacedPoints& points) {
  return std::min(chunk_size, whole_tiles(points.size()));
}

}  // namespace

AllPairs::AllPairs(const Search& search, Workers& workers)
    : search_(search),
      workers_(workers),
      symmetric_(&search.rows == &search.columns),
      held_(search.plan.streamed
                ? nullptr
                : &search.store->get(columns_of(search), stream_).points()),
      own_rows_(held_ == nullptr || symmetric_
                    ? DevicePoints()
                    : DevicePoints(search.rows, search.prepare,
                                   threads_of(search),
                                   search.plan.padded_queries, stream_)),
      chunk_rows_(at_most(search.plan.chunk_size, search.rows)),
      chunk_columns_(at_most(search.plan.chunk_size, search.columns)),
      panels_({search.rows, search.columns,
               held_ == nullptr || symmetric_ ? held_ : &own_rows_, held_,
               chunk_rows_, chunk_columns_},
              search.prepare, threads_of(search)),
      chunk_(chunk_rows_, chunk_columns_, search.columns.padded, search.undo,
             search.plan.doubles.splits_at_once > 1),
      lists_(chunk_rows_ * search.plan.doubles.splits_at_once, search.plan.k),
      correlations_(held_ == nullptr && search.out.correlation != nullptr
                        ? chunk_rows_ * search.plan.k
                        : 0),
      answer_(search.out, chunk_rows_, search.plan.k, threads_of(search)) {
  if (search.plan.doubles.blocks > 0 && adds_in_order(stream_))
    lanes_.reset(new LaneTiles(
        chunk_rows_, chunk_columns_, symmetric_ && search.plan.num_splits == 1,
        search.columns.padded, search.plan.doubles.blocks));
}

void AllPairs::run(std::int64_t first_split, std::int64_t last_split) {
  bool done = true;
  // Only held rows are columns, too, so that a chunk serves both.
  for_bands(first_split, last_split, search_.plan.doubles.splits_at_once,
            symmetric_ && held_ != nullptr,
            [&](const PairBand& its) { return done = band(its); });
  if (done) panels_.check();
}

/// Finds and writes the neighbours of a band's rows. Returns whether to
/// continue.
bool AllPairs::band(const PairBand& band) {
  const std::int64_t row0 = band.first * search_.plan.chunk_size;
  const std::int64_t end =
      std::min(band.end * search_.plan.chunk_size, search_.rows.size());
  start_clear(lists_.lists(), end - row0, stream_.get());
  std::vector<Panel> rows;
  for (std::int64_t split = band.first; split < band.end; ++split) {
    rows.push_back(rows_of(split));
    std::int64_t column = 0;
    const auto meet = [&](const Panel& columns) {
      return chunk(band, split, column++, rows.back(), columns);
    };
    if (!panels_.for_columns(Place{0}, stream_, meet)) return false;
  }
  for (std::int64_t split = band.first; split < band.end; ++split)
    if (!emit(lists_of(band, split),
              rows[static_cast<std::size_t>(split - band.first)]))
      return false;
  panels_.release_rows(stream_);
  return true;
}

/// Starts one chunk's kernels. Returns whether to continue.
bool AllPairs::chunk(const PairBand& band, std::int64_t split,
                     std::int64_t column, const Panel& rows,
                     const Panel& columns) {
  const PairBand::Meeting meeting = band.meeting(split, column);
  if (meeting == PairBand::Meeting::made) return true;
  Selection selection = chunk_.selection(rows, columns, lists_of(band, split));
  if (symmetric_) selection.self = rows.first.value - columns.first.value;
  if (!search_.rows.self.empty()) selection.own_ids = rows.ids;
  if (held_ != nullptr) under_way_.begin();
  switch (meeting) {
    case PairBand::Meeting::made: break;
    case PairBand::Meeting::rows: start(chunk_.chunk(rows, columns)); break;
    case PairBand::Meeting::own_rows: start(chunk_.own_chunk(rows)); break;
    case PairBand::Meeting::both:
      start(chunk_.chunk_for_both(rows, columns));
      start_selection(
          chunk_.transposed_selection(rows, columns, lists_of(band, column)),
          stream_.get());
      break;
  }
  start_selection(selection, stream_.get());
  if (held_ != nullptr) under_way_.end(stream_);
  pairs_ += static_cast<double>(rows.count) *
            static_cast<double>(meeting == PairBand::Meeting::own_rows
                                    ? (rows.count + 1) / 2
                                    : columns.count);
  return workers_.go_on();
}

void AllPairs::start(const Chunk& chunk) {
  const MetricEntry& metric = *search_.request.metric;
  if (lanes_)
    lanes_->start(metric, chunk, stream_.get());
  else
    start_distances(metric, chunk, stream_.get());
}

/// Copies a split's lists to the answer. Returns whether to continue.
bool AllPairs::emit(const Lists& lists, const Panel& rows) {
  CorrelationOf from;
  if (held_ != nullptr) {
    from = held_->correlations(rows.rows, rows.sums);
  } else {
    if (search_.out.correlation != nullptr && !correlate(lists, rows))
      return false;
    from.given = correlations_.data();
  }
  answer_.write(lists, rows.count,
                search_.rows.order.id.data() + rows.first.value, from, stream_);
  return true;
}

/// Computes the neighbours' correlations of streamed points: few neighbours are
/// read one by one, many by another pass over the columns. Returns whether to
/// continue.
bool AllPairs::correlate(const Lists& lists, const Panel& rows) {
  const Panels columns = panels_.streamed();
  PanelPairs pairs;
  pairs.rows = rows;
  pairs.places = columns.from.places();
  pairs.padded = search_.columns.padded;
  pairs.lists = lists;
  pairs.correlation = correlations_.data();
  const std::int64_t entries = rows.count * search_.plan.k;
  // Reading a single point takes a cache line for each of its values.
  if (entries > std::min(chunk_columns_, columns.from.size() / 8))
    return correlate_all(pairs, columns, workers_, stream_);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(entries));
  download(ids.data(), lists_.index(), entries, stream_);
  stream_.wait();
  // A list that is not full becomes an error later, so any row will do.
  std::replace(ids.begin(), ids.end(), kNoPoint, std::int32_t{0});
  PanelBuffer& buffer = columns.buffers[0];
  columns.from.fetch_some(ids.data(), entries, buffer);
  pairs.in_order = true;
  pairs.columns = buffer.get(stream_);
  start_correlating(pairs, stream_.get());
  buffer.release(stream_);
  return workers_.go_on();
}

Panel AllPairs::rows_of(std::int64_t split) {
  const std::int64_t first = split * search_.plan.chunk_size;
  return panels_.rows(
      Place{first},
      std::min(search_.plan.chunk_size, search_.rows.size() - first), stream_);
}

}  // namespace cuda
}  // namespace fsknn
