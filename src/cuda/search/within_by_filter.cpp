#include "cuda/search/within_by_filter.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/poll.hpp"
#include "core/rows/made_rows.hpp"
#include "core/search/plan.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/plan/filter_shape.hpp"
#include "cuda/prepare/preparer.hpp"

namespace fsknn {
namespace cuda {
namespace {

// The number of candidates of a launch: 32 MiB.
constexpr std::int64_t kMostCandidatePairs = std::int64_t{1} << 22;
// At this share of pairs, all in doubles by tiles take as long as the
// candidates one by one, whose rows are scattered in memory.
constexpr double kDense = 1.0 / 32;

FilterRounds rounds_within(const WithinWork& work, int own, int count,
                           int multiprocessors) {
  const FilterBlocks columns(work.columns.size());
  const std::int64_t row_blocks =
      work.graph() ? columns.count
                   : query_slots(work.rows.size()) / kFilterBlock;
  const std::int64_t first = row_blocks * own / count;
  const std::int64_t end = row_blocks * (own + 1) / count;
  FilterRounds rounds;
  rounds.num_blocks = columns.count;
  rounds.first_slab = first * kSlabsABlock;
  rounds.num_slabs = (end - first) * kSlabsABlock;
  rounds.symmetric = work.graph();
  rounds.depth = work.filter.rows.work;
  rounds.chunk_size =
      work.request.chunk_size > 0 ? work.request.chunk_size : kChunkMet;
  rounds.multiprocessors = multiprocessors;
  return rounds;
}

Sought sought(const WithinWork& work) {
  Sought all;
  all.num_points = work.columns.size();
  all.forced = work.filter.forced;
  double limit = -HUGE_VAL;
  for (const double own : work.limits) limit = std::max(limit, own);
  all.limit = work.rule.before_scaling(limit);
  return all;
}

}  // namespace

FilterChoice filter_within(const WithinWork& work, const GpuFacts& facts) {
  FilterAsked asked(
      work.graph() ? FilteredSearch::within : FilteredSearch::queries_within,
      work.request);
  asked.num_points = work.columns.size();
  asked.num_rows = work.rows.size();
  asked.num_features = work.columns.num_features;
  return choose_filter(asked, facts);
}

double bytes_by_filter(const WithinWork& work, const GpuFacts& facts) {
  const Request& request = work.request;
  const bool ranked = request.metric->row_form == RowForm::ranked;
  const double form = static_cast<double>(work.filter.rows.slot_bytes()) + 8;
  const auto bytes_of = [&](const PlacedPoints& points, std::int64_t slots) {
    const std::int64_t all = points.source->num_points();
    return static_cast<double>(whole_tiles(points.size())) *
               (static_cast<double>(points.padded) * 8 + 12) +
           4.0 * static_cast<double>(all) + form * static_cast<double>(slots) +
           bytes_preparing(all, points.num_features, ranked) +
           bytes_made_from(*points.source);
  };
  double bytes =
      bytes_of(work.columns, FilterBlocks(work.columns.size()).num_slots());
  if (!work.graph())
    bytes += bytes_of(work.rows, query_slots(work.rows.size()));
  if (request.covariates != nullptr) bytes += request.covariates->bytes();
  return bytes +
         8.0 * static_cast<double>(work.rows.size() + work.columns.size()) +
         static_cast<double>(facts.multiprocessors) *
             work.filter.rows.bytes_sums +
         static_cast<double>(kMostCandidatePairs) * sizeof(SlotPair) +
         static_cast<double>(kMostFound) * sizeof(FoundPair);
}

std::int64_t WithinByFilter::num_pieces(const WithinWork& work, int own,
                                        int count) {
  return WithinJobs(rounds_within(work, own, count, 1), kMostCandidatePairs)
      .num_tiles();
}

WithinByFilter::WithinByFilter(const WithinWork& work, Workers& workers,
                               int own, int count)
    : work_(work),
      share_(1.0 / count),
      jobs_(rounds_within(work, own, count, multiprocessors_here()),
            kMostCandidatePairs),
      stored_(work.store->get(work.stored(), stream_)),
      column_places_(FilterBlocks(work.columns.size()).num_slots()),
      row_places_(work.graph() ? 0 : query_slots(work.rows.size())),
      thresholds_(work.graph() ? column_places_.size() : row_places_.size()),
      column_thresholds_(work.graph() ? 0 : column_places_.size()),
      candidates_(kMostCandidatePairs),
      num_candidates_(1),
      found_(work, stream_) {
  stored_.hold_form(work.filter.rows, work.rule.undo().scale, sought(work),
                    stream_);
  if (!work.graph()) make_rows();
  set_thresholds();

  pass_.filter = &stored_.filter();
  pass_.workers = &workers;
  pass_.work.columns = stored_.form().rows();
  pass_.work.rows = work.graph() ? pass_.work.columns : query_form_->rows();
  CandidatePairs& pairs = pass_.work.pairs;
  pairs.row_thresholds = thresholds_.data();
  pairs.column_thresholds =
      work.graph() ? thresholds_.data() : column_thresholds_.data();
  pairs.graph = work.graph();
  pairs.pairs = candidates_.data();
  pairs.capacity = candidates_.size();
  pairs.count = num_candidates_.data();

  const DevicePoints& columns = stored_.points();
  const DevicePoints& rows = work.graph() ? columns : *queries_;
  reranked_.column_places = column_places_.data();
  reranked_.row_places =
      work.graph() ? column_places_.data() : row_places_.data();
  reranked_.rows = rows.rows.data();
  reranked_.row_sums = rows.sums.data();
  reranked_.columns = columns.rows.data();
  reranked_.column_sums = columns.sums.data();
  reranked_.padded = columns.padded;
  reranked_.undo = work.rule.undo();
  reranked_.within = found_.view();
}

/// Makes the queries in doubles and in the filter's form.
void WithinByFilter::make_rows() {
  queries_ = std::make_unique<DevicePoints>(
      work_.rows, work_.prepare, work_.num_threads,
      whole_tiles(work_.rows.size()), stream_);
  query_form_ =
      std::make_unique<FilterForm>(stored_.filter(), row_places_.size());
  query_form_->clear(stream_);
  query_form_->make_rows(stored_.filter(), queries_->prepared(),
                         counting(0, work_.rows.size()), stream_);
}

void WithinByFilter::set_thresholds() {
  FilterRows columns = stored_.form().rows();
  FilterRows rows = work_.graph() ? columns : query_form_->rows();
  Cut cut;
  stored_.filter().set_errors(cut, rows, columns, stream_);
  const SimilarityUnits units = stored_.filter().units(cut, stream_);
  const auto thresholds_of = [&](const std::vector<std::int32_t>& places,
                                 const std::vector<double>& limits) {
    return thresholds_of_limits(
        *work_.request.metric, work_.rule, units, places,
        [&](std::int32_t place) {
          return limits.empty() ? -HUGE_VAL
                                : limits[static_cast<std::size_t>(place)];
        });
  };

  const std::vector<std::int32_t> places =
      FilterBlocks(work_.columns.size()).places();
  upload(column_places_, places.data(), column_places_.size(), stream_);
  std::vector<std::int32_t> row_places;
  std::vector<float> of_rows, of_columns;
  if (work_.graph()) {
    of_rows = thresholds_of(places, work_.limits);
  } else {
    row_places = counting(0, work_.rows.size());
    row_places.resize(static_cast<std::size_t>(row_places_.size()), -1);
    upload(row_places_, row_places.data(), row_places_.size(), stream_);
    of_rows = thresholds_of(row_places, work_.limits);
    of_columns = thresholds_of(places, work_.column_limits);
    upload(column_thresholds_, of_columns.data(), column_thresholds_.size(),
           stream_);
  }
  upload(thresholds_, of_rows.data(), thresholds_.size(), stream_);
  stream_.wait();
}

void WithinByFilter::run(WithinCollector& collector, std::atomic<bool>* dense) {
  WithinCollector::Taker taker(collector);
  AroundLaunch around;
  around.before = [&](const FilterJobs&, std::size_t) {
    clear_from(num_candidates_, 0, stream_);
  };
  around.after = [&](std::size_t) -> std::int64_t {
    const std::int64_t count = num_candidates();
    if (dense != nullptr &&
        (*dense || static_cast<double>(count) > kDense * jobs_.pairs())) {
      *dense = true;
      return AroundLaunch::kStop;
    }
    const std::int64_t tiles = jobs_.tiles();
    if (!jobs_.had(count)) return 0;
    rerank(count, collector, taker);
    return tiles;
  };
  if (!run_schedule(pass_, jobs_, around, stream_)) return;
  const double n = static_cast<double>(work_.columns.size());
  stats_.filter = stored_.filter().numbers();
  stats_.pairs_filtered =
      share_ * n *
      (work_.graph() ? (n - 1) / 2 : static_cast<double>(work_.rows.size()));
}

/// Returns the number of candidates of a launch, which may exceed the room for
/// them.
std::int64_t WithinByFilter::num_candidates() const {
  return static_cast<std::int64_t>(downloaded(num_candidates_.data(), stream_));
}

void WithinByFilter::rerank(std::int64_t count, WithinCollector& collector,
                            WithinCollector::Taker& taker) {
  const std::int64_t turn =
      std::min(kMostFound, turn_of(static_cast<double>(reranked_.padded)));
  for (std::int64_t first = 0; first < count; first += turn) {
    poll();
    reranked_.pairs = candidates_.data() + first;
    reranked_.count = std::min(turn, count - first);
    found_.clear_count(stream_);
    start_reranking_pairs(*work_.request.metric, reranked_, stream_.get());
    found_.take(found_.counted(stream_), collector, taker, stream_);
  }
  stats_.pairs_exact += static_cast<double>(count);
}

}  // namespace cuda
}  // namespace fsknn
