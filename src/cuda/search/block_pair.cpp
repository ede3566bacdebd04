#include "cuda/search/block_pair.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/pieces.hpp"
#include "core/rows/made_rows.hpp"
#include "core/search/plan.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/wait_at_end.hpp"
#include "cuda/exact/distance.hpp"
#include "cuda/exact/emit.hpp"
#include "cuda/exact/short_lists.hpp"
#include "cuda/plan/panels.hpp"
#include "cuda/search/candidate_store.hpp"
#include "cuda/search/filter_form.hpp"
#include "cuda/search/rounds.hpp"

namespace fsknn {
namespace cuda {
namespace {

// The side of a chunk where all pairs are computed in doubles.
constexpr std::int64_t kChunkSide = 4096;
// Entries of lists that are copied to the host at a time: 256 MiB with their
// numbers.
constexpr std::int64_t kMostEntries = std::int64_t{1} << 24;
// Points from which the filter's form is learnt, half of them from either side.
constexpr std::int64_t kSampled = 64;
static_assert(kSampled / 2 <= kLeastSideFiltered, "either has so many");

}  // namespace

Sides::Sides(const BlockRows& blocks, const Between& between,
             const std::vector<std::int64_t>& skip)
    : alone(between.b.count == 0) {
  points.source = &blocks;
  points.num_features = blocks.num_features();
  points.padded = padded_features(points.num_features);
  points.order.place.assign(static_cast<std::size_t>(blocks.num_points()), -1);
  const std::int64_t a = between.a.count, b = between.b.count;
  const std::int64_t not_of_a =
      skip.end() - std::lower_bound(skip.begin(), skip.end(), a);
  const std::int64_t not_of_b =
      static_cast<std::int64_t>(skip.size()) - not_of_a;
  // The larger side becomes the columns, which come first.
  if (b - not_of_a > a - not_of_b) {
    num_columns = append(a, b, skip);
    num_rows = append(0, a, skip);
  } else {
    num_columns = append(0, a, skip);
    num_rows = append(a, b, skip);
  }
}

std::int64_t Sides::append(std::int64_t first, std::int64_t count,
                           const std::vector<std::int64_t>& skip) {
  std::vector<std::int64_t> own;
  for (const std::int64_t point : skip)
    if (point >= first && point < first + count) own.push_back(point - first);
  const PointOrder side = order_points(count, own, true);
  for (const std::int32_t at : side.id) {
    const std::int64_t point = first + at;
    points.order.place[static_cast<std::size_t>(point)] =
        static_cast<std::int32_t>(points.order.id.size());
    points.order.id.push_back(static_cast<std::int32_t>(point));
  }
  return side.num_active();
}

double bytes_of(const BlockWork& work) {
  const PlacedPoints& points = work.sides.points;
  const double places = static_cast<double>(work.num_places());
  const double padded = static_cast<double>(points.padded);
  const double k = static_cast<double>(work.k);
  const bool ranked = work.request.metric->row_form == RowForm::ranked;
  const double side = static_cast<double>(kChunkSide);
  double bytes = places * (padded * 8 + 12) +
                 4.0 * static_cast<double>(points.source->num_points()) +
                 bytes_preparing(points.source->num_points(),
                                 points.num_features, ranked) +
                 bytes_made_from(*points.source);
  if (work.request.covariates != nullptr)
    bytes += work.request.covariates->bytes();
  bytes += side * (side * 8 + padded * 8 + 16 + k * 20) +
           20.0 * static_cast<double>(kMostEntries) + 20 * k;
  if (!work.filter.usable()) return bytes;
  const double slots = static_cast<double>(work.pairs().num_slots());
  return bytes + work.multiprocessors * work.filter.rows.bytes_sums +
         slots * (static_cast<double>(work.filter.rows.slot_bytes()) +
                  8.0 * candidates_for(work.k) + 24);
}

FilterChoice filter_of(const Request& request, const Sides& sides,
                       std::int64_t k, const GpuFacts& facts) {
  if (sides.alone) return {};
  FilterAsked asked(FilteredSearch::blocks, request);
  asked.num_points = sides.num_columns;
  asked.num_rows = sides.num_rows;
  asked.num_features = sides.points.num_features;
  asked.k = k;
  return choose_filter(asked, facts);
}

std::int64_t num_pieces(const BlockWork& work) {
  if (work.filter.usable()) return 1 + ceil_div(work.pairs().num_slots(), 1024);
  const std::int64_t side = ceil_div(work.sides.size(), kChunkSide);
  return 1 + side * side;
}

/// The lists of some rows on the host.
struct BlockPair::Batch {
  Batch(std::int64_t rows, std::int64_t k, bool with_correlation)
      : correlation(with_correlation ? rows * k : 0),
        h_index(static_cast<std::size_t>(rows * k)),
        h_distance(h_index.size()),
        h_correlation(static_cast<std::size_t>(correlation.size())) {}
  DeviceBuffer<double> correlation;
  std::vector<std::int32_t> h_index;
  std::vector<double> h_distance, h_correlation;
};

BlockPair::BlockPair(const BlockWork& work, Workers& workers, PairLists& found)
    : work_(work),
      metric_(*work.request.metric),
      undo_(work.rule.undo()),
      workers_(workers),
      found_(found),
      points_(work.sides.points, work.prepare, work.request.num_threads,
              work.num_places(), stream_) {}

void BlockPair::run() {
  std::vector<std::int32_t> left;
  if (!work_.filter.usable()) {
    left = counting(0, work_.sides.size());
  } else if (!filter(left)) {
    return;
  }
  // Places ascend: those of columns come first.
  const std::int64_t columns = work_.sides.num_columns;
  const auto middle = std::lower_bound(left.begin(), left.end(), columns);
  const std::vector<std::int32_t> of_columns(left.begin(), middle);
  const std::vector<std::int32_t> of_rows(middle, left.end());
  if (work_.sides.alone)
    in_doubles(of_columns, 0, columns);
  else if (in_doubles(of_columns, columns, work_.sides.num_rows))
    in_doubles(of_rows, 0, columns);
}

/// Puts both sides in the first form that pays.
FormedPoints BlockPair::formed(const std::vector<std::int32_t>& places) {
  // The places around the boundary of the two sides are a fair sample, since
  // each side is shuffled. Two ranges of a user's points may be far apart.
  const Panel sample =
      points_.panel(Place{work_.sides.num_columns - kSampled / 2}, kSampled);
  Sought sought;
  sought.num_points = work_.sides.num_columns;
  sought.k = work_.k;
  sought.forced = work_.filter.forced;
  sought.capacity = candidates_for(work_.k);
  return FormedPoints::make(metric_, work_.filter.rows,
                            {{sample.rows, sample.sums, points_.padded},
                             sample.count,
                             undo_.scale,
                             sought},
                            points_.prepared(),
                            slots_of(places, work_.sides.size()),
                            work_.pairs().num_slots(), stream_);
}

/// Leaves the places whose lists overflowed in `left`. Returns whether to
/// continue.
bool BlockPair::filter(std::vector<std::int32_t>& left) {
  const BlockPairs pairs = work_.pairs();
  const std::vector<std::int32_t> places = pairs.places();
  const FormedPoints points = formed(places);
  PairFilter* const filter = points.filter.get();
  const FilterRows rows = points.form->rows();
  CandidateStore candidates(
      {pairs.num_slots(), candidates_for(work_.k), work_.sides.size(), false},
      stream_);
  const WaitAtEnd wait(stream_);
  candidates.hold_entries();
  candidates.place(places.data(), pairs.num_slots(), stream_);
  candidates.meet_own(points_.ids.data());
  stream_.wait();

  FilterPass pass;
  pass.filter = filter;
  pass.workers = &workers_;
  pass.work.rows = pass.work.columns = rows;
  pass.work.lists = pass.cut.lists = candidates.lists();
  pass.cut.redo = candidates.redo();
  pass.cut.k = static_cast<std::int32_t>(work_.k);
  pass.cut.end_slot = {pairs.num_slots()};
  filter->set_errors(pass.cut, rows, rows, stream_);
  start_candidates(pass.cut.lists, stream_.get());
  set_thresholds(pass.cut, filter->units(pass.cut, stream_), places);
  KnownSchedule schedule(
      pairs.jobs(work_.filter.rows.work, kChunkMet, work_.multiprocessors));
  if (!run_schedule(pass, schedule, {}, stream_)) return false;
  stats_.pairs_filtered = work_.sides.pairs();
  stats_.filter = filter->numbers();
  stats_.pairs_exact =
      candidates.num_candidates(Slot{0}, pass.cut.end_slot, stream_);
  return rerank(pass.cut.lists, places, left);
}

/// A slot's first threshold comes from its point's limit.
void BlockPair::set_thresholds(const Cut& cut, const SimilarityUnits& units,
                               const std::vector<std::int32_t>& places) {
  const std::vector<float> thresholds = thresholds_of_limits(
      metric_, work_.rule, units, places,
      [&](std::int64_t place) { return work_.between.limit(row_at(place)); });
  CUDA_CHECK(cudaMemcpyAsync(cut.lists.thresholds, thresholds.data(),
                             thresholds.size() * sizeof(float),
                             cudaMemcpyHostToDevice, stream_.get()));
  stream_.wait();
}

/// Finds the nearest of the candidates, some slots at a time.
bool BlockPair::rerank(const CandidateLists& lists,
                       const std::vector<std::int32_t>& places,
                       std::vector<std::int32_t>& left) {
  const double of_slot =
      static_cast<double>(lists.capacity) * static_cast<double>(points_.padded);
  const std::int64_t turn = std::min(
      {lists.num_slots, std::max<std::int64_t>(1, kMostEntries / work_.k),
       turn_of(of_slot)});
  ListBuffer nearest(turn, work_.k);
  Batch batch(turn, work_.k, work_.correlation);
  DeviceBuffer<std::int32_t> counts(turn);
  std::vector<std::int32_t> h_counts(static_cast<std::size_t>(turn));
  const WaitAtEnd wait(stream_);
  for (std::int64_t slot = 0; slot < lists.num_slots; slot += turn) {
    const std::int64_t count = std::min(turn, lists.num_slots - slot);
    ShortLists step;
    step.lists = lists;
    step.first_slot = {slot};
    step.end_slot = {slot + count};
    step.rows = points_.rows.data();
    step.sums = points_.sums.data();
    step.padded = points_.padded;
    step.undo = undo_;
    step.nearest = nearest.lists();
    step.counts = counts.data();
    start_short_lists(metric_, step, stream_.get());
    download(h_counts.data(), counts, count, stream_);
    bring_lists(batch, nearest.lists(), count, lists.places + slot,
                points_.rows.data(), points_.sums.data());
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int32_t place = places[static_cast<std::size_t>(slot + s)];
      const std::int32_t size = h_counts[static_cast<std::size_t>(s)];
      if (place < 0) continue;
      if (is_overflowed(size) || is_short(place, size))
        left.push_back(place);
      else
        take(batch, s, place, size);
    }
    if (!workers_.go_on()) return false;
  }
  std::sort(left.begin(), left.end());
  return true;
}

/// Returns whether a list without a limit is incomplete because of NaN sums.
bool BlockPair::is_short(std::int64_t place, std::int64_t size) const {
  const Sides& sides = work_.sides;
  const std::int64_t others =
      place < sides.num_columns ? sides.num_rows : sides.num_columns;
  return size < std::min(work_.k, others) &&
         work_.between.limit(row_at(place)) == HUGE_VAL;
}

/// Computes all pairs of the points at these places with those of `count`
/// places from `first` on, in the contract's doubles. Returns whether to
/// continue.
bool BlockPair::in_doubles(const std::vector<std::int32_t>& places,
                           std::int64_t first, std::int64_t count) {
  const std::int64_t num_rows = static_cast<std::int64_t>(places.size());
  if (num_rows == 0) return true;
  if (work_.filter.usable())
    stats_.rows_recomputed += static_cast<double>(num_rows);
  const std::int64_t most_rows = std::min(
      {kChunkSide, whole_tiles(num_rows),
       std::max(kChunkUnit, kMostEntries / work_.k / kChunkUnit * kChunkUnit)});
  const std::int64_t most_columns = std::min(kChunkSide, whole_tiles(count));
  const std::int64_t padded = points_.padded;
  GatheredRows gathered(most_rows, padded, true);
  DeviceBuffer<std::int32_t> d_places(most_rows);
  DoublePass pass({metric_, padded, work_.k, undo_}, workers_, stream_,
                  most_rows, most_columns);
  Batch batch(most_rows, work_.k, work_.correlation);
  const WaitAtEnd wait(stream_);
  const auto bring = [&](std::int64_t row, std::int64_t some) {
    upload(d_places, places.data() + row, some, stream_);
    Panel rows = gathered.gather(points_, d_places.data(), some, stream_);
    // With two sides, no pair is a point with itself.
    if (!work_.sides.alone) rows.ids = nullptr;
    return rows;
  };
  const auto for_points = [&](auto use) {
    return for_parts(points_.panel(Place{first}, count), padded, most_columns,
                     stream_, use);
  };
  const auto take_lists = [&](std::int64_t row, const Panel& rows) {
    bring_lists(batch, pass.view(), rows.count, nullptr, rows.rows, rows.sums);
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const std::int32_t* const index = batch.h_index.data() + i * work_.k;
      const std::int64_t size =
          std::find(index, index + work_.k, kNoPoint) - index;
      take(batch, i, places[static_cast<std::size_t>(row + i)], size);
    }
    return true;
  };
  const bool go_on = pass.run(num_rows, bring, for_points, take_lists);
  stats_.pairs_exact += pass.pairs();
  return go_on;
}

/// Copies the first `count` lists to the host. row_places: of each list its row
/// of `rows`, device memory; null: in order. Waits for the stream.
void BlockPair::bring_lists(Batch& batch, const Lists& lists,
                            std::int64_t count, const std::int32_t* row_places,
                            const double* rows, const double* row_sums) {
  const std::int64_t entries = count * work_.k;
  if (work_.correlation) {
    Slice slice;
    slice.lists = lists;
    slice.transposed = false;
    slice.size = entries;
    slice.correlation = batch.correlation.data();
    start_correlations(slice, points_.correlations(rows, row_sums, row_places),
                       stream_.get());
    download(batch.h_correlation.data(), batch.correlation, entries, stream_);
  }
  const auto download_list = [&](auto& to, const auto* from) {
    CUDA_CHECK(cudaMemcpyAsync(
        to.data(), from, static_cast<std::size_t>(entries) * sizeof(*from),
        cudaMemcpyDeviceToHost, stream_.get()));
  };
  download_list(batch.h_distance, lists.distance);
  download_list(batch.h_index, lists.index);
  stream_.wait();
}

void BlockPair::take(const Batch& batch, std::int64_t list, std::int64_t place,
                     std::int64_t size) {
  const std::int64_t at = list * work_.k;
  found_.take(row_at(place), size, batch.h_distance.data() + at,
              batch.h_index.data() + at,
              work_.correlation ? batch.h_correlation.data() + at : nullptr);
}

}  // namespace cuda
}  // namespace fsknn
