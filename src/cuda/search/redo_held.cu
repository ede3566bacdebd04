#include "cuda/search/redo_held.cuh"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cuda/device/transfer.cuh"
#include "cuda/device/wait_at_end.cuh"
#include "cuda/exact/gather.cuh"

namespace fsknn {
namespace cuda {
namespace {

// Grid: x over rows. Block: any. Shared: none.
__global__ void gather_sums(const double* from, const std::int32_t* places,
                            std::int64_t num_rows, double* sums) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < num_rows) sums[row] = from[places[row]];
}

/// Some of the points, one after the other.
class GatheredRows {
 public:
  GatheredRows(std::int64_t most_rows, std::int64_t padded, bool with_ids)
      : padded_(padded),
        rows_(most_rows * padded),
        sums_(most_rows),
        ids_(with_ids ? most_rows : 0) {}

  /// Those at these places (device memory), and zeros to `num_places` rows.
  Panel gather(const DevicePoints& points, const std::int32_t* places,
               std::int64_t num_rows, std::int64_t num_places,
               const Stream& stream) {
    Gather gather;
    gather.num_rows = num_rows;
    gather.num_places = num_places;
    gather.padded = padded_;
    gather.from = points.rows.data();
    gather.places = places;
    gather.rows = rows_.data();
    if (ids_.size() > 0) {
      gather.ids_from = points.ids.data();
      gather.ids = ids_.data();
    }
    start_gather(gather, stream.get());
    constexpr std::int64_t threads = 256;
    gather_sums<<<static_cast<unsigned>((num_rows + threads - 1) / threads),
                  threads, 0, stream.get()>>>(points.sums.data(), places,
                                              num_rows, sums_.data());
    CUDA_CHECK(cudaGetLastError());
    return {rows_.data(), sums_.data(), ids_.data(), 0, num_rows};
  }

 private:
  const std::int64_t padded_;
  DeviceBuffer<double> rows_, sums_;
  DeviceBuffer<std::int32_t> ids_;
};

/// By longer lists and the exact step. Leaves in `left` what is to be done in
/// doubles. bounds: see WideFilter. Returns whether to go on.
bool redo_widely(const HeldSearch& held, const RedoneRows& rows,
                 const float* bounds, const Stream& stream, Stats& stats,
                 std::vector<std::int32_t>& left) {
  if (rows.size() == 0) return true;
  WideFilter filter(held.pass, held.lists, held.exact.padded, stream,
                    rows.size(), bounds);
  GatheredRows gathered(filter.most_rows(), held.exact.padded, false);
  const WaitAtEnd wait(stream);
  const auto bring = [&](std::int64_t, std::int64_t count) {
    const Panel panel =
        gathered.gather(held.rows, filter.places(), count, count, stream);
    return PreparedRows{panel.rows, panel.sums, held.exact.padded};
  };
  const auto take = [&](std::int64_t, std::int64_t count) {
    CandidateStore& found = filter.candidates();
    ExactStep exact = held.exact;
    exact.lists = found.lists();
    exact.redo = found.redo();
    exact.first_slot = {0};
    exact.end_slot = {found.lists().num_slots};
    // Lists anew, all of them.
    exact.begun = false;
    exact.guessed = false;
    exact.limits = {};
    exact.counts = nullptr;
    run_exact(*held.search.request.metric, exact, stream);
    stats.pairs_exact += found.num_candidates(Slot{0}, Slot{count}, stream);
    const std::vector<std::int32_t> more = found.to_redo(stream);
    left.insert(left.end(), more.begin(), more.end());
  };
  const bool go_on =
      filter_widely(filter, rows, filter.most_rows(), bring, take);
  stats.pairs_filtered +=
      static_cast<double>(rows.size()) * static_cast<double>(held.num_met());
  return go_on;
}

// Fewer rows are done in doubles as fast.
constexpr std::int64_t kLeastLearntFrom = 256;

bool may_learn_from(const HeldSearch& held, std::int64_t num_rows) {
  return held.stored != nullptr && held.pass.filter->may_learn_again() &&
         num_rows >= kLeastLearntFrom;
}

template <class T>
std::vector<T> on_host(const T* from, std::int64_t size, const Stream& stream) {
  std::vector<T> to(static_cast<std::size_t>(size));
  CUDA_CHECK(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(T),
                             cudaMemcpyDeviceToHost, stream.get()));
  stream.wait();
  return to;
}

/// Points that are far from what the filter learnt from.
struct Unbounded {
  /// Places of rows to be done again whose bound says nothing, so that no list
  /// is long enough for them,
  std::vector<std::int32_t> rows;
  /// and of columns without one, at most `most` of them: a sample.
  std::vector<std::int32_t> columns;
};

/// Takes such rows out of those to be done again.
Unbounded take_unbounded(const HeldSearch& held, RedoneRows& rows,
                         const Stream& stream) {
  Unbounded taken;
  const Cut& cut = held.pass.cut;
  if (cut.row_slack == nullptr) return taken;
  const std::vector<float> slack =
      on_host(cut.row_slack, held.lists.num_slots, stream);
  RedoneRows others;
  for (std::size_t r = 0; r < rows.places.size(); ++r) {
    if (slack[static_cast<std::size_t>(rows.slots[r])] == HUGE_VALF) {
      taken.rows.push_back(rows.places[r]);
      continue;
    }
    others.places.push_back(rows.places[r]);
    others.slots.push_back(rows.slots[r]);
  }
  rows = std::move(others);
  if (!may_learn_from(held, static_cast<std::int64_t>(taken.rows.size())))
    return taken;

  const std::int64_t num_slots =
      FilterBlocks(held.search.columns.size()).num_slots();
  const std::vector<float> column_slack =
      on_host(cut.column_slack, num_slots, stream);
  const std::vector<std::int32_t> places =
      on_host(held.lists.column_places, num_slots, stream);
  // In the memory that longer lists' rows take later.
  constexpr std::int64_t most = 4096;
  const std::int64_t fit = WideRows(held.lists.num_slots, held.lists.capacity,
                                    held.pass.slot_bytes, held.exact.padded)
                               .rows;
  for (std::size_t slot = 0; slot < places.size(); ++slot)
    if (places[slot] >= 0 && column_slack[slot] == HUGE_VALF &&
        static_cast<std::int64_t>(taken.columns.size()) < std::min(most, fit))
      taken.columns.push_back(places[slot]);
  return taken;
}

/// The rows at these places against columns in doubles. for_points and take as
/// of DoubleRedo::run(), the latter with the lists and the places (device
/// memory) before its own. Returns whether to go on.
template <class ForPoints, class Take>
bool meet_in_doubles(const HeldSearch& held,
                     const std::vector<std::int32_t>& places,
                     const Stream& stream, Stats& stats, ForPoints for_points,
                     Take take) {
  const Search& search = held.search;
  const std::int64_t chunk = search.plan.chunk_size;
  const std::int64_t most_rows =
      std::min(chunk, whole_tiles(search.rows.size()));
  DeviceBuffer<std::int32_t> d_places(most_rows);
  const bool own = &held.rows == &held.columns || !search.rows.self.empty();
  GatheredRows gathered(most_rows, held.exact.padded, true);
  DoubleRedo redo(search, *held.pass.workers, stream, most_rows,
                  std::min(chunk, whole_tiles(search.columns.size())));
  const WaitAtEnd wait(stream);
  const auto bring = [&](std::int64_t first, std::int64_t count) {
    upload(d_places, places.data() + first, count, stream);
    Panel rows = gathered.gather(held.rows, d_places.data(), count,
                                 whole_tiles(count), stream);
    if (!own) rows.ids = nullptr;
    return rows;
  };
  const auto take_rows = [&](std::int64_t first, const Panel& rows) {
    take(redo.view(), d_places.data(), first, rows);
    stream.wait();
    return true;
  };
  const bool go_on = redo.run(static_cast<std::int64_t>(places.size()), bring,
                              for_points, take_rows);
  stats.pairs_exact += redo.pairs();
  return go_on;
}

// Grid: x over rows. Block: any. Shared: none.
__global__ void start_from_limits(const Lists lists, std::int64_t num_rows,
                                  const LimitRule rule, float* bounds) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < num_rows)
    bounds[row] =
        threshold_at(rule, lists.distance[row * lists.k + lists.k - 1]);
}

/// What the filter, which has learnt again, may be certain of: by the k-th
/// nearest among some columns. Without it the first points that a row meets
/// would be all as far from it, and all be candidates, until it meets some that
/// are near. Returns whether to go on.
bool find_bounds(const HeldSearch& held, const std::vector<std::int32_t>& rows,
                 const std::vector<std::int32_t>& columns, const Stream& stream,
                 Stats& stats, DeviceBuffer<float>& bounds) {
  const Search& search = held.search;
  const LimitRule rule =
      limit_rule(*search.request.metric, search.redo,
                 held.pass.filter->units(held.pass.cut, stream));
  const std::int64_t num_columns = static_cast<std::int64_t>(columns.size());
  DeviceBuffer<std::int32_t> places(num_columns);
  upload(places, columns.data(), num_columns, stream);
  GatheredRows gathered(whole_tiles(num_columns), held.exact.padded, true);
  const Panel all =
      num_columns == 0
          ? Panel()
          : gathered.gather(held.columns, places.data(), num_columns,
                            whole_tiles(num_columns), stream);
  const WaitAtEnd wait(stream);
  const auto for_points = [&](auto use) {
    for (std::int64_t first = 0; first < num_columns;
         first += search.plan.chunk_size) {
      Panel some = all;
      some.rows += first * held.exact.padded;
      some.sums += first;
      some.ids += first;
      some.count = std::min(search.plan.chunk_size, num_columns - first);
      if (!use(some)) return false;
    }
    return true;
  };
  const auto take = [&](const Lists& lists, const std::int32_t*,
                        std::int64_t first, const Panel& panel) {
    constexpr std::int64_t threads = 256;
    start_from_limits<<<static_cast<unsigned>((panel.count + threads - 1) /
                                              threads),
                        threads, 0, stream.get()>>>(lists, panel.count, rule,
                                                    bounds.data() + first);
    CUDA_CHECK(cudaGetLastError());
  };
  return meet_in_doubles(held, rows, stream, stats, for_points, take);
}

/// By a filter that has learnt from those of the rows that are left, as long as
/// it is enough for most: rows with entries far beyond all others, say, or near
/// each other and far from the rest. Returns whether to go on.
bool redo_learnt(const HeldSearch& held, Unbounded& unbounded,
                 const Stream& stream, Stats& stats) {
  constexpr std::int64_t most_learnt_from = 64;
  std::vector<std::int32_t>& left = unbounded.rows;
  const auto count = [&] { return static_cast<std::int64_t>(left.size()); };
  for (std::int64_t before = 2 * count();
       may_learn_from(held, count()) && 2 * count() <= before;) {
    before = count();
    {
      const std::int64_t num_rows = std::min(most_learnt_from, before);
      DeviceBuffer<std::int32_t> places(num_rows);
      upload(places, left.data(), num_rows, stream);
      GatheredRows gathered(num_rows, held.exact.padded, false);
      const WaitAtEnd wait(stream);
      const Panel sample =
          gathered.gather(held.rows, places.data(), num_rows, num_rows, stream);
      held.stored->learn_again({sample.rows, sample.sums, held.exact.padded},
                               num_rows, held.search.undo, stream);
    }
    DeviceBuffer<float> bounds(before);
    if (!find_bounds(held, left, unbounded.columns, stream, stats, bounds))
      return false;
    RedoneRows rows;
    rows.places.swap(left);
    rows.slots.resize(rows.places.size());
    std::iota(rows.slots.begin(), rows.slots.end(), 0);
    if (!redo_widely(held, rows, bounds.data(), stream, stats, left))
      return false;
    std::sort(left.begin(), left.end());
  }
  return true;
}

/// The rows at these places.
bool redo_in_doubles(const HeldSearch& held,
                     const std::vector<std::int32_t>& places,
                     const Stream& stream, Stats& stats) {
  const std::int64_t chunk = held.search.plan.chunk_size;
  const auto for_points = [&](auto use) {
    std::vector<PlaceRange> ranges = held.met;
    if (ranges.empty()) ranges.push_back({0, held.search.columns.size()});
    for (const PlaceRange& range : ranges)
      for (std::int64_t first = range.first; first < range.end;
           first += chunk) {
        const bool go_on = use(held.columns.panel(
            Place{first}, std::min(chunk, range.end - first)));
        stream.wait();
        if (!go_on) return false;
      }
    return true;
  };
  const auto take = [&](const Lists& lists, const std::int32_t* d_places,
                        std::int64_t, const Panel& rows) {
    start_scatter(lists, d_places, held.exact.list_rows, rows.count,
                  held.exact.nearest, stream.get());
  };
  return meet_in_doubles(held, places, stream, stats, for_points, take);
}

}  // namespace

bool redo_held(const HeldSearch& held, const RedoneRows& rows,
               const Stream& stream, Stats& stats) {
  stats.rows_redone += static_cast<double>(rows.size());
  if (rows.size() == 0) return true;
  std::vector<std::int32_t> left = rows.places;
  if (WideFilter::helps(held.lists)) {
    RedoneRows bounded = rows;
    Unbounded unbounded;
    left.clear();
    if (may_learn_from(held, rows.size()))
      unbounded = take_unbounded(held, bounded, stream);
    if (!redo_widely(held, bounded, nullptr, stream, stats, left) ||
        !redo_learnt(held, unbounded, stream, stats))
      return false;
    left.insert(left.end(), unbounded.rows.begin(), unbounded.rows.end());
    std::sort(left.begin(), left.end());
  }
  stats.rows_widened +=
      static_cast<double>(rows.size() - static_cast<std::int64_t>(left.size()));
  return left.empty() || redo_in_doubles(held, left, stream, stats);
}

}  // namespace cuda
}  // namespace fsknn
