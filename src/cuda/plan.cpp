#include "cuda/plan.hpp"

#include <algorithm>

#include "cuda/panels.hpp"

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

// Below this many points the float64 pass is as fast, and beyond so many
// features the filter's error nears what it is to tell apart.
constexpr std::int64_t kLeastFilteredPoints = 4096;
constexpr std::int64_t kMostFilteredPoints = std::int64_t{1} << 30;
constexpr std::int64_t kMostFilteredFeatures = 32768;
// Beyond so many neighbours the lists of candidates take more memory than they
// are worth, and the float64 pass with its merging selection does all.
constexpr std::int64_t kMostFilteredNeighbours = 2048;
// A device's part of the filter, in products and sums: some milliseconds, or the
// devices' meetings take as long as they save.
constexpr double kLeastFilterShare = 5.0e11;
// A feature of the elementwise filter takes as long as so many of the products.
constexpr std::int64_t kWorkOfFloats = 16;
// One launch of the filter, so that an interrupt waits for 0.1 s or so.
constexpr double kFilterLaunchWork = 1.0e13;

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

}  // namespace

std::int64_t ranks_at_a_time(std::int64_t rows, std::int64_t k) {
  const std::int64_t fit = static_cast<std::int64_t>(
      kStagingBytes / (20.0 * static_cast<double>(rows)));
  return std::max<std::int64_t>(1, std::min(k, fit));
}

std::int64_t filter_depth(std::int64_t num_features) {
  return round_up(num_features, kFilterDepth);
}

std::int32_t candidates_for(std::int64_t k) {
  // A round brings about k more, the first two k more than that; the rest is
  // for how much that varies.
  return k <= 32     ? 256
         : k <= 64   ? 512
         : k <= 256  ? 1024
         : k <= 512  ? 2048
         : k <= 1024 ? 4096
                     : 8192;
}

std::int64_t fill_blocks_for(std::int64_t num_points, std::int64_t k) {
  const FilterBlocks blocks(num_points);
  const std::int64_t a_block = num_points / blocks.count;
  return ceil_div(k + k / 32 + 8, a_block) | 1;
}

std::int64_t half_depth(const MetricEntry& metric, std::int64_t num_features) {
  return filter_depth(num_features +
                      (metric.is_unit_dot() ? 0 : kNormFeatures));
}

std::int64_t work_depth(const MetricEntry& metric, std::int64_t num_features) {
  return metric.is_elementwise() ? kWorkOfFloats * padded_features(num_features)
                                 : half_depth(metric, num_features);
}

std::vector<std::int32_t> FilterBlocks::places() const {
  std::vector<std::int32_t> places(static_cast<std::size_t>(num_slots()), -1);
  for (std::int64_t block = 0; block < count; ++block)
    for (std::int64_t p = first(block); p < first(block + 1); ++p)
      places[static_cast<std::size_t>(block * kFilterBlock + p -
                                      first(block))] =
          static_cast<std::int32_t>(p);
  return places;
}

double GpuFacts::bytes_usable() const {
  const double free = kUsableShare * bytes_free;
  if (bytes_limit <= 0) return free;
  return free > 0 ? std::min(free, bytes_limit) : bytes_limit;
}

std::vector<FilterJobs> schedule_filter(const FilterRounds& rounds) {
  std::vector<FilterJobs> launches;
  const std::int64_t end_delta =
      rounds.symmetric ? rounds.num_blocks / 2 + 1 : rounds.num_blocks;
  // Where thresholds are known, the first cuts only tighten them.
  const std::int64_t first_round =
      rounds.fill_blocks > 0 ? rounds.fill_blocks
                             : std::max<std::int64_t>(1, end_delta / 32);
  for (std::int64_t first = 0; first < end_delta;) {
    FilterJobs jobs;
    jobs.num_blocks = rounds.num_blocks;
    jobs.first_slab = rounds.first_slab;
    jobs.num_slabs = rounds.num_slabs;
    jobs.symmetric = rounds.symmetric;
    jobs.fill = first == 0 && rounds.fill_blocks > 0;
    jobs.first_delta = first;
    // Row block I meets I - F + 1 .. I + F - 1, each from its own side.
    const std::int64_t to_either_side = rounds.fill_blocks / 2;
    if (jobs.fill && rounds.symmetric) {
      jobs.symmetric = false;
      jobs.shift = rounds.num_blocks - to_either_side;
    }
    // Round 0 is a block with itself; then 1; then as many as there were.
    jobs.end_delta = std::min(
        end_delta, first == 0 ? first_round : 2 * first);
    const std::int64_t deltas = jobs.end_delta - first;
    // Long jobs save starts; several a multiprocessor even out their ends.
    jobs.span = std::max<std::int64_t>(
        1, std::min(ceil_div(rounds.chunk_size, kFilterBlock),
                    deltas * jobs.num_slabs / (4 * rounds.multiprocessors)));
    const std::int64_t num_jobs = jobs.num_slabs * ceil_div(deltas, jobs.span);
    const double work = static_cast<double>(jobs.span) *
                        static_cast<double>(rounds.depth) * kFilterBlock *
                        kFilterBlock;
    const std::int64_t a_launch = round_up(
        std::max<std::int64_t>(1, static_cast<std::int64_t>(kFilterLaunchWork /
                                                            work)),
        round_up(rounds.multiprocessors, 2));
    for (std::int64_t job = 0; job < num_jobs; job += a_launch) {
      jobs.first_job = job;
      jobs.end_job = std::min(job + a_launch, num_jobs);
      jobs.ends_round = jobs.end_job == num_jobs;
      launches.push_back(jobs);
    }
    first = jobs.fill && rounds.symmetric ? to_either_side + 1 : jobs.end_delta;
  }
  return launches;
}

/// How many devices a graph's filter is spread over: no more than help. Where
/// the user says how large a chunk is, as many as have a split.
int filter_devices(const PlanInput& in, const FilterShape& shape) {
  const std::int64_t most = std::max(1, in.num_workers);
  if (in.chunk_size > 0)
    return static_cast<int>(
        std::min(most, ceil_div(in.num_points, round_up(in.chunk_size, kChunkUnit))));
  const double n = static_cast<double>(in.num_points);
  const double work = n * n / 2 * static_cast<double>(shape.depth);
  return static_cast<int>(std::max(
      1.0, std::min(static_cast<double>(most), work / kLeastFilterShare)));
}

FilterShape filter_shape(const PlanInput& in, const GpuFacts& gpus) {
  FilterShape shape;
  shape.usable = (gpus.half_products || in.elementwise) &&
                 in.num_queries == 0 && in.num_points >= kLeastFilteredPoints &&
                 in.num_points <= kMostFilteredPoints &&
                 in.num_features <= kMostFilteredFeatures &&
                 in.k <= kMostFilteredNeighbours;
  if (in.elementwise) {
    shape.name = "differences of single-precision floats";
    const std::int64_t padded = padded_features(in.num_features);
    shape.depth = kWorkOfFloats * padded;
    shape.row_bytes = 4 * padded;
    shape.floats_a_slot = 3;
  } else {
    shape.name = "products of half-precision floats by tensor cores";
    const int forms = in.unit_dot ? 1 : 2;
    shape.depth =
        filter_depth(in.num_features + (in.unit_dot ? 0 : kNormFeatures));
    shape.row_bytes = 2 * shape.depth * forms;
    shape.floats_a_slot = 2;
  }
  shape.capacity = candidates_for(in.k);
  shape.fill_blocks = fill_blocks_for(in.num_points, in.k);
  return shape;
}

namespace {

/// The filter's rows and candidate lists, a slot; the lists of neighbours.
double bytes_filter(const PlanInput& in, const FilterShape& shape) {
  const FilterBlocks blocks(in.num_points);
  return static_cast<double>(blocks.num_slots()) *
             (static_cast<double>(shape.row_bytes) +
              static_cast<double>(shape.floats_a_slot) * 4 +
              static_cast<double>(shape.capacity) * 8 + 12) +
         static_cast<double>(in.num_points) *
             (static_cast<double>(in.k) * 12 + 12);
}

Plan plan_pass(const PlanInput& in, double bytes_usable);

}  // namespace

namespace {

Sizes sizes_of(const PlanInput& in) {
  Sizes s;
  s.rows = in.num_queries == 0 ? in.num_points : in.num_queries;
  s.points = in.num_points;
  s.queries = in.num_queries;
  s.padded = padded_features(in.num_features);
  s.k = in.k;
  s.correlation = in.correlation;
  return s;
}

/// What the float64 pass holds of points that come in panels: one panel of rows
/// and two of columns, what preparing them takes, and where each point stands.
double bytes_panels(const PlanInput& in, std::int64_t chunk) {
  const Sizes s = sizes_of(in);
  const double row_bytes = static_cast<double>(s.padded) * 8 + 12;
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  const std::int64_t columns = std::min(chunk, round_up(s.points, kChunkUnit));
  double bytes = static_cast<double>(rows + 2 * columns) * row_bytes +
                 static_cast<double>(s.points) * 4 +
                 bytes_preparing(s.points, in.num_features, in.unit_dot);
  if (s.queries > 0)
    bytes += static_cast<double>(s.queries) * 4 +
             bytes_preparing(s.queries, in.num_features, in.unit_dot);
  return bytes;
}

double bytes_working_streamed(const Sizes& s, std::int64_t chunk) {
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  return bytes_working(s, chunk) +
         (s.correlation ? static_cast<double>(rows) * static_cast<double>(s.k) *
                              8
                        : 0.0);
}

/// The float64 pass with the largest chunks that fit, or else the smallest
/// there are.
Plan plan_panels(const PlanInput& in, double bytes_usable) {
  const Sizes s = sizes_of(in);
  std::int64_t chunk = in.chunk_size > 0 ? round_up(in.chunk_size, kChunkUnit)
                                         : largest_chunk(s.padded);
  chunk = std::min(chunk, round_up(std::max(s.rows, s.points), kChunkUnit));
  while (chunk > kChunkUnit &&
         bytes_panels(in, chunk) + bytes_working_streamed(s, chunk) >
             bytes_usable)
    chunk = round_up(chunk * 3 / 4, kChunkUnit) == chunk
                ? chunk - kChunkUnit
                : round_up(chunk * 3 / 4, kChunkUnit);
  PlanInput cut = in;
  cut.chunk_size = chunk;
  Plan p = plan_pass(cut, bytes_usable);
  p.streamed = true;
  // The columns once for each split of rows, and again for the correlations.
  p.num_passes = 1 + p.num_splits * (in.correlation ? 2 : 1);
  p.bytes_prepared = bytes_panels(in, chunk);
  p.bytes_working = bytes_working_streamed(s, chunk);
  p.bytes_peak = p.bytes_prepared + p.bytes_working;
  return p;
}

Plan plan_filter(const PlanInput& in, const FilterShape& shape,
                 double bytes_usable) {
  PlanInput shared = in;
  shared.num_workers = filter_devices(in, shape);
  const double filter = bytes_filter(in, shape);
  Plan p = plan_pass(shared, bytes_usable <= 0
                                 ? 0
                                 : std::max(1.0, bytes_usable - filter));
  p.filtered = true;
  p.filter = shape.name;
  p.bytes_filter = filter;
  p.bytes_peak += filter;
  p.num_chunks = p.num_splits * (p.num_splits + 1) / 2;
  p.num_workers = shared.num_workers;
  p.num_segments = shared.num_workers;
  p.splits_per_segment = ceil_div(p.num_splits, p.num_segments);
  return p;
}

}  // namespace

Plan plan_cuda(const PlanInput& in, const GpuFacts& gpus) {
  const double usable = gpus.bytes_usable();
  const auto fits = [&](const Plan& p) {
    return usable <= 0 || p.bytes_peak <= usable;
  };
  const FilterShape shape = filter_shape(in, gpus);
  if (shape.usable) {
    const Plan p = plan_filter(in, shape, usable);
    if (fits(p)) return p;
  }
  const Plan p = plan_pass(in, usable);
  return fits(p) ? p : plan_panels(in, usable);
}

namespace {

Plan plan_pass(const PlanInput& in, double bytes_usable) {
  const Sizes s = sizes_of(in);
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

}  // namespace

}  // namespace cuda
}  // namespace fsknn
