#include "cuda/search/pair_chunks.hpp"

#include <algorithm>

#include "core/rows/made_rows.hpp"
#include "cuda/plan/plan.hpp"

namespace fsknn {
namespace cuda {
namespace {

// Rows are read again for each split, so splits should be few. A chunk's values
// take 2 GiB.
constexpr std::int64_t kLargestSide = 16384;
// Points stay on the device if chunks are then at least this large, or as large
// as requested.
constexpr std::int64_t kLeastSide = 4096;
// A chunk's pairs are counted in 32 bits.
constexpr std::int64_t kMostSide = 32768;

/// Returns the bytes that one device holds besides points that stay.
double bytes_for(const PairsWork& work, std::int64_t side, bool stay) {
  const Request& request = work.request;
  const bool ranked = request.metric->row_form == RowForm::ranked;
  const double basis =
      request.covariates == nullptr ? 0.0 : request.covariates->bytes();
  const auto bytes = [&](const PlacedPoints& points) {
    return bytes_preparing(points.source->num_points(), points.num_features,
                           ranked) +
           bytes_made_from(*points.source) + basis +
           4.0 * static_cast<double>(points.source->num_points());
  };
  const bool graph = work.graph();
  const double length = static_cast<double>(side);
  const double panels = stay ? (graph ? 0.0 : 1.0) : 3.0;
  return panels * length * static_cast<double>(work.rows.padded + 2) * 8 +
         8 * length * length + work.bytes_besides + bytes(work.columns) +
         (graph ? 0.0 : bytes(work.rows));
}

/// Returns the largest side of a chunk that fits, in whole tiles; 0: none does.
std::int64_t largest_side(const PairsWork& work, double bytes_usable,
                          bool stay) {
  const std::int64_t all =
      whole_tiles(std::max(work.rows.size(), work.columns.size()));
  const std::int64_t asked =
      work.request.chunk_size > 0 ? work.request.chunk_size : kLargestSide;
  std::int64_t side = std::min({all, whole_tiles(asked), kMostSide});
  const auto fits = [&] {
    return bytes_usable <= 0 || bytes_for(work, side, stay) <= bytes_usable;
  };
  while (side > kChunkUnit && !fits()) side = whole_tiles(side / 2);
  return fits() ? side : 0;
}

}  // namespace

std::int64_t side_in_panels(const PairsWork& work, double bytes_usable,
                            int device) {
  const std::int64_t side = largest_side(work, bytes_usable, false);
  if (side > 0) return side;
  throw PlanFailure(PlanFailure::Held::two_chunks,
                    bytes_for(work, kChunkUnit, false), bytes_usable, device);
}

std::int64_t side_beside_points(const PairsWork& work, const UsedDevices& gpus,
                                double bytes_usable) {
  double stored = work.stored().bytes();
  for (const Device& gpu : gpus.all())
    stored = std::max(stored, work.store->bytes_on(gpu.cuda_id));
  const auto side_within = [&](double bytes) {
    return largest_side(work, bytes, true);
  };
  const std::int64_t wanted = side_within(0);
  if (bytes_usable <= 0) return wanted;
  if (bytes_usable <= stored) return 0;
  const std::int64_t side = side_within(bytes_usable - stored);
  return side < std::min(wanted, kLeastSide) ? 0 : side;
}

PairsWork::PairsWork(const Request& asked, const PlacedPoints& of_rows,
                     const PlacedPoints& of_columns, int exponent)
    : request(asked),
      rows(of_rows),
      columns(of_columns),
      prepare(recipe_of(asked, exponent)),
      rule(*asked.metric, exponent) {}

PointsToStore PairsWork::stored() const {
  return {columns,         request.metric,
          request.weights, request.covariates,
          prepare,         whole_tiles(columns.size()),
          num_threads};
}

PairChunks::PairChunks(const PairsWork& work)
    : work_(work),
      held_(work.store == nullptr
                ? nullptr
                : &work.store->get(work.stored(), stream_).points()),
      panels_({work.rows, work.columns, work.graph() ? held_ : nullptr, held_,
               work.side, work.side},
              work.prepare, work.num_threads),
      chunk_(work.side, work.side, work.rows.padded, work.rule.undo()) {
  stream_.wait();
}

Chunk PairChunks::make(const Panel& rows, const Panel& columns) {
  const Chunk chunk = chunk_.chunk(rows, columns);
  const MetricEntry& metric = *work_.request.metric;
  if (metric.is_unit_dot())
    start_products(chunk, stream_.get());
  else if (work_.similarities)
    start_similarities(metric, chunk, stream_.get());
  else
    start_distances(metric, chunk, stream_.get());
  pairs_ +=
      static_cast<double>(rows.count) * static_cast<double>(columns.count);
  return chunk;
}

}  // namespace cuda
}  // namespace fsknn
