#include "cuda/search/all_pairs_panels.cuh"

#include <algorithm>
#include <vector>

#include "cuda/device/check.cuh"
#include "cuda/exact/distance.cuh"
#include "cuda/prepare/rules.cuh"
#include "cuda/device/transfer.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kPairsPerBlock = 32;

/// Neighbours whose rows are in this panel.
struct PanelPairs {
  Panel rows, columns;
  const std::int32_t* places = nullptr;  ///< by number; null: the number
  bool in_order = false;  ///< the panel holds each entry's neighbour, one by one
  std::int64_t padded = 0;
  Lists lists;
  double* correlation = nullptr;  ///< out: [rows x k]
};

// The contract's r of the neighbours in the panel: 8 threads, one a lane, make a
// pair. In and out: see PanelPairs. Grid: x over entries of the lists. Block:
// kPairsPerBlock * 8. Shared: none.
__global__ void __launch_bounds__(kPairsPerBlock* kLanes)
    correlate_with_panel(const PanelPairs p) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t entry =
      static_cast<std::int64_t>(blockIdx.x) * kPairsPerBlock +
      threadIdx.x / kLanes;
  const bool there = entry < p.rows.count * p.lists.k;
  const std::int64_t at = there ? entry : 0;
  const std::int32_t index = p.lists.index[at];
  std::int64_t column = -1;
  if (there && p.in_order)
    column = at;
  else if (there && index != kNoPoint)
    column = (p.places != nullptr ? p.places[index] : index) - p.columns.first;
  const bool here = column >= 0 && column < p.columns.count;
  // All threads of a warp join together.
  if (!__any_sync(0xffffffffu, here)) return;
  const double part = lane_sum<Dot>(
      p.rows.rows + at / p.lists.k * p.padded,
      p.columns.rows + (here ? column : 0) * p.padded, p.padded, lane);
  const double r = clamp_to_one(joined<Dot>(part));
  if (lane == 0 && here) p.correlation[at] = r;
}

void start_correlating(const PanelPairs& pairs, cudaStream_t stream) {
  const std::int64_t grid =
      (pairs.rows.count * pairs.lists.k + kPairsPerBlock - 1) / kPairsPerBlock;
  correlate_with_panel<<<static_cast<unsigned>(grid), kPairsPerBlock * kLanes,
                         0, stream>>>(pairs);
  CUDA_CHECK(cudaGetLastError());
}

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
    from.fetch(row0, std::min(plan.chunk_size, from.size() - row0), rows_);
    const Panel rows = rows_.get(stream_);
    start_clear(lists_.lists(), rows.count, stream_.get());
    if (!for_panels(from_columns_, columns_, stream_, [&](const Panel& columns) {
          return chunk(rows, columns);
        }))
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
  if (symmetric_) selection.self = rows.first - columns.first;
  if (!search_.rows.self.empty()) selection.own_ids = rows.ids;
  under_way_.begin();
  start_distances(*search_.request.metric, chunk_.chunk(rows, columns),
                  stream_.get());
  start_selection(selection, stream_.get());
  under_way_.end(stream_);
  pairs_ += static_cast<double>(rows.count) * static_cast<double>(columns.count);
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
  return for_panels(from_columns_, columns_, stream_, [&](const Panel& columns) {
    pairs.columns = columns;
    start_correlating(pairs, stream_.get());
    return workers_.go_on();
  });
}

RowsByPanels::RowsByPanels(const Search& search, Workers& workers,
                           PanelStream& from, PanelBuffer (&panels)[2],
                           const Stream& stream, std::int64_t most_rows)
    : search_(search),
      workers_(workers),
      from_(from),
      panels_(panels),
      stream_(stream),
      rows_(most_rows, search.columns.padded),
      chunk_(most_rows, whole_tiles(panels[0].most_rows()),
             search.columns.padded, search.undo),
      lists_(most_rows, search.plan.k),
      list_correlation_(
          search.out.correlation != nullptr ? most_rows * search.plan.k : 0) {}

bool RowsByPanels::run(const std::vector<std::int32_t>& ids) {
  const std::int64_t count = static_cast<std::int64_t>(ids.size());
  const std::size_t size = ids.size() * static_cast<std::size_t>(search_.plan.k);
  distance_.resize(size);
  index_.resize(size);
  if (list_correlation_.size() > 0) correlation_.resize(size);
  const std::int64_t most = rows_.most_rows();
  for (std::int64_t first = 0; first < count; first += most) {
    if (!batch(ids.data() + first, std::min(most, count - first))) return false;
    const std::int64_t at = first * search_.plan.k;
    const std::int64_t entries =
        std::min(most, count - first) * search_.plan.k;
    download(distance_.data() + at, lists_.distance(), entries, stream_);
    download(index_.data() + at, lists_.index(), entries, stream_);
    if (list_correlation_.size() > 0)
      download(correlation_.data() + at, list_correlation_, entries, stream_);
    stream_.wait();
  }
  return true;
}

bool RowsByPanels::batch(const std::int32_t* ids, std::int64_t count) {
  from_.fetch_some(ids, count, rows_);
  const Panel rows = rows_.get(stream_);
  start_clear(lists_.lists(), count, stream_.get());
  const bool go_on =
      for_panels(from_, panels_, stream_, [&](const Panel& columns) {
        Selection selection =
            chunk_.selection(rows, columns, lists_.lists());
        selection.own_ids = rows.ids;
        start_distances(*search_.request.metric, chunk_.chunk(rows, columns),
                        stream_.get());
        start_selection(selection, stream_.get());
        pairs_ += static_cast<double>(count) *
                  static_cast<double>(columns.count);
        return workers_.go_on();
      }) &&
      (list_correlation_.size() == 0 || correlate(rows));
  // Only now: the next batch's rows come as soon as they may.
  rows_.release(stream_);
  return go_on;
}

/// One more pass over the points. Returns whether to go on.
bool RowsByPanels::correlate(const Panel& rows) {
  PanelPairs pairs;
  pairs.rows = rows;
  pairs.places = from_.places();
  pairs.padded = search_.columns.padded;
  pairs.lists = lists_.lists();
  pairs.correlation = list_correlation_.data();
  return for_panels(from_, panels_, stream_, [&](const Panel& columns) {
    pairs.columns = columns;
    start_correlating(pairs, stream_.get());
    return workers_.go_on();
  });
}

}  // namespace cuda
}  // namespace fsknn
