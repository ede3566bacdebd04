#include "cuda/missing/masked_kernels.cuh"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/masked.hpp"
#include "core/masked_points.hpp"
#include "core/pieces.hpp"
#include "core/prepared.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/check.cuh"
#include "cuda/device/resources.cuh"
#include "cuda/device/transfer.cuh"
#include "cuda/device/used_devices.cuh"
#include "cuda/device/workers.hpp"
#include "cuda/missing/difference_bound.hpp"
#include "cuda/missing/find_masked.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Lists, candidates and thresholds of the rows of a batch take about this much.
constexpr double kBatchBytes = 512e6;
// Features of pairs in one launch: a fifth of a second of the slowest GPUs
// here, so that the user's wish to stop is heard.
constexpr double kLaunchWork = 1e12;
// The kernel's own roundings after the sums, each of numbers at most 1, and
// those of z (cpu/masked_filter.hpp, "Errors").
constexpr double kSlack = 4e-6;

/// The numbers of a search that the host chooses.
struct MaskedPlan {
  std::int64_t depth, capacity, first_columns, batch_rows;
  float error, square_error;  ///< correlations
  float shrink;               ///< differences
};

MaskedPlan plan_masked(const Request& request, const MaskedPoints& rows,
                       const MaskedPoints& columns) {
  MaskedPlan plan;
  const std::int64_t k = request.k;
  plan.depth =
      (columns.num_features + kMaskedDepth - 1) / kMaskedDepth * kMaskedDepth;
  plan.capacity = std::min(columns.size(), std::max<std::int64_t>(512, 2 * k));
  // All pairs of the first round are candidates: no more than the lists hold.
  plan.first_columns =
      std::min(plan.capacity, std::max<std::int64_t>(64, 2 * k));
  const double row_bytes =
      static_cast<double>(plan.capacity) * 4 + static_cast<double>(k) * 20 + 8;
  plan.batch_rows = std::max<std::int64_t>(
      64, std::min<std::int64_t>(
              {rows.size(), std::int64_t{1} << 18,
               static_cast<std::int64_t>(kBatchBytes / row_bytes)}));
  // A float32 sum of d products errs by at most g = d 2^-24 / (1 - d 2^-24) of
  // the sum of their magnitudes: of P and X, of length-1 rows, g; of A, the
  // root of n times that, so that A B / n errs by 2 g + g^2 and A^2 / n too. X
  // has one rounding more a product, the squares'.
  const double u = static_cast<double>(plan.depth + 1) * 0x1p-24;
  const double g = u < 0.5 ? u / (1.0 - u) : 2.0;
  plan.error = static_cast<float>((3.0 * g + g * g) * 1.001 + kSlack +
                                  2.0 * rounding_of_sums(columns.padded));
  plan.square_error = static_cast<float>((3.0 * g + g * g) * 1.001 + kSlack);
  plan.shrink = difference_shrink(plan.depth);
  return plan;
}

/// Whether pairs are filtered: by products or differences, or not at all.
bool is_filtered(const MetricEntry& metric) {
  switch (metric.filter) {
    case FilterKind::none: return false;
    case FilterKind::product:
    case FilterKind::difference: return true;
    case FilterKind::largest:
    case FilterKind::overlap:
    case FilterKind::bits:
      throw std::logic_error("no such pairs are made of common samples");
  }
  throw_unknown("filter", static_cast<int>(metric.filter));
}

/// Points on the current device.
class DeviceMasked {
 public:
  /// units: null for correlations.
  DeviceMasked(const MaskedPoints& points, std::int64_t depth,
               const MaskedUnits* units, bool squared, const Stream& stream)
      : rows_(points.rows.size()),
        masks_(points.masks.size()),
        z_(points.size() * depth),
        ids_(points.size()) {
    upload(rows_, points.rows.data(), rows_.size(), stream);
    upload(masks_, points.masks.data(), masks_.size(), stream);
    upload(ids_, points.order.id.data(), ids_.size(), stream);
    if (units == nullptr) {
      start_masked_rows(rows_.data(), points.size(), points.num_features,
                        points.padded, depth, z_.data(), stream.get());
      return;
    }
    errors_ = DeviceBuffer<float>(points.size());
    centre_ = DeviceBuffer<double>(points.num_features);
    upload(centre_, units->centre.data(), centre_.size(), stream);
    start_difference_rows(
        {rows_.data(), points.size(), points.num_features, points.padded, depth,
         centre_.data(), units->by, squared, z_.data(), errors_.data()},
        stream.get());
  }
  MaskedRows view() const {
    return {rows_.data(), masks_.data(), z_.data(), errors_.data(),
            ids_.data()};
  }

 private:
  DeviceBuffer<double> rows_;
  DeviceBuffer<std::uint64_t> masks_;
  DeviceBuffer<float> z_, errors_;
  DeviceBuffer<double> centre_;
  DeviceBuffer<std::int32_t> ids_;
};

/// What all devices of a search read.
struct MaskedSearch {
  const Request& request;
  const MaskedRule& rule;
  const MaskedUnits* units;  ///< differences; else null
  const MaskedPlan& plan;
  const MaskedPoints& rows;
  const MaskedPoints& columns;  ///< the same object for a graph
  const std::vector<std::int32_t>& own_ids;
  const Neighbours& out;
};

/// The work of one device: some rows against all columns.
class MaskedSegment {
 public:
  MaskedSegment(const MaskedSearch& search, std::int64_t most_rows,
                Workers& workers)
      : search_(search),
        workers_(workers),
        filtered_(is_filtered(*search.request.metric)),
        batch_rows_(std::min(search.plan.batch_rows, most_rows)),
        columns_(on_device(search.columns)),
        own_ids_(search.rows.size()),
        thresholds_(batch_rows_),
        counts_(batch_rows_),
        candidates_(batch_rows_ * search.plan.capacity),
        list_distance_(batch_rows_ * search.request.k),
        list_index_(batch_rows_ * search.request.k),
        pairs_exact_(1) {
    const bool symmetric = &search.rows == &search.columns;
    if (!symmetric)
      rows_ = std::make_unique<DeviceMasked>(on_device(search.rows));
    upload(own_ids_, search.own_ids.data(), own_ids_.size(), stream_);
    clear_from(pairs_exact_, 0, stream_);
    work_.columns = columns_.view();
    work_.rows = symmetric ? work_.columns : rows_->view();
    work_.padded = search.columns.padded;
    work_.words = search.columns.words;
    work_.depth = search.plan.depth;
    work_.own_ids = own_ids_.data();
    work_.terms = search.rule.terms();
    work_.undo = search.rule.distances().undo();
    work_.redo = search.rule.distances().redo();
    if (search.units != nullptr) work_.unit = search.units->by;
    work_.shrink = search.plan.shrink;
    work_.sign = search.request.metric->sign;
    work_.error = search.plan.error;
    work_.square_error = search.plan.square_error;
    work_.thresholds = thresholds_.data();
    work_.counts = counts_.data();
    work_.candidates = candidates_.data();
    work_.capacity = search.plan.capacity;
    work_.lists = {list_distance_.data(), list_index_.data(), search.request.k};
    work_.pairs_exact = pairs_exact_.data();
    if (search.out.correlation == nullptr) return;
    places_ = DeviceBuffer<std::int32_t>(
        static_cast<std::int64_t>(search.columns.order.place.size()));
    upload(places_, search.columns.order.place.data(), places_.size(), stream_);
    correlations_ = DeviceBuffer<double>(list_distance_.size());
  }
  MaskedSegment(const MaskedSegment&) = delete;
  MaskedSegment& operator=(const MaskedSegment&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~MaskedSegment() { cudaStreamSynchronize(stream_.get()); }

  void run(std::int64_t first, std::int64_t end) {
    for (std::int64_t row0 = first; row0 < end; row0 += batch_rows_) {
      work_.row0 = row0;
      work_.num_rows = std::min(batch_rows_, end - row0);
      if (!batch()) return;
      emit();
    }
    unsigned long long pairs = 0;
    download(&pairs, pairs_exact_, 1, stream_);
    stream_.wait();
    stats_.pairs_exact = static_cast<double>(pairs);
  }

  const Stats& stats() const { return stats_; }

 private:
  /// All columns in rounds. Returns whether to go on.
  bool batch() {
    const std::int64_t num_columns = search_.columns.size();
    const float infinite = std::numeric_limits<float>::infinity();
    const std::vector<float> none(
        static_cast<std::size_t>(work_.num_rows),
        search_.rule.correlates() ? -infinite : infinite);
    upload(thresholds_, none.data(), work_.num_rows, stream_);
    clear_from(counts_, 0, stream_);
    start_clear(work_.lists, work_.num_rows, stream_.get());
    stream_.wait();  // `none` goes
    const double row_work =
        static_cast<double>(work_.num_rows) * static_cast<double>(work_.depth);
    const std::int64_t most = std::max<std::int64_t>(
        kLeastColumns, static_cast<std::int64_t>(kLaunchWork / row_work));
    for (std::int64_t seen = 0; seen < num_columns;) {
      const std::int64_t wanted =
          seen == 0 ? search_.plan.first_columns : std::min(seen, most);
      work_.column0 = seen;
      work_.num_columns = std::min(wanted, num_columns - seen);
      Event& done = done_[num_launches_++ % 2];
      done.wait();
      if (!filtered_)
        ask_for_all();
      else if (search_.rule.correlates())
        start_masked_filter(work_, stream_.get());
      else
        start_difference_filter(work_, stream_.get());
      start_masked_exact(work_, stream_.get());
      done.record(stream_);
      seen += work_.num_columns;
      if (filtered_)
        stats_.pairs_filtered += static_cast<double>(work_.num_rows) *
                                 static_cast<double>(work_.num_columns);
      if (!workers_.go_on()) return false;
    }
    return true;
  }

  DeviceMasked on_device(const MaskedPoints& points) const {
    return DeviceMasked(
        points, search_.plan.depth, search_.units,
        search_.rule.terms().accumulation == Accumulation::squared_difference,
        stream_);
  }

  /// Counts above any capacity: of every row, all columns.
  void ask_for_all() {
    CUDA_CHECK(cudaMemsetAsync(
        counts_.data(), 0x7f,
        static_cast<std::size_t>(work_.num_rows) * sizeof(std::int32_t),
        stream_.get()));
  }

  /// The batch's lists to the answer.
  void emit() {
    const std::int64_t k = search_.request.k, size = work_.num_rows * k;
    std::vector<double> distance(static_cast<std::size_t>(size)), r;
    std::vector<std::int32_t> index(distance.size());
    if (search_.out.correlation != nullptr) {
      r.resize(distance.size());
      start_masked_correlations(work_, places_.data(), correlations_.data(),
                                stream_.get());
      download(r.data(), correlations_, size, stream_);
    }
    download(distance.data(), list_distance_, size, stream_);
    download(index.data(), list_index_, size, stream_);
    stream_.wait();
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < work_.num_rows; ++i) {
      const std::int32_t* own = index.data() + i * k;
      // Empty places are at the end.
      const std::int64_t found = std::find(own, own + k, kNoPoint) - own;
      stats_.rows_short += found < k;
      emit_masked(
          search_.out,
          AnswerRow{search_.rows.order.id_at(Place{work_.row0 + i}).value}, k,
          found, distance.data() + i * k, own,
          r.empty() ? nullptr : r.data() + i * k);
    }
    stats_.seconds_emit += seconds_since(start);
  }

  static constexpr std::int64_t kLeastColumns = 64;

  const MaskedSearch& search_;
  Workers& workers_;
  const bool filtered_;
  const std::int64_t batch_rows_;
  Stream stream_;
  DeviceMasked columns_;
  std::unique_ptr<DeviceMasked> rows_;
  DeviceBuffer<std::int32_t> own_ids_;
  DeviceBuffer<float> thresholds_;
  DeviceBuffer<std::int32_t> counts_, candidates_;
  DeviceBuffer<double> list_distance_;
  DeviceBuffer<std::int32_t> list_index_;
  DeviceBuffer<unsigned long long> pairs_exact_;
  DeviceBuffer<std::int32_t> places_;
  DeviceBuffer<double> correlations_;
  MaskedWork work_;
  // Two rounds are under way at a time: the device never waits for the host.
  Event done_[2];
  std::int64_t num_launches_ = 0;
  Stats stats_;
};

/// What a segment holds at most, before there is one.
double bytes_of(const MaskedSearch& search) {
  const MaskedPlan& plan = search.plan;
  const double row = static_cast<double>(search.columns.padded) * 8 +
                     static_cast<double>(plan.depth) * 4 +
                     static_cast<double>(search.columns.words) * 8 + 16;
  const double points = static_cast<double>(search.columns.size()) +
                        (&search.rows == &search.columns
                             ? 0.0
                             : static_cast<double>(search.rows.size()));
  return points * row + static_cast<double>(plan.batch_rows) *
                            (static_cast<double>(plan.capacity) * 4 +
                             static_cast<double>(search.request.k) * 20 + 8);
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
                                     const MaskedPoints& rows, bool graph) {
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
  const MaskedPoints columns = prepare_masked(points, rule, request.skip, true,
                                              request.num_threads, progress);
  MaskedPoints own_rows;
  if (queries != nullptr)
    own_rows = prepare_masked(*queries, rule, request.query_skip, false,
                              request.num_threads, progress);
  const MaskedPoints& rows = queries != nullptr ? own_rows : columns;
  for (std::int64_t i = 0; i < out.rows; ++i)
    if (columns.size() == 0 ||
        rows.order.place[static_cast<std::size_t>(i)] < 0)
      emit_missing(out, AnswerRow::of(i), request.k);
  if (rows.size() == 0 || columns.size() == 0) return;

  const MaskedPlan plan = plan_masked(request, rows, columns);
  const std::vector<std::int32_t> own_ids =
      own_ids_of(request, rows, queries == nullptr);
  MaskedUnits units;
  if (!rule.correlates()) units = masked_units(columns, rule);
  const MaskedSearch search = {
      request, rule, rule.correlates() ? nullptr : &units, plan, rows, columns,
      own_ids, out};
  for (const Device& gpu : gpus.all()) check_fits(search, gpu);
  const double seconds_prepare = seconds_since(start);
  Stats found;
  run_segments(search, gpus, progress, found);
  if (stats == nullptr) return;
  *stats = found;
  stats->filtered = is_filtered(*request.metric);
  stats->bytes_device = gpus.most_bytes();
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search =
      seconds_since(start) - seconds_prepare - stats->seconds_emit;
}

}  // namespace cuda
}  // namespace fsknn
