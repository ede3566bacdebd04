#include "cuda/plan/plan.hpp"

#include <algorithm>

#include "cuda/plan/panels.hpp"

namespace fsknn {
namespace cuda {
namespace {

// 8,192 x 8,192 distances are 512 MiB: enough to fill any GPU, little enough to
// fit one, and a fraction of a second.
constexpr std::int64_t kLargestChunk = 8192;
// With very many features a chunk is smaller, so that an interrupt still waits
// for a fraction of a second: this many products and sums.
constexpr double kLargestChunkWork = 1.4e11;
// The distance kernel's grid has no more tiles of rows.
constexpr std::int64_t kMostChunk = 65535 * kChunkUnit;
// Smaller chunks are not made only to give every GPU one.
constexpr std::int64_t kLeastShare = 1024;
// What the context, the modules and fragmentation may take of the free memory.
constexpr double kUsableShare = 0.9;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}

// So few queries, one tile's rows, meet each point once: it is prepared, met and
// dropped.
constexpr std::int64_t kFewQueries = kChunkUnit;
// Below this many points the float64 pass is as fast, and beyond so many
// features the filter's error nears what it is to tell apart: of products, whose
// error hardly grows, and of differences in floats.
constexpr std::int64_t kLeastFilteredPoints = 4096;
constexpr std::int64_t kLeastFilteredQueries = 256;
constexpr std::int64_t kMostFilteredPoints = std::int64_t{1} << 30;
constexpr std::int64_t kMostMultipliedFeatures = 262144;
constexpr std::int64_t kMostSubtractedFeatures = 32768;
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
  std::int64_t rows, points, given, queries, features, padded, k;
  bool correlation, ranked;
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
         static_cast<double>(s.given + s.queries) * 4 +
         bytes_preparing(std::max(s.given, s.queries), s.features, s.ranked);
}

/// Pieces of the answer on their way to the host, of lists of `rows` rows.
double bytes_answer(std::int64_t rows, std::int64_t k) {
  return static_cast<double>(
      std::max(AnswerShape(rows, k, true).bytes_device(),
               AnswerShape(rows, k, false).bytes_device()));
}

double bytes_working(const Sizes& s, std::int64_t chunk) {
  const std::int64_t rows = std::min(chunk, round_up(s.rows, kChunkUnit));
  const std::int64_t columns = std::min(chunk, round_up(s.points, kChunkUnit));
  const double height = static_cast<double>(rows);
  return height * static_cast<double>(columns) * 8 +
         height * static_cast<double>(s.k) * 12 + bytes_answer(rows, s.k);
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
  const std::int64_t fewest = ceil_div(k + k / 32 + 8, a_block) | 1;
  // The k-th of one block's is near the middle of all: the next round would
  // bring half of its pairs.
  return k > kFilterBlock / 4 ? std::max<std::int64_t>(3, fewest) : fewest;
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
        end_delta,
        first == 0 ? first_round
                   : std::max(first + 1, static_cast<std::int64_t>(
                                             static_cast<double>(first) *
                                             rounds.growth)));
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
  // None without a block.
  const std::int64_t most =
      std::min<std::int64_t>(std::max(1, in.num_workers),
                             FilterBlocks(in.num_points).count);
  if (in.num_queries > 0)
    return static_cast<int>(
        std::min(most, ceil_div(in.num_queries, kLeastFilteredQueries)));
  if (in.chunk_size > 0)
    return static_cast<int>(
        std::min(most, ceil_div(in.num_points, round_up(in.chunk_size, kChunkUnit))));
  const double n = static_cast<double>(in.num_points);
  const double work = n * n / 2 * static_cast<double>(shape.depth);
  return static_cast<int>(std::max(
      1.0, std::min(static_cast<double>(most), work / kLeastFilterShare)));
}

std::int64_t queries_at_a_time(std::int64_t num_queries, std::int64_t k) {
  constexpr std::int64_t list_bytes = std::int64_t{1} << 30;
  const std::int64_t most = std::max(
      kFilterBlock, list_bytes / (8 * candidates_for(k)) / kFilterBlock *
                        kFilterBlock);
  return std::min(num_queries, most);
}

WideRows::WideRows(std::int64_t num_slots, std::int32_t list_capacity,
                   std::int64_t form_bytes, std::int64_t padded)
    : capacity(kFilterBlock) {
  while (2 * capacity <= std::min(kMostCandidates, 16 * list_capacity))
    capacity *= 2;
  constexpr double bytes = 64.0 * (1 << 20);
  constexpr std::int64_t most = 64 * kFilterBlock;
  // In the filter's form and in doubles, and what is kept of each.
  row_bytes = static_cast<double>(form_bytes + padded * 8 + 32);
  const std::int64_t fit = static_cast<std::int64_t>(bytes / row_bytes);
  const std::int64_t have_lists = num_slots * list_capacity / capacity;
  rows = std::max(kFilterBlock, std::min({most, fit, have_lists}) /
                                    kFilterBlock * kFilterBlock);
  own_lists = have_lists < kFilterBlock;
}

FilterShape filter_shape(const PlanInput& in, const GpuFacts& gpus) {
  FilterShape shape;
  const bool elementwise = in.filter != FilterKind::product;
  shape.usable = (gpus.half_products || elementwise) &&
                 in.filter != FilterKind::none &&
                 (in.num_queries == 0 ||
                  in.num_queries >= kLeastFilteredQueries) &&
                 in.num_points >= kLeastFilteredPoints &&
                 in.num_points <= kMostFilteredPoints &&
                 in.num_features <= (elementwise
                                         ? kMostSubtractedFeatures
                                         : kMostMultipliedFeatures) &&
                 in.k <= kMostFilteredNeighbours;
  if (elementwise) {
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
    if (has_stretches(shape.depth))
      shape.bytes_sums = static_cast<double>(gpus.multiprocessors) *
                         static_cast<double>(kStretchBytes);
  }
  shape.capacity = candidates_for(in.k);
  shape.fill_blocks = fill_blocks_for(in.num_points, in.k);
  return shape;
}

namespace {

/// The filter's rows and candidate lists, a slot; the lists of neighbours.
double bytes_filter(const PlanInput& in, const FilterShape& shape) {
  const double slots =
      static_cast<double>(FilterBlocks(in.num_points).num_slots());
  const double form = static_cast<double>(shape.row_bytes) +
                      static_cast<double>(shape.floats_a_slot) * 4;
  const double lists = static_cast<double>(shape.capacity) * 8 + 16;
  if (in.num_queries > 0) {
    const std::int64_t rows = queries_at_a_time(in.num_queries, in.k);
    return shape.bytes_sums + slots * (form + 8) +
           static_cast<double>(in.num_queries) * 4 +
           static_cast<double>(query_slots(rows)) * (form + lists + 16) +
           static_cast<double>(rows) * static_cast<double>(in.k) * 12;
  }
  return shape.bytes_sums + slots * (form + lists) +
         static_cast<double>(in.num_points) *
             (static_cast<double>(in.k) * 12 + 16);
}

Plan plan_pass(const PlanInput& in, double bytes_usable);

}  // namespace

namespace {

Sizes sizes_of(const PlanInput& in) {
  Sizes s;
  s.rows = in.num_queries == 0 ? in.num_points : in.num_queries;
  s.points = in.num_points;
  s.given = std::max(in.num_points, in.num_given);
  s.queries = in.num_queries;
  s.features = in.num_features;
  s.padded = padded_features(in.num_features);
  s.k = in.k;
  s.correlation = in.correlation;
  s.ranked = in.unit_dot;  // or may be
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
                 static_cast<double>(s.given) * 4 +
                 bytes_preparing(s.given, in.num_features, in.unit_dot);
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
  Plan p = plan_pass(cut, bytes_usable);
  p.streamed = true;
  // The columns once for each split of rows, and again for the correlations.
  p.num_passes = 1 + p.num_splits * (in.correlation ? 2 : 1);
  p.bytes_prepared = bytes_panels(in, chunk);
  p.bytes_working = bytes_working_streamed(s, chunk);
  p.bytes_peak = p.bytes_prepared + p.bytes_working;
  return p;
}

std::int64_t power_of_two_from(std::int64_t least, std::int64_t value) {
  std::int64_t power = least;
  while (power < value) power *= 2;
  return power;
}

}  // namespace

namespace {

/// With lists of that capacity.
FilterStreaming streaming_with(const PlanInput& in, const FilterShape& shape,
                               double bytes_usable, std::int32_t capacity) {
  FilterStreaming s;
  const Sizes sizes = sizes_of(in);
  const std::int64_t most_slots = FilterBlocks(in.num_points).num_slots();
  const double slots = static_cast<double>(most_slots);
  const double points = static_cast<double>(in.num_points);
  const double row_bytes = static_cast<double>(sizes.padded) * 8 + 12;
  s.capacity = capacity;
  s.fill_blocks = std::max<std::int64_t>(3, shape.fill_blocks);
  const std::int64_t filled = s.fill_blocks * kFilterBlock;
  s.fill_capacity = static_cast<std::int32_t>(
      filled <= 1024 ? filled : power_of_two_from(kFilterBlock, filled));
  const auto rows_in = [&](double bytes, double a_row, std::int64_t unit,
                           std::int64_t most) {
    const std::int64_t rows =
        static_cast<std::int64_t>(bytes / a_row) / unit * unit;
    return std::max(unit, std::min(rows, most));
  };
  // Panels and their like: 8 MiB, or less where that is much of the limit.
  const std::int64_t all = round_up(in.num_points, kChunkUnit);
  const double piece = std::min(8.0 * (1 << 20), bytes_usable / 32);
  s.stream_rows = rows_in(piece, row_bytes, kChunkUnit, all);
  s.fill_slots =
      rows_in(4 * piece, 8.0 * s.fill_capacity, kFilterBlock, most_slots);
  s.redo_rows = rows_in(4 * piece,
                        row_bytes + static_cast<double>(s.stream_rows) * 8 +
                            static_cast<double>(in.k) * 20,
                        kChunkUnit, 4096);
  s.write_rows =
      rows_in(2 * piece, static_cast<double>(in.k) * 20, kChunkUnit, all);
  s.bytes_usable = bytes_usable;
  s.bytes_fixed = 2 * static_cast<double>(s.stream_rows) * row_bytes +
                  bytes_preparing(std::max(in.num_points, in.num_given),
                                  in.num_features, in.unit_dot) +
                  (in.num_given > in.num_points
                       ? 4 * static_cast<double>(in.num_given)
                       : 0) +
                  bytes_answer(in.num_points, in.k) + 4 * points +
                  (in.num_workers > 1 ? static_cast<double>(kStagedBytes) : 0);
  const double lists = slots * static_cast<double>(s.capacity) * 8;
  // Where each point stands, and what it has to reach.
  const double small = 20 * slots + 36 * points;
  const double filter =
      shape.bytes_sums + slots * (static_cast<double>(shape.row_bytes) +
                                  static_cast<double>(shape.floats_a_slot) * 4);
  const double filling =
      static_cast<double>(s.fill_slots) * s.fill_capacity * 8;
  // Candidates are little more than k a point; there is room for more.
  const double pairs = points * static_cast<double>(in.k) * 1.25 * 12;
  const double redo = 4 * piece;
  const auto let_stay = [&] {
    const double left =
        bytes_usable - s.bytes_fixed - 20 * points - pairs - redo / 8;
    if (left > 0)
      s.stay_rows = std::min(all, static_cast<std::int64_t>(left / row_bytes) /
                                      kChunkUnit * kChunkUnit);
  };
  let_stay();
  // Lists are written out from the memory of what stays, if they fit there.
  const double written = static_cast<double>(s.write_rows * in.k) * 24;
  if (static_cast<double>(s.stay_rows * sizes.padded) * 8 < written) {
    s.bytes_fixed += written;
    let_stay();
  }
  const double settling =
      20 * points + pairs +
      std::max(redo, static_cast<double>(s.stay_rows) * row_bytes);
  // The answer's pieces come last; then, while rows are filtered again, the
  // filter's own are still there beside the candidates' numbers.
  const double unanswered = s.bytes_fixed - bytes_answer(in.num_points, in.k);
  const WideRows wide(most_slots, capacity,
                      shape.row_bytes + 4 * shape.floats_a_slot, 0);
  // The filter's rows are made of panels that come by where its lists will be;
  // of very many features the least panel is longer than those.
  const double made = 2.0 * kChunkUnit * row_bytes;
  s.bytes_peak = std::max(
      {unanswered + small + filter + std::max(lists + filling, made),
       unanswered + small + filter + lists + 8 * points + pairs / 3 +
           wide.bytes(),
       unanswered + small + lists + pairs, s.bytes_fixed + settling});
  // So short a stay would read the points very often.
  s.fits = s.bytes_peak <= bytes_usable &&
           s.stay_rows >= std::max(s.stream_rows, in.num_points / 64);
  return s;
}

}  // namespace

FilterStreaming filter_streaming(const PlanInput& in, const FilterShape& shape,
                                 double bytes_usable) {
  // A list is cut to little more than k; a round of growth 1.5 brings about two
  // thirds of k more, and one in very many rows half as much again.
  const std::int64_t least = std::max<std::int64_t>(64, in.k * 16 / 5);
  std::vector<std::int64_t> capacities;
  for (std::int64_t c = std::min<std::int64_t>(1024, shape.capacity); c > 128;
       c /= 2)
    capacities.push_back(c);
  for (std::int64_t c = 128; c >= 64; c -= 16) capacities.push_back(c);
  FilterStreaming best;
  for (const std::int64_t capacity : capacities) {
    if (capacity < least) break;
    best = streaming_with(in, shape, bytes_usable,
                          static_cast<std::int32_t>(capacity));
    if (best.fits) break;
  }
  return best;
}

namespace {

Plan plan_filter(const PlanInput& in, const FilterShape& shape,
                 double bytes_usable, std::int64_t chunk_size) {
  PlanInput shared = in;
  shared.num_workers = filter_devices(in, shape);
  shared.chunk_size = chunk_size;
  const double filter = bytes_filter(in, shape) +
                        (shared.num_workers > 1 && in.num_queries == 0
                             ? static_cast<double>(kStagedBytes)
                             : 0.0);
  Plan p = plan_pass(shared, bytes_usable <= 0
                                 ? 0
                                 : std::max(1.0, bytes_usable - filter));
  p.filtered = true;
  p.filter = shape.name;
  // All rows are written at once, and those done again gathered, for a wider
  // filter or in doubles.
  const std::int64_t rows = p.num_queries > 0 ? p.num_queries : p.num_points;
  const WideRows wide(in.num_queries > 0
                          ? query_slots(queries_at_a_time(rows, in.k))
                          : FilterBlocks(in.num_points).num_slots(),
                      shape.capacity,
                      shape.row_bytes + 4 * shape.floats_a_slot,
                      p.padded_features);
  const double more =
      bytes_answer(rows, p.k) +
      std::max(
          static_cast<double>(
              std::min(p.chunk_size, round_up(rows, kChunkUnit))) *
              (static_cast<double>(p.padded_features) * 8 + 16),
          wide.bytes());
  p.bytes_working += more;
  p.bytes_peak += more;
  p.bytes_filter = filter;
  p.bytes_peak += filter;
  p.num_chunks = in.num_queries > 0 ? p.num_splits * p.chunks_per_split
                                    : p.num_splits * (p.num_splits + 1) / 2;
  p.num_workers = shared.num_workers;
  p.num_segments = shared.num_workers;
  p.splits_per_segment = ceil_div(p.num_splits, p.num_segments);
  return p;
}

Plan plan_filter_streamed(const PlanInput& in, const FilterShape& shape,
                          const FilterStreaming& streaming) {
  Plan p = plan_filter(in, shape, 0, in.chunk_size);
  p.streamed = true;
  // Once for the filter's rows; then each stretch that stays, and all after it.
  const std::int64_t stretches = ceil_div(in.num_points, streaming.stay_rows);
  p.num_passes = 2 + stretches / 2;
  p.bytes_filter = shape.bytes_sums +
                   static_cast<double>(FilterBlocks(in.num_points).num_slots()) *
                   (static_cast<double>(shape.row_bytes) +
                    static_cast<double>(shape.floats_a_slot) * 4 +
                    static_cast<double>(streaming.capacity) * 8);
  p.bytes_prepared = static_cast<double>(streaming.stay_rows) *
                     (static_cast<double>(p.padded_features) * 8 + 12);
  p.bytes_working = streaming.bytes_fixed;
  p.bytes_peak = streaming.bytes_peak;
  return p;
}

}  // namespace

Plan plan_cuda(const PlanInput& in, const GpuFacts& gpus) {
  const double usable = gpus.bytes_usable();
  const auto fits = [&](const Plan& p) {
    return usable <= 0 || p.bytes_peak <= usable;
  };
  // Each point is needed once: none needs to be kept.
  if (in.num_queries > 0 && in.num_queries <= kFewQueries &&
      in.num_points > kLargestChunk)
    return plan_panels(in, usable);
  const FilterShape shape = filter_shape(in, gpus);
  // Chunks are for rows done again only: smaller ones do as well.
  for (std::int64_t chunk = in.chunk_size; shape.usable;) {
    const Plan p = plan_filter(in, shape, usable, chunk);
    if (fits(p)) return p;
    if (p.chunk_size <= kLeastShare) break;
    chunk = p.chunk_size / 2;
  }
  if (shape.usable && in.num_queries == 0) {
    const FilterStreaming streaming = filter_streaming(in, shape, usable);
    if (streaming.fits) return plan_filter_streamed(in, shape, streaming);
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
                     ? round_up(std::min({in.chunk_size, most, kMostChunk}),
                                kChunkUnit)
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
