#include "cuda/search/redo_held.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"
#include "cuda/exact/gather.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Recomputes rows by longer lists and the exact step. Rows to compute in
/// doubles remain in `left`. bounds: see WideFilter. Returns whether to
/// continue.
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
        gathered.gather(held.rows, filter.places(), count, stream);
    return PreparedRows{panel.rows, panel.sums, held.exact.padded};
  };
  const auto take = [&](std::int64_t, std::int64_t count) {
    CandidateStore& found = filter.candidates();
    ExactStep exact = held.exact;
    exact.lists = found.lists();
    exact.redo = found.redo();
    exact.first_slot = {0};
    exact.end_slot = {found.lists().num_slots};
    // The lists start empty.
    exact.begun = false;
    exact.estimated = false;
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

// Fewer rows are computed in doubles as fast.
constexpr std::int64_t kLeastLearntFrom = 256;

bool may_learn_from(const HeldSearch& held, std::int64_t num_rows) {
  return held.stored != nullptr && held.pass.filter->may_learn_again() &&
         num_rows >= kLeastLearntFrom;
}

/// Points that are far from those that the filter learnt from.
struct Unbounded {
  /// Places of rows to recompute that have no bound, so that no list is long
  /// enough for them; ascending.
  std::vector<std::int32_t> rows;
  /// Columns without a bound: some, up to a limit.
  std::vector<std::int32_t> columns;
  /// A column with a bound, like most of those.
  std::int32_t bounded = -1;
};

/// Removes such rows from those to recompute.
Unbounded take_unbounded(const HeldSearch& held, RedoneRows& rows,
                         const Stream& stream) {
  Unbounded taken;
  const Cut& cut = held.pass.cut;
  if (cut.row_slack == nullptr) return taken;
  const std::vector<float> slack = downloaded(
      cut.row_slack,
      *std::max_element(rows.slots.begin(), rows.slots.end()) + 1, stream);
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
      downloaded(cut.column_slack, num_slots, stream);
  const std::vector<std::int32_t> places =
      downloaded(held.lists.column_places, num_slots, stream);
  // Uses the memory that longer lists' rows take later.
  constexpr std::int64_t most = 4096, bytes = std::int64_t{64} << 20;
  const std::size_t fit = static_cast<std::size_t>(
      std::min(most, bytes / (8 * held.exact.padded + 12)));
  for (std::size_t slot = 0; slot < places.size(); ++slot) {
    if (places[slot] < 0) continue;
    if (column_slack[slot] < HUGE_VALF)
      taken.bounded = places[slot];
    else if (taken.columns.size() < fit)
      taken.columns.push_back(places[slot]);
  }
  return taken;
}

/// Compares the rows at these places with columns in doubles. for_points and
/// take are those of DoublePass::run(); take receives the lists and the places
/// (device memory) first. Returns whether to continue.
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
  DoublePass redo(lists_of(search), *held.pass.workers, stream, most_rows,
                  std::min(chunk, whole_tiles(search.columns.size())));
  const WaitAtEnd wait(stream);
  const auto bring = [&](std::int64_t first, std::int64_t count) {
    upload(d_places, places.data() + first, count, stream);
    Panel rows = gathered.gather(held.rows, d_places.data(), count, stream);
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

/// Finds, for each row, the distance of its (at + 1)-th nearest among these
/// columns, infinite if there are fewer. Returns whether to continue.
bool distances_among(const HeldSearch& held,
                     const std::vector<std::int32_t>& rows,
                     const std::vector<std::int32_t>& columns, std::int64_t at,
                     const Stream& stream, Stats& stats,
                     std::vector<double>& distances) {
  const std::int64_t chunk = held.search.plan.chunk_size;
  const std::int64_t padded = held.exact.padded;
  const std::int64_t num_columns = static_cast<std::int64_t>(columns.size());
  DeviceBuffer<std::int32_t> places(num_columns);
  GatheredRows gathered(whole_tiles(num_columns), padded, true);
  const WaitAtEnd wait(stream);
  upload(places, columns.data(), num_columns, stream);
  const Panel all =
      gathered.gather(held.columns, places.data(), num_columns, stream);
  const auto for_points = [&](auto use) {
    return for_parts(all, padded, chunk, stream, use);
  };
  distances.resize(rows.size());
  const auto take = [&](const Lists& lists, const std::int32_t*,
                        std::int64_t first, const Panel& panel) {
    const std::size_t size = sizeof(double);
    CUDA_CHECK(cudaMemcpy2DAsync(distances.data() + first, size,
                                 lists.distance + at,
                                 static_cast<std::size_t>(lists.k) * size, size,
                                 static_cast<std::size_t>(panel.count),
                                 cudaMemcpyDeviceToHost, stream.get()));
  };
  return meet_in_doubles(held, rows, stream, stats, for_points, take);
}

/// A row, and its k-th distance among the points compared.
struct LimitedRow {
  std::int32_t place;
  double limit;
};

/// Takes the rows that are much nearer to k others without a bound than to a
/// column with one: a filter that learns from them will separate most points
/// from their neighbours. `rows` keeps the others. Returns whether to continue.
bool take_worth_learning(const HeldSearch& held, Unbounded& unbounded,
                         const Stream& stream, Stats& stats,
                         std::vector<LimitedRow>& worth) {
  constexpr double much_nearer = 0.9;
  std::vector<double> limits, others;
  if (!distances_among(held, unbounded.rows, unbounded.columns,
                       held.search.plan.k - 1, stream, stats, limits) ||
      !distances_among(held, unbounded.rows, {unbounded.bounded}, 0, stream,
                       stats, others))
    return false;
  std::vector<std::int32_t> rest;
  for (std::size_t r = 0; r < unbounded.rows.size(); ++r)
    if (limits[r] < much_nearer * others[r])
      worth.push_back({unbounded.rows[r], limits[r]});
    else
      rest.push_back(unbounded.rows[r]);
  unbounded.rows = std::move(rest);
  return true;
}

/// Remakes the columns' form from what the filter learns of some of the rows.
void learn_from(const HeldSearch& held, const std::vector<std::int32_t>& rows,
                const Stream& stream) {
  constexpr std::int64_t most = 64;
  const std::int64_t count =
      std::min(most, static_cast<std::int64_t>(rows.size()));
  DeviceBuffer<std::int32_t> places(count);
  GatheredRows gathered(count, held.exact.padded, false);
  const WaitAtEnd wait(stream);
  upload(places, rows.data(), count, stream);
  const Panel sample = gathered.gather(held.rows, places.data(), count, stream);
  held.stored->learn_again({sample.rows, sample.sums, held.exact.padded}, count,
                           held.search.undo.scale, stream);
}

/// Recomputes rows by a filter that has learnt from them. Examples are rows
/// with entries far beyond all others, or rows near each other and far from the
/// rest. Repeats this while it is enough for most of the remaining rows. The
/// rows start from their known limits: the first points compared with a row may
/// all be equally far from it, and would all be candidates. The remaining rows
/// stay in `unbounded`. Returns whether to continue.
bool redo_learnt(const HeldSearch& held, Unbounded& unbounded,
                 const Stream& stream, Stats& stats) {
  std::vector<LimitedRow> now;
  if (unbounded.bounded < 0 || unbounded.columns.empty() ||
      !may_learn_from(held, static_cast<std::int64_t>(unbounded.rows.size())))
    return true;
  if (!take_worth_learning(held, unbounded, stream, stats, now)) return false;
  bool most_were_done = true;
  while (most_were_done &&
         may_learn_from(held, static_cast<std::int64_t>(now.size()))) {
    RedoneRows rows;
    for (const LimitedRow& row : now) rows.places.push_back(row.place);
    learn_from(held, rows.places, stream);
    const LimitRule rule =
        limit_rule(*held.search.request.metric, held.search.redo,
                   held.pass.filter->units(held.pass.cut, stream));
    std::vector<float> bounds;
    for (const LimitedRow& row : now)
      bounds.push_back(threshold_at(rule, row.limit));
    DeviceBuffer<float> d_bounds(rows.size());
    upload(d_bounds, bounds.data(), rows.size(), stream);
    rows.slots = counting(0, rows.size());
    std::vector<std::int32_t> left;
    if (!redo_widely(held, rows, d_bounds.data(), stream, stats, left))
      return false;
    std::sort(left.begin(), left.end());
    most_were_done = 2 * left.size() <= now.size();
    const auto is_done = [&](const LimitedRow& row) {
      return !std::binary_search(left.begin(), left.end(), row.place);
    };
    now.erase(std::remove_if(now.begin(), now.end(), is_done), now.end());
  }
  for (const LimitedRow& row : now) unbounded.rows.push_back(row.place);
  return true;
}

/// Computes the rows at these places.
bool redo_in_doubles(const HeldSearch& held,
                     const std::vector<std::int32_t>& places,
                     const Stream& stream, Stats& stats) {
  const std::int64_t chunk = held.search.plan.chunk_size;
  const auto for_points = [&](auto use) {
    std::vector<PlaceRange> ranges = held.met;
    if (ranges.empty()) ranges.push_back({0, held.search.columns.size()});
    for (const PlaceRange& range : ranges)
      if (!for_parts(
              held.columns.panel(Place{range.first}, range.end - range.first),
              held.columns.padded, chunk, stream, use))
        return false;
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
  stats.rows_recomputed += static_cast<double>(rows.size());
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
