#include "cuda/missing/device_masked.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/base/pieces.hpp"
#include "core/contract/masked.hpp"
#include "core/rows/masked_points.hpp"
#include "core/rows/prepared.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/resources.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/used_devices.hpp"
#include "cuda/device/workers.hpp"
#include "cuda/exact/answer.hpp"
#include "cuda/missing/difference_bound.hpp"
#include "cuda/missing/find_masked.hpp"
#include "cuda/plan/all_pairs.hpp"
#include "cuda/plan/choose_filter.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Lists, candidates and thresholds of the rows of a batch take about this many
// bytes.
constexpr double kBatchBytes = 512e6;
// Features of pairs in one launch: a fifth of a second on the slowest supported
// GPUs, so that interrupts are noticed.
constexpr double kLaunchWork = 1e12, kProductWork = 4e12;
// The kernel's own rounding after the sums, each of numbers at most 1, and that
// of z (cpu/missing/masked_filter.hpp, "Errors").
constexpr double kSlack = 4e-6;

MaskedPlan plan_masked(const Request& request, const PlacedPoints& rows,
                       const PlacedPoints& columns, const UsedDevices& gpus) {
  MaskedPlan plan;
  const std::int64_t k = request.k;
  FilterAsked asked(FilteredSearch::pairwise, request);
  asked.num_points = columns.size();
  asked.num_rows = rows.size();
  asked.num_features = columns.num_features;
  asked.k = k;
  plan.form = choose_filter(asked, facts_of(gpus.all(), 0)).rows.form;
  plan.half_depth = (columns.num_features + kProductDepth - 1) / kProductDepth *
                    kProductDepth;
  plan.depth =
      (columns.num_features + kMaskedDepth - 1) / kMaskedDepth * kMaskedDepth;
  plan.capacity = std::min(columns.size(), std::max<std::int64_t>(512, 2 * k));
  // All pairs of the first round are candidates, so they must fit in the lists.
  plan.first_columns =
      std::min(plan.capacity, std::max<std::int64_t>(64, 2 * k));
  const double row_bytes =
      static_cast<double>(plan.capacity) * 4 + static_cast<double>(k) * 20 + 8;
  plan.batch_rows = std::max<std::int64_t>(
      64, std::min<std::int64_t>(
              {rows.size(), std::int64_t{1} << 18,
               static_cast<std::int64_t>(kBatchBytes / row_bytes)}));
  // A float32 sum of d products errs by at most g = d 2^-24 / (1 - d 2^-24) of
  // the sum of their magnitudes. For P and X, of length-1 rows, this is g. For
  // A it is the root of n times that, so that A B / n errs by 2 g + g^2, and
  // A^2 / n too. X has one more rounding a product, that of the squares.
  const double u = static_cast<double>(plan.depth + 1) * 0x1p-24;
  const double g = u < 0.5 ? u / (1.0 - u) : 2.0;
  plan.error = static_cast<float>((3.0 * g + g * g) * 1.001 + kSlack +
                                  2.0 * rounding_of_sums(columns.padded));
  plan.square_error = static_cast<float>((3.0 * g + g * g) * 1.001 + kSlack);
  plan.shrink = difference_shrink(plan.depth);
  return plan;
}

/// The inputs that all devices of a search read.
struct MaskedSearch {
  const Request& request;
  const MaskedRule& rule;
  const MaskedPlan& plan;
  const PlacedPoints& rows;
  const PlacedPoints& columns;  ///< the same object for a graph
  const std::vector<std::int32_t>& own_ids;
  const Neighbours& out;
  int num_threads;  ///< of each device

  std::int64_t words() const { return (columns.num_features + 63) / 64; }
};

/// The work of one device: some rows against all columns.
class MaskedSegment {
 public:
  MaskedSegment(const MaskedSearch& search, std::int64_t most_rows,
                Workers& workers)
      : search_(search),
        workers_(workers),
        filtered_(search.plan.form != NumberForm::none),
        by_products_(search.plan.form == NumberForm::half),
        batch_rows_(std::min(search.plan.batch_rows, most_rows)),
        columns_(search.columns, search.rule, search.plan, search.num_threads,
                 stream_),
        own_ids_(search.rows.size()),
        thresholds_(batch_rows_),
        counts_(batch_rows_),
        candidates_(batch_rows_ * search.plan.capacity),
        list_distance_(batch_rows_ * search.request.k),
        list_index_(batch_rows_ * search.request.k),
        rest_(batch_rows_ + 1),
        pairs_exact_(1),
        pairs_so_far_(2),
        answer_(search.out, batch_rows_, search.request.k, search.num_threads,
                true) {
    if (&search.rows != &search.columns)
      rows_ = std::make_unique<DeviceMasked>(
          search.rows, search.rule, search.plan, search.num_threads, stream_);
    if (!search.rule.correlates()) {
      units_ = columns_.units(search.rule, stream_);
      columns_.take_units(units_, stream_);
      if (rows_ != nullptr) rows_->take_units(units_, stream_);
    }
    upload(own_ids_, search.own_ids.data(), own_ids_.size(), stream_);
    clear_from(pairs_exact_, 0, stream_);
    make_filter_rows();
    work_.padded = search.columns.padded;
    work_.words = search.words();
    work_.depth = search.plan.depth;
    work_.half_depth = search.plan.half_depth;
    work_.own_ids = own_ids_.data();
    work_.terms = search.rule.terms();
    work_.undo = search.rule.distances().undo().scale;
    work_.redo = search.rule.distances().redo();
    work_.unit = units_.by;
    work_.shrink = search.plan.shrink;
    work_.sign = search.request.metric->sign;
    work_.error = search.plan.error;
    work_.square_error = search.plan.square_error;
    work_.thresholds = thresholds_.data();
    work_.counts = counts_.data();
    work_.candidates = candidates_.data();
    work_.capacity = search.plan.capacity;
    work_.lists = {list_distance_.data(), list_index_.data(), search.request.k};
    work_.rest = rest_.data();
    work_.pairs_exact = pairs_exact_.data();
    if (search.out.correlation == nullptr) return;
    places_ = DeviceBuffer<std::int32_t>(
        static_cast<std::int64_t>(search.columns.order.place.size()));
    upload(places_, search.columns.order.place.data(), places_.size(), stream_);
    correlations_ = DeviceBuffer<double>(list_distance_.size());
  }
  MaskedSegment(const MaskedSegment&) = delete;
  MaskedSegment& operator=(const MaskedSegment&) = delete;
  /// After a failure, work in progress still uses the buffers.
  ~MaskedSegment() { cudaStreamSynchronize(stream_.get()); }

  void run(std::int64_t first, std::int64_t end) {
    workers_.tell_chosen(stats_.filter);
    for (std::int64_t row0 = first; row0 < end; row0 += batch_rows_) {
      work_.row0 = row0;
      work_.num_rows = std::min(batch_rows_, end - row0);
      if (!batch()) return;
      emit();
    }
    stats_.pairs_exact =
        static_cast<double>(downloaded(pairs_exact_.data(), stream_));
    stats_.rows_short = static_cast<double>(answer_.rows_short());
    stats_.seconds_emit = answer_.seconds();
  }

  const Stats& stats() const { return stats_; }

 private:
  /// Processes all columns in rounds. Returns whether to continue.
  bool batch() {
    const std::int64_t num_columns = search_.columns.size();
    const float infinite = std::numeric_limits<float>::infinity();
    const std::vector<float> none(
        static_cast<std::size_t>(work_.num_rows),
        search_.rule.correlates() ? -infinite : infinite);
    upload(thresholds_, none.data(), work_.num_rows, stream_);
    clear_from(counts_, 0, stream_);
    start_clear(work_.lists, work_.num_rows, stream_.get());
    stream_.wait();  // `none` is freed
    const double row_work =
        static_cast<double>(work_.num_rows) * static_cast<double>(work_.depth);
    for (std::int64_t seen = 0; seen < num_columns;) {
      Launch& launch = launches_[num_launches_ % 2];
      launch.done.wait();
      if (num_launches_ > 1 && by_products_ && keeps_too_many(launch)) {
        by_products_ = false;
        make_filter_rows();
      }
      const std::int64_t most = std::max<std::int64_t>(
          kLeastColumns,
          static_cast<std::int64_t>(
              (by_products_ ? kProductWork : kLaunchWork) / row_work));
      const std::int64_t wanted =
          seen == 0 ? search_.plan.first_columns : std::min(seen, most);
      work_.column0 = seen;
      work_.num_columns = std::min(wanted, num_columns - seen);
      start_filter();
      start_masked_exact(work_, stream_.get());
      launch.has_thresholds = seen > 0;
      launch.rows = static_cast<double>(work_.num_rows);
      launch.pairs = launch.rows * static_cast<double>(work_.num_columns);
      download(pairs_so_far_.data() + num_launches_ % 2, pairs_exact_, 1,
               stream_);
      launch.done.record(stream_);
      ++num_launches_;
      seen += work_.num_columns;
      if (filtered_) {
        stats_.pairs_filtered += static_cast<double>(work_.num_rows) *
                                 static_cast<double>(work_.num_columns);
      }
      if (!workers_.go_on()) return false;
    }
    return true;
  }

  void start_filter() {
    if (!filtered_)
      ask_for_all();
    else if (by_products_)
      start_product_filter(work_, stream_.get());
    else if (search_.rule.correlates())
      start_masked_filter(work_, stream_.get());
    else
      start_difference_filter(work_, stream_.get());
  }

  /// Makes the rows that the filter reads.
  void make_filter_rows() {
    if (filtered_)
      stats_.filter =
          by_products_ ? FilterNumbers::float16 : FilterNumbers::float32;
    const auto make = [&](DeviceMasked& points) {
      if (!filtered_) return;
      if (by_products_)
        points.make_halves(stream_);
      else
        points.make_floats(search_.rule.terms().accumulation ==
                               Accumulation::squared_difference,
                           stream_);
    };
    make(columns_);
    work_.columns = columns_.view();
    if (rows_ != nullptr) make(*rows_);
    work_.rows = rows_ != nullptr ? rows_->view() : work_.columns;
  }

  struct Launch {
    Event done;
    bool has_thresholds = false;
    double rows = 0.0, pairs = 0.0;
  };

  /// Examines a finished launch, the last but one. Returns whether the exact
  /// step had so many pairs that a filter which drops more pays. One pair takes
  /// it about as long as 16 sums in float32; about k a row are necessary, as
  /// columns double.
  bool keeps_too_many(const Launch& launch) {
    const double so_far =
        static_cast<double>(pairs_so_far_.data()[num_launches_ % 2]);
    const double kept = so_far - pairs_before_;
    pairs_before_ = so_far;
    return launch.has_thresholds &&
           kept >
               launch.pairs / 16.0 +
                   4.0 * static_cast<double>(search_.request.k) * launch.rows;
  }

  /// Sets counts above any capacity, so that every row is compared with all
  /// columns.
  void ask_for_all() {
    CUDA_CHECK(cudaMemsetAsync(
        counts_.data(), 0x7f,
        static_cast<std::size_t>(work_.num_rows) * sizeof(std::int32_t),
        stream_.get()));
  }

  /// Copies the batch's lists to the answer.
  void emit() {
    CorrelationOf given;
    given.given = correlations_.data();
    if (search_.out.correlation != nullptr)
      start_masked_correlations(work_, places_.data(), correlations_.data(),
                                stream_.get());
    answer_.write(work_.lists, work_.num_rows,
                  search_.rows.order.id.data() + work_.row0, given, stream_);
  }

  static constexpr std::int64_t kLeastColumns = 64;

  const MaskedSearch& search_;
  Workers& workers_;
  const bool filtered_;
  bool by_products_;
  const std::int64_t batch_rows_;
  Stream stream_;
  MaskedUnits units_;  ///< differences
  DeviceMasked columns_;
  std::unique_ptr<DeviceMasked> rows_;
  DeviceBuffer<std::int32_t> own_ids_;
  DeviceBuffer<float> thresholds_;
  DeviceBuffer<std::int32_t> counts_, candidates_;
  DeviceBuffer<double> list_distance_;
  DeviceBuffer<std::int32_t> list_index_, rest_;
  DeviceBuffer<unsigned long long> pairs_exact_;
  PinnedBuffer<unsigned long long> pairs_so_far_;  ///< after each launch
  DeviceBuffer<std::int32_t> places_;
  DeviceBuffer<double> correlations_;
  AnswerWriter answer_;
  MaskedWork work_;
  // Two rounds are in progress at a time, so that the device never waits for
  // the host.
  Launch launches_[2];
  std::int64_t num_launches_ = 0;
  double pairs_before_ = 0.0;
  Stats stats_;
};

/// Estimates the memory of a segment before it is made.
double bytes_of(const MaskedSearch& search) {
  const MaskedPlan& plan = search.plan;
  const double row = static_cast<double>(search.columns.padded) * 8 +
                     static_cast<double>(plan.depth) * 4 +
                     (plan.form == NumberForm::half
                          ? static_cast<double>(plan.half_depth) * 2 + 16
                          : 0.0) +
                     static_cast<double>(search.words()) * 8 + 16;
  const double points = static_cast<double>(search.columns.size()) +
                        (&search.rows == &search.columns
                             ? 0.0
                             : static_cast<double>(search.rows.size()));
  return points * row +
         static_cast<double>(plan.batch_rows) *
             (static_cast<double>(plan.capacity) * 4 +
              static_cast<double>(search.request.k) * 20 + 12) +
         bytes_answer(plan.batch_rows, search.request.k) +
         bytes_preparing(search.columns.source->num_points(),
                         search.columns.num_features, false);
}

void check_fits(const MaskedSearch& search, const Device& gpu) {
  const double limit = search.request.max_device_memory;
  const double usable =
      limit > 0 ? std::min(limit, gpu.bytes_free) : gpu.bytes_free;
  const double bytes = bytes_of(search);
  if (bytes > usable)
    throw PlanFailure(PlanFailure::Held::all_points, bytes, usable,
                      gpu.cuda_id);
}

std::vector<std::int32_t> own_ids_of(const Request& request,
                                     const PlacedPoints& rows, bool graph) {
  if (graph) return rows.order.id;
  std::vector<std::int32_t> own = self_by_place(request, rows.order);
  if (own.empty()) own.assign(static_cast<std::size_t>(rows.size()), -1);
  return own;
}

void run_segments(const MaskedSearch& search, const UsedDevices& gpus,
                  Progress* progress, Stats& stats) {
  const int count = static_cast<int>(
      std::min<std::int64_t>(gpus.count(), search.rows.size()));
  const std::int64_t n = search.rows.size();
  const double rounds =
      2.0 + std::log2(static_cast<double>(search.columns.size()) /
                      static_cast<double>(search.plan.first_columns));
  const double batches = std::ceil(static_cast<double>(n) /
                                   static_cast<double>(search.plan.batch_rows));
  Workers workers(progress, static_cast<std::int64_t>(rounds * batches) + 1);
  run_parts(workers, gpus, count, stats, [&](int w) {
    const std::int64_t first = n * w / count, end = n * (w + 1) / count;
    const Clock::time_point start = Clock::now();
    MaskedSegment segment(search, end - first, workers);
    segment.run(first, end);
    Stats part = segment.stats();
    part.seconds_device = seconds_since(start);
    return part;
  });
}

}  // namespace

void find_masked(const Request& request, const RowSource& points,
                 const RowSource* queries, const Neighbours& out,
                 Progress* progress, Stats* stats) {
  const Clock::time_point start = Clock::now();
  const UsedDevices gpus(request.devices);
  const MaskedRule rule(request, points, queries, progress);
  if (rule.has_tables())
    throw std::logic_error("GPUs have no tables over common samples");
  const PlacedPoints columns(points, request.skip, true);
  PlacedPoints own_rows;
  if (queries != nullptr)
    own_rows = PlacedPoints(*queries, request.query_skip, false);
  const PlacedPoints& rows = queries != nullptr ? own_rows : columns;
  for (std::int64_t i = 0; i < out.rows; ++i)
    if (columns.size() == 0 ||
        rows.order.place[static_cast<std::size_t>(i)] < 0)
      emit_missing(out, AnswerRow::of(i), request.k);
  if (rows.size() == 0 || columns.size() == 0) return;

  const MaskedPlan plan = plan_masked(request, rows, columns, gpus);
  const std::vector<std::int32_t> own_ids =
      own_ids_of(request, rows, queries == nullptr);
  const MaskedSearch search = {
      request,
      rule,
      plan,
      rows,
      columns,
      own_ids,
      out,
      std::max(1, request.num_threads / static_cast<int>(gpus.count()))};
  for (const Device& gpu : gpus.all()) check_fits(search, gpu);
  const double seconds_prepare = seconds_since(start);
  Stats found;
  run_segments(search, gpus, progress, found);
  note(found, gpus, start, seconds_prepare, stats);
}

}  // namespace cuda
}  // namespace fsknn
