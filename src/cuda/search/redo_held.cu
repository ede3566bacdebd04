#include "cuda/search/redo_held.cuh"

#include <algorithm>

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
/// doubles. Returns whether to go on.
bool redo_widely(const HeldSearch& held, const RedoneRows& rows,
                 const Stream& stream, Stats& stats,
                 std::vector<std::int32_t>& left) {
  WideFilter filter(held.pass, held.lists, held.exact.padded, stream,
                    rows.size());
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

/// The rows at these places.
bool redo_in_doubles(const HeldSearch& held,
                     const std::vector<std::int32_t>& places,
                     const Stream& stream, Stats& stats) {
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
  const auto for_points = [&](auto use) {
    std::vector<PlaceRange> ranges = held.met;
    if (ranges.empty()) ranges.push_back({0, search.columns.size()});
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
  const auto take = [&](std::int64_t, const Panel& rows) {
    start_scatter(redo.view(), d_places.data(), held.exact.list_rows,
                  rows.count, held.exact.nearest, stream.get());
    stream.wait();
    return true;
  };
  const bool go_on = redo.run(static_cast<std::int64_t>(places.size()), bring,
                              for_points, take);
  stats.pairs_exact += redo.pairs();
  return go_on;
}

}  // namespace

bool redo_held(const HeldSearch& held, const RedoneRows& rows,
               const Stream& stream, Stats& stats) {
  stats.rows_redone += static_cast<double>(rows.size());
  if (rows.size() == 0) return true;
  std::vector<std::int32_t> left = rows.places;
  if (WideFilter::helps(held.lists)) {
    left.clear();
    if (!redo_widely(held, rows, stream, stats, left)) return false;
    std::sort(left.begin(), left.end());
  }
  stats.rows_widened +=
      static_cast<double>(rows.size() - static_cast<std::int64_t>(left.size()));
  return left.empty() || redo_in_doubles(held, left, stream, stats);
}

}  // namespace cuda
}  // namespace fsknn
