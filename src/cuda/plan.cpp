#include "cuda/plan.hpp"

#include <algorithm>

namespace fsknn {
namespace cuda {
namespace {

// 8,192 x 8,192 distances are 512 MiB: enough to fill any GPU, little enough to
// fit one, and a fraction of a second.
constexpr std::int64_t kLargestChunk = 8192;
// With very many features a chunk is smaller, so that an interrupt still waits
// for a fraction of a second: this many products and sums.
constexpr double kLargestChunkWork = 1.4e11;
// Smaller chunks are not made only to give every GPU one.
constexpr std::int64_t kLeastShare = 1024;
constexpr double kStagingBytes = 32 << 20;
// What the context, the modules and fragmentation may take of the free memory.
constexpr double kUsableShare = 0.9;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}

struct Sizes {
  std::int64_t rows, points, queries, padded, k;
  bool correlation;
};

std::int64_t largest_chunk(std::int64_t padded) {
  std::int64_t chunk = kLargestChunk;
  while (chunk > kChunkUnit && static_cast<double>(chunk) *
                                       static_cast<double>(chunk) *
                                       static_cast<double>(padded) >
                                   kLargestChunkWork)
    chunk /= 2;
  return chunk;
}

std::int64_t padded_to_chunks(std::int64_t count, std::int64_t chunk) {
  return round_up(count, chunk);
}

double bytes_prepared(const Sizes& s, std::int64_t chunk) {
  const double places = static_cast<double>(
      padded_to_chunks(s.points, chunk) +
      (s.queries > 0 ? padded_to_chunks(s.queries, chunk) : 0));
  // Rows, their sums, the points' numbers, and where each point stands.
  return places * (static_cast<double>(s.padded) * 8 + 12) +
         static_cast<double>(s.points) * 4;
}

double bytes_working(const Sizes& s, std::int64_t chunk) {
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  const std::int64_t columns = std::min(chunk, round_up(s.points, kChunkUnit));
  const double height = static_cast<double>(rows);
  return height * static_cast<double>(columns) * 8 +
         height * static_cast<double>(s.k) * 12 +
         height * static_cast<double>(ranks_at_a_time(rows, s.k)) *
             (s.correlation ? 20 : 12);
}

std::int64_t automatic_chunk(const Sizes& s, std::int64_t num_devices,
                             double bytes_free) {
  const std::int64_t most = std::max(s.rows, s.points);
  const std::int64_t limit = largest_chunk(s.padded);
  std::int64_t splits = ceil_div(s.rows, limit);
  const std::int64_t shared = round_up(splits, num_devices);
  if (s.rows / shared >= kLeastShare) splits = shared;
  for (;;) {
    const std::int64_t chunk =
        splits == 1 ? std::min(limit, round_up(most, kChunkUnit))
                    : round_up(ceil_div(s.rows, splits), kChunkUnit);
    const bool fits = bytes_prepared(s, chunk) + bytes_working(s, chunk) <=
                      kUsableShare * bytes_free;
    if (bytes_free <= 0 || fits || chunk == kChunkUnit) return chunk;
    splits = round_up(2 * splits, num_devices);
  }
}

}  // namespace

std::int64_t ranks_at_a_time(std::int64_t rows, std::int64_t k) {
  const std::int64_t fit = static_cast<std::int64_t>(
      kStagingBytes / (20.0 * static_cast<double>(rows)));
  return std::max<std::int64_t>(1, std::min(k, fit));
}

Plan plan_cuda(const PlanInput& in, double bytes_free) {
  const bool graph = in.num_queries == 0;
  Sizes s;
  s.rows = graph ? in.num_points : in.num_queries;
  s.points = in.num_points;
  s.queries = in.num_queries;
  s.padded = padded_features(in.num_features);
  s.k = in.k;
  s.correlation = in.correlation;

  Plan p;
  p.num_points = in.num_points;
  p.num_features = in.num_features;
  p.num_queries = in.num_queries;
  p.k = in.k;
  p.data_block = kLanes;
  p.padded_features = s.padded;
  const std::int64_t devices = std::max(1, in.num_workers);
  const std::int64_t most = round_up(std::max(s.rows, s.points), kChunkUnit);
  p.chunk_size = in.chunk_size > 0
                     ? round_up(std::min(in.chunk_size, most), kChunkUnit)
                     : automatic_chunk(s, devices, bytes_free);
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

}  // namespace cuda
}  // namespace fsknn
