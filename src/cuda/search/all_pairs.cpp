#include "cuda/search/all_pairs.hpp"

#include <algorithm>

#include "cuda/exact/distance.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/point_store.hpp"

namespace fsknn {
namespace cuda {

AllPairs::AllPairs(const Search& search, Workers& workers)
    : search_(search),
      workers_(workers),
      symmetric_(&search.rows == &search.columns),
      columns_(search.store->get(columns_of(search), stream_).points()),
      chunk_rows_(
          std::min(search.plan.chunk_size, whole_tiles(search.rows.size()))),
      chunk_columns_(
          std::min(search.plan.chunk_size, whole_tiles(search.columns.size()))),
      chunk_(chunk_rows_, chunk_columns_, search.columns.padded, search.undo,
             search.plan.doubles.splits_at_once > 1),
      lists_(chunk_rows_ * search.plan.doubles.splits_at_once, search.plan.k),
      answer_(search.out, chunk_rows_, search.plan.k, threads_of(search)) {
  if (!symmetric_)
    own_rows_ = DevicePoints(search.rows, search.prepare, threads_of(search),
                             search.plan.padded_queries, stream_);
  if (search.plan.doubles.blocks > 0 && adds_in_order(stream_))
    lanes_.reset(new LaneTiles(
        chunk_rows_, chunk_columns_, symmetric_ && search.plan.num_splits == 1,
        search.columns.padded, search.plan.doubles.blocks));
}

void AllPairs::run(std::int64_t first_split, std::int64_t last_split) {
  for_bands(first_split, last_split, search_.plan.doubles.splits_at_once,
            symmetric_, [&](const PairBand& its) { return band(its); });
}

/// Finds and writes the neighbours of a band's rows. Returns whether to
/// continue.
bool AllPairs::band(const PairBand& band) {
  const std::int64_t row0 = band.first * search_.plan.chunk_size;
  const std::int64_t end =
      std::min(band.end * search_.plan.chunk_size, search_.rows.size());
  start_clear(lists_.lists(), end - row0, stream_.get());
  for (std::int64_t split = band.first; split < band.end; ++split)
    for (std::int64_t c = 0; c < search_.plan.chunks_per_split; ++c)
      if (band.meeting(split, c) != PairBand::Meeting::made &&
          !chunk(band, split, c))
        return false;
  for (std::int64_t split = band.first; split < band.end; ++split)
    emit(band, split);
  return true;
}

/// Starts one chunk's kernels. Returns whether to continue.
bool AllPairs::chunk(const PairBand& band, std::int64_t split,
                     std::int64_t column) {
  const PairBand::Meeting meeting = band.meeting(split, column);
  const Panel rows = rows_of(split), columns = columns_at(column);
  Selection selection = chunk_.selection(rows, columns, lists_of(band, split));
  if (symmetric_) selection.self = rows.first.value - columns.first.value;
  if (!search_.rows.self.empty()) selection.own_ids = rows.ids;
  under_way_.begin();
  switch (meeting) {
    case PairBand::Meeting::made: break;
    case PairBand::Meeting::rows: start(chunk_.chunk(rows, columns)); break;
    case PairBand::Meeting::own_rows: start(chunk_.own_chunk(rows)); break;
    case PairBand::Meeting::both:
      start(chunk_.chunk_for_both(rows, columns));
      start_selection(
          chunk_.turned_selection(rows, columns, lists_of(band, column)),
          stream_.get());
      break;
  }
  start_selection(selection, stream_.get());
  under_way_.end(stream_);
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

/// Copies the split's lists to the answer.
void AllPairs::emit(const PairBand& band, std::int64_t split) {
  const Panel rows = rows_of(split);
  CorrelationOf from;
  from.rows = rows.rows;
  from.row_sums = rows.sums;
  from.columns = columns_.rows.data();
  from.column_sums = columns_.sums.data();
  from.places = columns_.places.data();
  from.padded = search_.columns.padded;
  answer_.write(lists_of(band, split), rows.count,
                search_.rows.order.id.data() + rows.first.value, from, stream_);
}

Panel AllPairs::rows_of(std::int64_t split) const {
  const std::int64_t first = split * search_.plan.chunk_size;
  return row_points().panel(
      Place{first},
      std::min(search_.plan.chunk_size, search_.rows.size() - first));
}

Panel AllPairs::columns_at(std::int64_t split) const {
  const std::int64_t first = split * search_.plan.chunk_size;
  return columns_.panel(Place{first}, std::min(search_.plan.chunk_size,
                                               search_.columns.size() - first));
}

}  // namespace cuda
}  // namespace fsknn
