#include "cuda/search/within_chunks.cuh"

#include <math_constants.h>

#include <algorithm>

#include "core/made_rows.hpp"
#include "cuda/device/transfer.cuh"
#include "cuda/plan/plan.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

constexpr int kThreads = 256;
// Rows are read again for each split: few splits. A chunk's values take 2 GiB.
constexpr std::int64_t kLargestSide = 16384;
// Points stay where chunks are then no smaller than this, or than is asked for.
constexpr std::int64_t kLeastSide = 4096;
// A chunk's pairs are counted in 32 bits.
constexpr std::int64_t kMostSide = 32768;

}  // namespace

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

namespace {

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

}  // namespace

std::int64_t side_in_panels(const WithinWork& work, double bytes_usable,
                            int device) {
  const std::int64_t side =
      largest_side(work.request, work.rows, work.columns, bytes_usable, false);
  if (side > 0) return side;
  throw PlanFailure(
      PlanFailure::Held::two_chunks,
      bytes_for(kChunkUnit, work.request, work.rows, work.columns, false),
      bytes_usable, device);
}

std::int64_t side_beside_points(const WithinWork& work, const UsedDevices& gpus,
                                double bytes_usable) {
  double stored = work.stored().bytes();
  for (const Device& gpu : gpus.all())
    stored = std::max(stored, work.store->bytes_on(gpu.cuda_id));
  const auto side_within = [&](double bytes) {
    return largest_side(work.request, work.rows, work.columns, bytes, true);
  };
  const std::int64_t wanted = side_within(0);
  if (bytes_usable <= 0) return wanted;
  if (bytes_usable <= stored) return 0;
  const std::int64_t side = side_within(bytes_usable - stored);
  return side < std::min(wanted, kLeastSide) ? 0 : side;
}

WithinInChunks::WithinInChunks(const WithinWork& work, Workers& workers)
    : work_(work),
      workers_(workers),
      held_(work.store == nullptr
                ? nullptr
                : &work.store->get(work.stored(), stream_).points()),
      rows_(held_ != nullptr && work.graph() ? 0 : work.side, work.rows.padded),
      columns_{{held_ != nullptr ? 0 : work.side, work.rows.padded},
               {held_ != nullptr ? 0 : work.side, work.rows.padded}},
      chunk_(work.side, work.side, work.rows.padded, work.rule.undo()),
      limits_(work.rows.size()),
      column_limits_(static_cast<std::int64_t>(work.column_limits.size())),
      found_(work) {
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
void WithinInChunks::run(std::atomic<std::int64_t>& next,
                         WithinCollector& collector) {
  WithinCollector::Taker taker(collector);
  const std::int64_t num_rows = work_.rows.size();
  for (;;) {
    const std::int64_t row0 = next.fetch_add(1) * work_.side;
    if (row0 >= num_rows) break;
    const Panel rows =
        row_panel(Place{row0}, std::min(work_.side, num_rows - row0));
    const bool go_on =
        for_columns(Place{work_.graph() ? row0 : 0}, [&](const Panel& columns) {
          return chunk(rows, columns, collector, taker);
        });
    rows_.release(stream_);
    if (!go_on) return;
  }
  if (from_columns_) from_columns_->check();
  if (from_queries_) from_queries_->check();
}

/// Until rows_ is released, where they do not stay.
Panel WithinInChunks::row_panel(Place first, std::int64_t count) {
  if (held_ != nullptr && work_.graph()) return held_->panel(first, count);
  PanelStream& from = work_.graph() ? *from_columns_ : *from_queries_;
  from.fetch(first, count, rows_);
  return rows_.get(stream_);
}

/// Calls use(panel) for all columns from that place on. `use` returns whether
/// to go on; so does this.
template <class Use>
bool WithinInChunks::for_columns(Place first, Use use) {
  if (held_ == nullptr)
    return for_panels(*from_columns_, columns_, stream_, use, first);
  const std::int64_t end = work_.columns.size();
  for (std::int64_t at = first.value; at < end; at += work_.side)
    if (!use(held_->panel(Place{at}, std::min(work_.side, end - at))))
      return false;
  return true;
}

bool WithinInChunks::chunk(const Panel& rows, const Panel& columns,
                           WithinCollector& collector,
                           WithinCollector::Taker& taker) {
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
  band.count = found_.count();
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
bool WithinInChunks::take(const Band& band, WithinCollector& collector,
                          WithinCollector::Taker& taker) {
  found_.clear_count(stream_);
  start_band(*work_.request.metric, band, stream_.get());
  const std::int32_t count = found_.counted(stream_);
  if (count > band.capacity) return false;
  found_.take(count, collector, taker, stream_);
  return true;
}

}  // namespace cuda
}  // namespace fsknn
