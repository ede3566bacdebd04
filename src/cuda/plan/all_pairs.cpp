#include "cuda/plan/all_pairs.hpp"

#include <algorithm>

#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {
namespace {

// With very many features a chunk is smaller, so that an interrupt still waits
// for a fraction of a second: this many products and sums.
constexpr double kLargestChunkWork = 1.4e11;
// The distance kernel's grid has no more tiles of rows.
constexpr std::int64_t kMostChunk = 65535 * kChunkUnit;

std::int64_t largest_chunk(std::int64_t padded) {
  std::int64_t chunk = kLargestChunk;
  while (chunk > kChunkUnit && static_cast<double>(chunk) *
                                       static_cast<double>(chunk) *
                                       static_cast<double>(padded) >
                                   kLargestChunkWork)
    chunk /= 2;
  return chunk;
}

double bytes_prepared(const SearchSizes& s, std::int64_t chunk) {
  const double places =
      static_cast<double>(round_up(s.points, chunk) +
                          (s.queries > 0 ? round_up(s.queries, chunk) : 0));
  // Rows, their sums, the points' numbers, and where each point stands.
  return places * (static_cast<double>(s.padded) * 8 + 12) +
         static_cast<double>(s.given + s.queries) * 4 +
         bytes_preparing(std::max(s.given, s.queries), s.features, s.ranked) +
         s.made_from;
}

double bytes_working(const SearchSizes& s, std::int64_t chunk) {
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  const std::int64_t columns = std::min(chunk, round_up(s.points, kChunkUnit));
  const double height = static_cast<double>(rows);
  return height * static_cast<double>(columns) * 8 +
         height * static_cast<double>(s.k) * 12 + bytes_answer(rows, s.k);
}

std::int64_t automatic_chunk(const SearchSizes& s, std::int64_t num_devices,
                             double bytes_usable) {
  const std::int64_t most = std::max(s.rows, s.points);
  const std::int64_t limit = largest_chunk(s.padded);
  std::int64_t splits = ceil_div(s.rows, limit);
  const std::int64_t shared = round_up(splits, num_devices);
  if (s.rows / shared >= kLeastShare) splits = shared;
  for (;;) {
    const std::int64_t chunk =
        splits == 1 ? std::min(limit, round_up(most, kChunkUnit))
                    : round_up(ceil_div(s.rows, splits), kChunkUnit);
    const bool fits =
        bytes_prepared(s, chunk) + bytes_working(s, chunk) <= bytes_usable;
    if (bytes_usable <= 0 || fits || chunk == kChunkUnit) return chunk;
    splits = round_up(2 * splits, num_devices);
  }
}

/// What the float64 pass holds of points that come in panels: one panel of rows
/// and two of columns, what preparing them takes, and where each point stands.
double bytes_panels(const PlanInput& in, std::int64_t chunk) {
  const SearchSizes s(in);
  const double row_bytes = static_cast<double>(s.padded) * 8 + 12;
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  const std::int64_t columns = std::min(chunk, round_up(s.points, kChunkUnit));
  double bytes = static_cast<double>(rows + 2 * columns) * row_bytes +
                 static_cast<double>(s.given) * 4 +
                 bytes_preparing(s.given, in.num_features, in.unit_dot) +
                 s.made_from;
  if (s.queries > 0)
    bytes += static_cast<double>(s.queries) * 4 +
             bytes_preparing(s.queries, in.num_features, in.unit_dot);
  return bytes;
}

double bytes_working_streamed(const SearchSizes& s, std::int64_t chunk) {
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  return bytes_working(s, chunk) +
         (s.correlation
              ? static_cast<double>(rows) * static_cast<double>(s.k) * 8
              : 0.0);
}

}  // namespace

SearchSizes::SearchSizes(const PlanInput& in)
    : rows(in.num_queries == 0 ? in.num_points : in.num_queries),
      points(in.num_points),
      given(std::max(in.num_points, in.num_given)),
      queries(in.num_queries),
      features(in.num_features),
      padded(padded_features(in.num_features)),
      k(in.k),
      made_from(in.bytes_made_from),
      correlation(in.correlation),
      ranked(in.unit_dot) {}

double bytes_answer(std::int64_t rows, std::int64_t k) {
  return static_cast<double>(
      std::max(AnswerShape(rows, k, true).bytes_device(),
               AnswerShape(rows, k, false).bytes_device()));
}

Plan plan_all_pairs(const PlanInput& in, double bytes_usable) {
  const SearchSizes s(in);
  Plan p;
  p.num_points = in.num_points;
  p.num_features = in.num_features;
  p.num_queries = in.num_queries;
  p.k = in.k;
  p.data_block = kLanes;
  p.padded_features = s.padded;
  const std::int64_t devices = std::max(1, in.num_workers);
  const std::int64_t most = round_up(std::max(s.rows, s.points), kChunkUnit);
  p.chunk_size =
      in.chunk_size > 0
          ? round_up(std::min({in.chunk_size, most, kMostChunk}), kChunkUnit)
          : automatic_chunk(s, devices, bytes_usable);
  p.num_splits = ceil_div(s.rows, p.chunk_size);
  p.chunks_per_split = ceil_div(s.points, p.chunk_size);
  p.padded_points = p.chunks_per_split * p.chunk_size;
  p.padded_queries = p.num_splits * p.chunk_size;
  // No more devices than splits, and none left with nothing to do.
  p.splits_per_segment =
      ceil_div(p.num_splits, std::min<std::int64_t>(devices, p.num_splits));
  p.num_segments = ceil_div(p.num_splits, p.splits_per_segment);
  p.num_workers = static_cast<int>(p.num_segments);
  p.num_chunks = p.num_splits * p.chunks_per_split;

  p.bytes_prepared = bytes_prepared(s, p.chunk_size);
  p.bytes_filter = 0;
  p.bytes_working = bytes_working(s, p.chunk_size);
  p.bytes_result = static_cast<double>(s.rows) * static_cast<double>(in.k) *
                   (in.correlation ? 20 : 12);
  p.bytes_peak = p.bytes_prepared + p.bytes_working;
  return p;
}

Plan plan_all_pairs_panels(const PlanInput& in, double bytes_usable) {
  const SearchSizes s(in);
  std::int64_t chunk =
      in.chunk_size > 0
          ? round_up(std::min(in.chunk_size, kMostChunk), kChunkUnit)
          : largest_chunk(s.padded);
  chunk = std::min(chunk, round_up(std::max(s.rows, s.points), kChunkUnit));
  while (bytes_usable > 0 && chunk > kChunkUnit &&
         bytes_panels(in, chunk) + bytes_working_streamed(s, chunk) >
             bytes_usable)
    chunk = round_up(chunk * 3 / 4, kChunkUnit) == chunk
                ? chunk - kChunkUnit
                : round_up(chunk * 3 / 4, kChunkUnit);
  PlanInput cut = in;
  cut.chunk_size = chunk;
  Plan p = plan_all_pairs(cut, bytes_usable);
  p.streamed = true;
  // The columns once for each split of rows, and again for the correlations.
  p.num_passes = 1 + p.num_splits * (in.correlation ? 2 : 1);
  p.bytes_prepared = bytes_panels(in, chunk);
  p.bytes_working = bytes_working_streamed(s, chunk);
  p.bytes_peak = p.bytes_prepared + p.bytes_working;
  return p;
}

}  // namespace cuda
}  // namespace fsknn
