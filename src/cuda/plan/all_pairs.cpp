#include "cuda/plan/all_pairs.hpp"

#include <algorithm>

#include "cuda/plan/lane_tile.hpp"
#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {
namespace {

// With very many features a chunk is smaller, so that an interrupt waits for a
// fraction of a second: for this many products and sums.
constexpr double kLargestChunkWork = 1.4e11;
// The same on tensor cores, which on some GPUs are that many times as fast.
constexpr double kLargestLanesWork = 8 * kLargestChunkWork;
// With fewer features or fewer points tensor cores save no time: joining the
// lanes takes as long as their sums.
constexpr std::int64_t kLeastLaneFeatures = 256;
constexpr std::int64_t kLeastLanePoints = 1024;
// Seconds on an H100 or an H200, by step. The exact step gathers a feature of a
// neighbour after a filter (on the faster of the two). Tensor cores compute a
// feature of a pair, and join a pair's lanes. Each row of a pair selects from
// it.
constexpr double kGatherSeconds = 1.8e-12;
constexpr double kProductSeconds = 5.0e-14;
constexpr double kJoinSeconds = 1.5e-11;
constexpr double kSelectSeconds = 2.6e-11;
// The distance kernel's grid has at most this many rows.
constexpr std::int64_t kMostChunk = 65535 * kChunkUnit;

std::int64_t largest_chunk(std::int64_t padded, double most_work) {
  std::int64_t chunk = kLargestChunk;
  while (chunk > kChunkUnit && static_cast<double>(chunk) *
                                       static_cast<double>(chunk) *
                                       static_cast<double>(padded) >
                                   most_work)
    chunk /= 2;
  return chunk;
}

double bytes_prepared(const SearchSizes& s, std::int64_t chunk) {
  const double places =
      static_cast<double>(round_up(s.points, chunk) +
                          (s.queries > 0 ? round_up(s.queries, chunk) : 0));
  // The rows, their sums, the points' numbers, and the place of each point.
  return places * (static_cast<double>(s.padded) * 8 + 12) +
         static_cast<double>(s.given + s.queries) * 4 +
         bytes_preparing(std::max(s.given, s.queries), s.features, s.ranked) +
         s.made_from;
}

double bytes_working(const SearchSizes& s, std::int64_t chunk, int blocks = 0) {
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  const std::int64_t columns = std::min(chunk, round_up(s.points, kChunkUnit));
  const double height = static_cast<double>(rows);
  const bool one_chunk = s.queries == 0 && rows >= s.rows;
  return height * static_cast<double>(columns) * 8 +
         height * static_cast<double>(s.k) * 12 + bytes_answer(rows, s.k) +
         (blocks > 0
              ? bytes_of_lanes(rows, columns, one_chunk, s.padded, blocks)
              : 0.0);
}

std::int64_t automatic_chunk(const SearchSizes& s, std::int64_t num_devices,
                             double bytes_usable, int blocks) {
  const std::int64_t most = std::max(s.rows, s.points);
  const std::int64_t limit = largest_chunk(
      s.padded, blocks > 0 ? kLargestLanesWork : kLargestChunkWork);
  std::int64_t splits = ceil_div(s.rows, limit);
  const std::int64_t shared = round_up(splits, num_devices);
  if (s.rows / shared >= kLeastShare) splits = shared;
  for (;;) {
    const std::int64_t chunk =
        splits == 1 ? std::min(limit, round_up(most, kChunkUnit))
                    : round_up(ceil_div(s.rows, splits), kChunkUnit);
    const bool fits =
        bytes_prepared(s, chunk) + bytes_working(s, chunk, blocks) <=
        bytes_usable;
    if (bytes_usable <= 0 || fits || chunk == kChunkUnit) return chunk;
    splits = round_up(2 * splits, num_devices);
  }
}

/// The memory of the float64 pass over points in panels: one panel of rows and
/// two of columns, the memory to prepare them, and the points' places.
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

Plan plan_all_pairs(const PlanInput& in, double bytes_usable, int blocks) {
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
          : automatic_chunk(s, devices, bytes_usable, blocks);
  p.num_splits = ceil_div(s.rows, p.chunk_size);
  p.chunks_per_split = ceil_div(s.points, p.chunk_size);
  p.padded_points = p.chunks_per_split * p.chunk_size;
  p.padded_queries = p.num_splits * p.chunk_size;
  // There are no more devices than splits, and each has a split.
  p.splits_per_segment =
      ceil_div(p.num_splits, std::min<std::int64_t>(devices, p.num_splits));
  p.num_segments = ceil_div(p.num_splits, p.splits_per_segment);
  p.num_workers = static_cast<int>(p.num_segments);
  p.num_chunks = p.num_splits * p.chunks_per_split;

  p.bytes_prepared = bytes_prepared(s, p.chunk_size);
  p.bytes_filter = 0;
  p.bytes_working = bytes_working(s, p.chunk_size, blocks);
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
          : largest_chunk(s.padded, kLargestChunkWork);
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
  // The columns are read once for each split of rows, and again for the
  // correlations.
  p.num_passes = 1 + p.num_splits * (in.correlation ? 2 : 1);
  p.bytes_prepared = bytes_panels(in, chunk);
  p.bytes_working = bytes_working_streamed(s, chunk);
  p.bytes_peak = p.bytes_prepared + p.bytes_working;
  return p;
}

std::int64_t meet_in_bands(Plan& p, double bytes_usable) {
  if (p.num_queries > 0) return 1;
  const double side = static_cast<double>(p.chunk_size);
  const double split = side * static_cast<double>(p.k) * 12;
  const double transposed = side * side * 8;
  std::int64_t at_once = p.splits_per_segment;
  if (bytes_usable > 0)
    at_once = static_cast<std::int64_t>(std::min(
        static_cast<double>(at_once),
        1 + std::max(0.0, bytes_usable - p.bytes_peak - transposed) / split));
  if (at_once > 1) {
    const double more = transposed + static_cast<double>(at_once - 1) * split;
    p.bytes_working += more;
    p.bytes_peak += more;
  }
  p.num_chunks = 0;
  for (std::int64_t s = 0; s < p.num_splits; s += p.splits_per_segment)
    for_bands(s, std::min(s + p.splits_per_segment, p.num_splits), at_once,
              true, [&](const PairBand& band) {
                p.num_chunks += band.num_chunks(p.chunks_per_split);
                return true;
              });
  return at_once;
}

bool tensor_cores_serve(const PlanInput& in, const GpuFacts& gpus) {
  const std::int64_t rows = in.num_queries > 0 ? in.num_queries : in.num_points;
  return in.unit_dot && gpus.capability == 90 && gpus.most_capability == 90 &&
         gpus.hopper_code && gpus.shared_bytes >= LaneTile::shared_bytes &&
         in.num_features >= kLeastLaneFeatures &&
         std::min(rows, in.num_points) >= kLeastLanePoints;
}

bool all_pairs_pay(const PlanInput& in) {
  const double n = static_cast<double>(in.num_points);
  const double d = static_cast<double>(in.num_features);
  const double devices = std::max(1, in.num_workers);
  // The number of pairs for a row. In a graph each device computes pairs of its
  // own points only once.
  const double made = in.num_queries > 0 ? n : n - n / (2 * devices);
  return static_cast<double>(in.k) * kGatherSeconds * d >
         made * (kProductSeconds * d + kJoinSeconds) + n * kSelectSeconds;
}

}  // namespace cuda
}  // namespace fsknn
