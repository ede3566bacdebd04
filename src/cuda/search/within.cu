// All pairs within a distance, on devices: every pair in the contract's
// doubles, chunk by chunk; those that may be within go to the host, where they
// are counted, and then filled in (core/within.hpp). Points come in panels, or
// stay on the devices for the searches after this one.

#include <math_constants.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/made_rows.hpp"
#include "core/pieces.hpp"
#include "core/prepared.hpp"
#include "cuda/backend.hpp"
#include "cuda/device/resources.cuh"
#include "cuda/device/transfer.cuh"
#include "cuda/device/used_devices.cuh"
#include "cuda/device/workers.hpp"
#include "cuda/exact/distance.cuh"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/panel_stream.cuh"
#include "cuda/prepare/rules.cuh"
#include "cuda/search/chunk_buffer.cuh"
#include "cuda/search/engine.cuh"
#include "cuda/search/point_store.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kThreads = 256;
// Pairs that travel at a time.
constexpr std::int64_t kMostFound = std::int64_t{1} << 20;
// Of which a host thread takes so many.
constexpr std::int64_t kPairsAPiece = std::int64_t{1} << 15;
// Rows are read again for each split: few splits. A chunk's values take 2 GiB.
constexpr std::int64_t kLargestSide = 16384;
// Points stay where chunks are then no smaller than this, or than is asked for.
constexpr std::int64_t kLeastSide = 4096;
// A chunk's pairs are counted in 32 bits.
constexpr std::int64_t kMostSide = 32768;

/// By places.
struct FoundPair {
  std::int32_t row, column;
  double value;
};

/// A band of a chunk's rows, and who is within of it. Device memory.
struct Band {
  const double* values = nullptr;  ///< [rows x stride] of the chunk
  std::int64_t stride = 0;
  std::int64_t first_row = 0, end_row = 0, num_columns = 0;
  std::int32_t row0 = 0, column0 = 0;  ///< places of the chunk's first
  bool graph = false;                  ///< places are of the same points
  const double* limits = nullptr;      ///< by place of rows
  /// By place of columns: a pair within the limit of either point counts. Null:
  /// the rows' limits alone.
  const double* column_limits = nullptr;
  FoundPair* found = nullptr;  ///< out: [capacity], in no order
  std::int32_t capacity = 0;
  std::int32_t* count = nullptr;  ///< out: may pass the capacity
};

// Each warp's finds take their places together.
// In and out: see Band. Grid: x over columns, y over rows of the band, in
// steps. Block: kThreads. Shared: none.
template <class Rule, bool products>
__global__ void __launch_bounds__(kThreads) find_in_band(const Band band) {
  const std::int64_t c =
      static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t column = band.column0 + static_cast<std::int32_t>(c);
  const bool there = c < band.num_columns;
  const double column_limit = there && band.column_limits != nullptr
                                  ? band.column_limits[column]
                                  : -CUDART_INF;
  for (std::int64_t r = band.first_row + blockIdx.y; r < band.end_row;
       r += gridDim.y) {
    const std::int32_t row = band.row0 + static_cast<std::int32_t>(r);
    const double value = there ? band.values[r * band.stride + c] : 0.0;
    const double distance = products ? Rule::finish(value, 0.0, 0.0) : value;
    const bool within = there && (!band.graph || row < column) &&
                        distance <= fmax(band.limits[row], column_limit);
    const unsigned finders = __ballot_sync(0xffffffffu, within);
    if (finders == 0) continue;
    std::int32_t first = 0;
    if (lane == 0) first = atomicAdd(band.count, __popc(finders));
    first = __shfl_sync(0xffffffffu, first, 0);
    const std::int32_t at = first + __popc(finders & ((1u << lane) - 1));
    if (within && at < band.capacity) band.found[at] = {row, column, value};
  }
}

void start_band(const MetricEntry& metric, const Band& band,
                cudaStream_t stream) {
  const dim3 grid(
      static_cast<unsigned>((band.num_columns + kThreads - 1) / kThreads),
      static_cast<unsigned>(
          std::min<std::int64_t>(band.end_row - band.first_row, 4096)));
  with_pair_rule(metric, [&](auto rule) {
    using Rule = decltype(rule);
    if (metric.is_unit_dot())
      find_in_band<Rule, true><<<grid, kThreads, 0, stream>>>(band);
    else
      find_in_band<Rule, false><<<grid, kThreads, 0, stream>>>(band);
  });
  CUDA_CHECK(cudaGetLastError());
}

/// What all devices work on.
struct Work {
  const Request& request;
  const PlacedPoints& rows;
  const PlacedPoints& columns;  ///< the same object for a graph
  RowRecipe prepare;
  PowerOfTwo undo;
  std::int64_t side;           ///< of a chunk
  std::vector<double> limits;  ///< by place of rows
  /// By place of columns that are not the rows; empty: they have none.
  std::vector<double> column_limits;
  int num_threads;    ///< of the host, for each device
  PointStore* store;  ///< where columns stay; null: they come in panels
  bool graph() const { return &rows == &columns; }
  /// In whole tiles: panels of them are read so.
  PointsToStore stored() const {
    return {columns,         request.metric,
            request.weights, request.covariates,
            prepare,         whole_tiles(columns.size()),
            num_threads};
  }
  std::int64_t num_splits() const { return (rows.size() + side - 1) / side; }
  /// Chunks of all splits.
  std::int64_t num_chunks() const {
    const std::int64_t across = (columns.size() + side - 1) / side;
    return graph() ? across * (across + 1) / 2 : num_splits() * across;
  }
};

/// The part of one device. Made and run on one host thread.
class WithinPart {
 public:
  WithinPart(const Work& work, Workers& workers)
      : work_(work),
        workers_(workers),
        held_(work.store == nullptr
                  ? nullptr
                  : &work.store->get(work.stored(), stream_).points()),
        rows_(held_ != nullptr && work.graph() ? 0 : work.side,
              work.rows.padded),
        columns_{{held_ != nullptr ? 0 : work.side, work.rows.padded},
                 {held_ != nullptr ? 0 : work.side, work.rows.padded}},
        chunk_(work.side, work.side, work.rows.padded, work.undo),
        limits_(work.rows.size()),
        column_limits_(static_cast<std::int64_t>(work.column_limits.size())),
        found_(kMostFound),
        count_(1),
        h_found_(kMostFound) {
    if (held_ == nullptr)
      from_columns_.reset(
          new PanelStream(work.columns, work.prepare, work.num_threads));
    if (!work.graph())
      from_queries_.reset(
          new PanelStream(work.rows, work.prepare, work.num_threads));
    upload(limits_, work.limits.data(), limits_.size(), stream_);
    if (column_limits_.size() > 0)
      upload(column_limits_, work.column_limits.data(), column_limits_.size(),
             stream_);
    stream_.wait();
  }
  WithinPart(const WithinPart&) = delete;
  WithinPart& operator=(const WithinPart&) = delete;
  /// After a failure, what is under way still uses the buffers.
  ~WithinPart() { cudaStreamSynchronize(stream_.get()); }

  /// The splits that `next` gives out.
  void run(std::atomic<std::int64_t>& next, WithinCollector& collector) {
    WithinCollector::Taker taker(collector);
    const std::int64_t num_rows = work_.rows.size();
    for (;;) {
      const std::int64_t row0 = next.fetch_add(1) * work_.side;
      if (row0 >= num_rows) break;
      const Panel rows =
          row_panel(Place{row0}, std::min(work_.side, num_rows - row0));
      const bool go_on = for_columns(
          Place{work_.graph() ? row0 : 0}, [&](const Panel& columns) {
            return chunk(rows, columns, collector, taker);
          });
      rows_.release(stream_);
      if (!go_on) return;
    }
    if (from_columns_) from_columns_->check();
    if (from_queries_) from_queries_->check();
  }

  const Stats& stats() const { return stats_; }

 private:
  /// Until rows_ is released, where they do not stay.
  Panel row_panel(Place first, std::int64_t count) {
    if (held_ != nullptr && work_.graph()) return held_->panel(first, count);
    PanelStream& from = work_.graph() ? *from_columns_ : *from_queries_;
    from.fetch(first, count, rows_);
    return rows_.get(stream_);
  }

  /// Calls use(panel) for all columns from that place on. `use` returns whether
  /// to go on; so does this.
  template <class Use>
  bool for_columns(Place first, Use use) {
    if (held_ == nullptr)
      return for_panels(*from_columns_, columns_, stream_, use, first);
    const std::int64_t end = work_.columns.size();
    for (std::int64_t at = first.value; at < end; at += work_.side)
      if (!use(held_->panel(Place{at}, std::min(work_.side, end - at))))
        return false;
    return true;
  }

  bool chunk(const Panel& rows, const Panel& columns,
             WithinCollector& collector, WithinCollector::Taker& taker) {
    const Chunk chunk = chunk_.chunk(rows, columns);
    const MetricEntry& metric = *work_.request.metric;
    if (metric.is_unit_dot())
      start_products(chunk, stream_.get());
    else
      start_distances(metric, chunk, stream_.get());
    stats_.pairs_exact +=
        static_cast<double>(rows.count) * static_cast<double>(columns.count);

    Band band;
    band.values = chunk.distances;
    band.stride = chunk.stride;
    band.end_row = rows.count;
    band.num_columns = columns.count;
    band.row0 = static_cast<std::int32_t>(rows.first.value);
    band.column0 = static_cast<std::int32_t>(columns.first.value);
    band.graph = work_.graph();
    band.limits = limits_.data();
    band.column_limits = band.graph ? limits_.data() : column_limits_.data();
    band.found = found_.data();
    band.capacity = static_cast<std::int32_t>(kMostFound);
    band.count = count_.data();
    if (!take(band, collector, taker)) {
      // Too many at once: as many rows at a time as there is room for.
      const std::int64_t height =
          std::max<std::int64_t>(1, kMostFound / columns.count);
      for (std::int64_t r = 0; r < rows.count; r += height) {
        band.first_row = r;
        band.end_row = std::min(rows.count, r + height);
        take(band, collector, taker);
      }
    }
    return workers_.go_on();
  }

  /// Whether there was room for all that is within.
  bool take(const Band& band, WithinCollector& collector,
            WithinCollector::Taker& taker) {
    clear_from(count_, 0, stream_);
    start_band(*work_.request.metric, band, stream_.get());
    std::int32_t count = 0;
    download(&count, count_, 1, stream_);
    stream_.wait();
    if (count > band.capacity) return false;
    if (count == 0) return true;
    download(h_found_.data(), found_, count, stream_);
    stream_.wait();
    if (count <= kPairsAPiece) {
      hand_over(0, count, taker);
      return true;
    }
    run_pieces((count + kPairsAPiece - 1) / kPairsAPiece, work_.num_threads, {},
               [&] {
                 return [&, own = WithinCollector::Taker(collector)](
                            std::int64_t piece) mutable {
                   const std::int64_t first = piece * kPairsAPiece;
                   const std::int64_t end =
                       std::min<std::int64_t>(count, first + kPairsAPiece);
                   hand_over(first, end, own);
                 };
               });
    return true;
  }

  void hand_over(std::int64_t first, std::int64_t end,
                 WithinCollector::Taker& taker) {
    const std::int32_t* const row_ids = work_.rows.order.id.data();
    const std::int32_t* const column_ids = work_.columns.order.id.data();
    const FoundPair* const found = h_found_.data();
    for (const FoundPair* p = found + first; p < found + end; ++p)
      taker.take(AnswerRow{row_ids[p->row]}, PointId{column_ids[p->column]},
                 p->value);
  }

  const Work& work_;
  Workers& workers_;
  Stream stream_;
  const DevicePoints* const held_;  ///< the columns, where they stay
  PanelBuffer rows_, columns_[2];
  ChunkBuffer chunk_;
  DeviceBuffer<double> limits_, column_limits_;
  DeviceBuffer<FoundPair> found_;
  DeviceBuffer<std::int32_t> count_;
  PinnedBuffer<FoundPair> h_found_;
  std::unique_ptr<PanelStream> from_columns_;  ///< null where they stay
  std::unique_ptr<PanelStream> from_queries_;  ///< null for a graph
  Stats stats_;
};

/// What one device holds besides points that stay.
double bytes_for(std::int64_t side, const Request& request,
                 const PlacedPoints& rows, const PlacedPoints& columns,
                 bool stay) {
  const bool ranked = request.metric->row_form == RowForm::ranked_unit;
  const double basis =
      request.covariates == nullptr ? 0.0 : request.covariates->bytes();
  const auto bytes = [&](const PlacedPoints& points) {
    return bytes_preparing(points.source->num_points(), points.num_features,
                           ranked) +
           bytes_made_from(*points.source) + basis +
           4.0 * static_cast<double>(points.source->num_points());
  };
  const bool graph = &rows == &columns;
  const double length = static_cast<double>(side);
  const double panels = stay ? (graph ? 0.0 : 1.0) : 3.0;
  return panels * length * static_cast<double>(rows.padded + 2) * 8 +
         8 * length * length +
         8.0 * static_cast<double>(rows.size() + (graph ? 0 : columns.size())) +
         static_cast<double>(kMostFound) * sizeof(FoundPair) + bytes(columns) +
         (graph ? 0.0 : bytes(rows));
}

/// The largest side of a chunk that fits, in whole tiles; 0: none does.
std::int64_t largest_side(const Request& request, const PlacedPoints& rows,
                          const PlacedPoints& columns, double bytes_usable,
                          bool stay) {
  const std::int64_t all = whole_tiles(std::max(rows.size(), columns.size()));
  const std::int64_t asked =
      request.chunk_size > 0 ? request.chunk_size : kLargestSide;
  std::int64_t side = std::min({all, whole_tiles(asked), kMostSide});
  const auto fits = [&] {
    return bytes_usable <= 0 ||
           bytes_for(side, request, rows, columns, stay) <= bytes_usable;
  };
  while (side > kChunkUnit && !fits()) side = whole_tiles(side / 2);
  return fits() ? side : 0;
}

std::int64_t side_for_panels(const Request& request, const PlacedPoints& rows,
                             const PlacedPoints& columns, double bytes_usable,
                             int device) {
  const std::int64_t side =
      largest_side(request, rows, columns, bytes_usable, false);
  if (side > 0) return side;
  throw PlanFailure(PlanFailure::Held::two_chunks,
                    bytes_for(kChunkUnit, request, rows, columns, false),
                    bytes_usable, device);
}

/// A stretch of the whole work's progress.
class PartOf final : public Progress {
 public:
  PartOf(Progress& whole, double from, double to)
      : whole_(whole), from_(from), to_(to) {}
  bool report(double done) override {
    return whole_.report(from_ + (to_ - from_) * done);
  }

 private:
  Progress& whole_;
  double from_, to_;
};

/// The side of chunks where points stay on the devices; 0: there is no room for
/// them whole, beside chunks that are large enough.
std::int64_t side_beside_points(const Request& request,
                                const PlacedPoints& rows,
                                const PointsToStore& asked,
                                const UsedDevices& gpus,
                                const PointStore& store, double bytes_usable) {
  const PlacedPoints& columns = asked.points;
  double stored = asked.bytes();
  for (const Device& gpu : gpus.all())
    stored = std::max(stored, store.bytes_on(gpu.cuda_id));
  const std::int64_t wanted = largest_side(request, rows, columns, 0, true);
  if (bytes_usable <= 0) return wanted;
  if (bytes_usable <= stored) return 0;
  const std::int64_t side =
      largest_side(request, rows, columns, bytes_usable - stored, true);
  return side < std::min(wanted, kLeastSide) ? 0 : side;
}

/// store: null where points are not held from search to search.
void find_pairs(const Request& request, const Within& within,
                const RowSource& points, const RowSource* queries,
                WithinAnswer& answer, Progress* progress, Stats* stats,
                PointStore* store) {
  if (!finds_within(request))
    throw std::logic_error("GPUs do not find what find_within() was asked for");
  check_metric(*request.metric);
  const Clock::time_point start = Clock::now();
  const UsedDevices gpus(request.devices);
  check_sample(request, within, points, queries);
  // Shuffled where they stay: so searches by a filter have them.
  PlacedPoints columns(points, request.skip, store != nullptr);
  PlacedPoints own_rows;
  if (queries != nullptr)
    own_rows = PlacedPoints(*queries, request.query_skip, false);
  const PlacedPoints& rows = queries != nullptr ? own_rows : columns;
  WithinCollector collector(
      request, within, (queries != nullptr ? *queries : points).num_points(),
      queries == nullptr);
  if (rows.size() == 0 || columns.size() == 0) {
    collector.allocate(answer);
    return;
  }
  const int exponent =
      common_exponent(request, points, queries, request.num_threads);
  const DistanceRule rule(*request.metric, exponent);
  Work work = {request,     rows, columns, recipe_of(request, exponent),
               rule.undo(), 0,    {},      {},
               1,           store};
  const double usable =
      facts_of(store != nullptr ? store->as_if_free(gpus.all()) : gpus.all(),
               request.max_device_memory)
          .bytes_usable();
  if (store != nullptr)
    work.side =
        side_beside_points(request, rows, work.stored(), gpus, *store, usable);
  if (work.side == 0) {
    if (store != nullptr) {
      store->clear();
      columns = PlacedPoints(points, request.skip, false);
      work.store = nullptr;
    }
    work.side = side_for_panels(request, rows, columns, usable, gpus.id(0));
  }
  work.limits.reserve(rows.order.id.size());
  for (const std::int32_t id : rows.order.id)
    work.limits.push_back(within.limit(id));
  if (within.either && !work.graph())
    for (const std::int32_t id : columns.order.id)
      work.column_limits.push_back(within.point_limit(id));
  const int count =
      static_cast<int>(std::min<std::int64_t>(gpus.count(), work.num_splits()));
  work.num_threads = std::max(1, request.num_threads / count);
  const double seconds_prepare = seconds_since(start);

  Stats found;
  const auto pass = [&](double from, double to) {
    std::unique_ptr<PartOf> part;
    if (progress != nullptr) part.reset(new PartOf(*progress, from, to));
    Workers workers(part.get(), work.num_chunks());
    std::atomic<std::int64_t> next{0};
    run_parts(workers, gpus, count, found, [&](int) {
      WithinPart on_device(work, workers);
      on_device.run(next, collector);
      return on_device.stats();
    });
  };
  pass(0.0, 0.5);
  if (!collector.allocate(answer)) pass(0.5, 1.0);
  const double seconds_search = seconds_since(start) - seconds_prepare;
  collector.finish();
  if (stats == nullptr) return;
  *stats = found;
  stats->bytes_device = gpus.most_bytes();
  stats->seconds_prepare = seconds_prepare;
  stats->seconds_search = seconds_search;
  stats->seconds_emit = seconds_since(start) - seconds_prepare - seconds_search;
}

}  // namespace

void find_within(const Request& request, const Within& within,
                 const RowSource& points, const RowSource* queries,
                 WithinAnswer& answer, Progress* progress, Stats* stats) {
  find_pairs(request, within, points, queries, answer, progress, stats,
             nullptr);
}

void find_within_with_store(const Request& request, const Within& within,
                            const RowSource& points, const RowSource* queries,
                            WithinAnswer& answer, Progress* progress,
                            Stats* stats, PointStore& store) {
  find_pairs(request, within, points, queries, answer, progress, stats, &store);
}

}  // namespace cuda
}  // namespace fsknn
