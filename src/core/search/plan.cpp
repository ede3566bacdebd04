#include "core/search/plan.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/select.hpp"
#include "core/contract/scaling.hpp"
#include "core/search/by_groups.hpp"

namespace fsknn {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}

// A micro-tile is 8 rows by 3 panels of 16 columns. A chunk is a whole number
// of micro-tiles in both directions.
constexpr std::int64_t kChunkUnit = 48;
// 384 rows of 300 features in 16 bits are 230 KB. Both sides of a chunk fit in
// a core's second-level cache of 1 MiB (and nearly in 512 KiB).
constexpr std::int64_t kLargestChunk = 384;
constexpr std::int64_t kChunkBytes = 256 << 10;
// If rows are made again for the exact step, each worker keeps those of two
// chunks.
constexpr std::int64_t kLargestMadeChunk = 4096 / kChunkUnit * kChunkUnit;

std::int64_t automatic_chunk(std::int64_t n, std::int64_t padded,
                             int num_workers) {
  std::int64_t chunk = kChunkBytes / (2 * padded) / kChunkUnit * kChunkUnit;
  chunk = std::min(chunk, kLargestChunk);
  // There are enough chunks to keep every worker busy to the end.
  const std::int64_t wanted_splits = 8 + 2 * num_workers;
  chunk = std::min(chunk, round_up(n / wanted_splits, kChunkUnit));
  return std::max(chunk, kChunkUnit);
}

/// Bytes per feature in the filter's form.
double bytes_of_form(FilterKind filter) {
  switch (filter) {
    case FilterKind::none: return 0;
    case FilterKind::product:
    case FilterKind::table: return 2;
    case FilterKind::difference:
    case FilterKind::largest:
    case FilterKind::overlap: return 4;
    case FilterKind::bits: return 1.0 / 8;
  }
  throw_unknown("filter", static_cast<int>(filter));
}

/// Bytes of a list of neighbours: (distance, index) and limits.
double bytes_of_list(const PlanInput& in) {
  return static_cast<double>(list_room(in.k, in.num_points)) * 12 + 16;
}

/// Bytes per point in a block, in both forms.
double bytes_in_block(const PlanInput& in, double padded) {
  return padded * (8 + bytes_of_form(in.filter)) + 40;
}

/// Points per block: as many as leave room for two blocks, in blocks of equal
/// size up to rounding to whole chunks.
std::int64_t points_of_block(const PlanInput& in, const Plan& p,
                             double working) {
  const std::int64_t all = std::max(in.num_points, in.num_queries);
  std::int64_t fit = all;
  if (in.max_memory > 0) {
    const double room = std::max(in.max_memory - working, 0.0);
    fit = static_cast<std::int64_t>(std::min<double>(
        room / 2 / bytes_in_block(in, static_cast<double>(p.padded_features)),
        static_cast<double>(all)));
  }
  fit = std::max(fit / p.chunk_size * p.chunk_size, p.chunk_size);
  return round_up(ceil_div(all, ceil_div(all, fit)), p.chunk_size);
}

double pairs_among(std::int64_t points) {
  const double n = static_cast<double>(points);
  return n * (n - 1) / 2;
}

std::int64_t lists_of_answer(const PlanInput& in) {
  const std::int64_t count = static_cast<std::int64_t>(in.group_sizes.size());
  switch (in.lists) {
    case PointGroups::Lists::each: return count;
    case PointGroups::Lists::others: return count - 1;
    case PointGroups::Lists::together: return 1;
  }
  throw_unknown("lists", static_cast<int>(in.lists));
}

void sum_bytes(Plan& p) {
  p.bytes_peak =
      p.bytes_prepared + p.bytes_filter + p.bytes_result + p.bytes_working;
}

Plan plan_plain(const PlanInput& in) {
  const bool graph = in.num_queries == 0;
  const std::int64_t rows = graph ? in.num_points : in.num_queries;
  Plan p;
  p.num_points = in.num_points;
  p.num_features = in.num_features;
  p.num_queries = in.num_queries;
  p.k = in.k;
  p.num_workers = std::max(1, in.num_workers);
  p.data_block = kLanes;
  p.padded_features = padded_features(in.num_features);
  const std::int64_t most = round_up(std::max(rows, in.num_points), kChunkUnit);
  p.chunk_size = in.chunk_size > 0
                     ? round_up(std::min(in.chunk_size, most), kChunkUnit)
                     : automatic_chunk(std::max(rows, in.num_points),
                                       p.padded_features, p.num_workers);
  if (in.most_chunks > 0)
    p.chunk_size = std::max(
        p.chunk_size, round_up(ceil_div(most, in.most_chunks), kChunkUnit));
  if (in.rows_made) p.chunk_size = std::min(p.chunk_size, kLargestMadeChunk);
  if (in.on_disk && in.max_memory > 0) {
    const double lists = static_cast<double>(rows) * bytes_of_list(in) +
                         static_cast<double>(in.num_points) * 32;
    const double fit =
        std::max(in.max_memory - lists, 0.0) / 2 /
        bytes_in_block(in, static_cast<double>(p.padded_features));
    if (fit < static_cast<double>(p.chunk_size))
      p.chunk_size = std::max(
          static_cast<std::int64_t>(fit) / kChunkUnit * kChunkUnit, kChunkUnit);
  }
  p.num_splits = ceil_div(rows, p.chunk_size);
  p.chunks_per_split = ceil_div(in.num_points, p.chunk_size);
  p.padded_queries = p.num_splits * p.chunk_size;
  p.padded_points = p.chunks_per_split * p.chunk_size;
  p.num_segments = std::min<std::int64_t>(p.num_workers, p.num_splits);
  p.splits_per_segment = ceil_div(p.num_splits, p.num_segments);
  p.num_chunks = graph ? p.num_splits * (p.num_splits + 1) / 2
                       : p.num_splits * p.chunks_per_split;
  p.num_pairs = graph ? pairs_among(in.num_points)
                      : static_cast<double>(in.num_points) *
                            static_cast<double>(in.num_queries);

  const double n = static_cast<double>(in.num_points);
  const double queries = static_cast<double>(in.num_queries);
  const double d = static_cast<double>(p.padded_features);
  const double k = static_cast<double>(in.k);
  const double places =
      static_cast<double>(p.padded_points + (graph ? 0 : p.padded_queries));
  p.bytes_prepared =
      in.rows_made ? (n + queries) * 8 + static_cast<double>(p.chunk_size) * 2 *
                                             p.num_workers * d * 8
                   : (n + queries) * (d + 1) * 8;
  p.bytes_prepared += in.bytes_covariates;
  p.bytes_filter = places * d * bytes_of_form(in.filter);
  if (in.pairwise) {
    const double f = static_cast<double>(in.num_features);
    p.bytes_prepared = (n + queries) * (d * 8 + std::ceil(f / 64) * 8 + 4);
    // The filter holds int16 and float values. For each row it lists either the
    // missing features or the known ones, whichever are fewer. Rows are in six
    // classes by their missing values, with a bound each.
    p.bytes_filter = in.filter == FilterKind::product
                         ? places * ((f + 1) * 2 + f * 4 + f / 2 * 4 + 90)
                         : 0.0;
  }
  p.bytes_result = static_cast<double>(rows) * k * (in.correlation ? 20 : 12);
  // Lists of (distance, index), thresholds and filter parameters, order.
  p.bytes_working = static_cast<double>(rows) * bytes_of_list(in) +
                    places * 24 + (n + queries) * 8;
  if (in.on_disk) {
    p.streamed = true;
    p.block_points = points_of_block(in, p, p.bytes_working);
    const double held = 2 * static_cast<double>(p.block_points);
    p.bytes_prepared = held * (d + 1) * 8;
    p.bytes_filter = held * d * bytes_of_form(in.filter);
    const std::int64_t blocks = ceil_div(in.num_points, p.block_points);
    // One pass is for the filter's bound. Comparing all pairs of blocks of a
    // graph takes about half a pass per block.
    p.num_passes = 1 + (graph ? ceil_div(blocks, 2)
                              : ceil_div(in.num_queries, p.block_points));
  }
  sum_bytes(p);
  return p;
}

double bytes_of_answer(const PlanInput& in, std::int64_t rows,
                       std::int64_t lists) {
  return static_cast<double>(rows) * static_cast<double>(in.k * lists) *
         (in.correlation ? 20 : 12);
}

/// Plans one search where each group has its own chunks, which are compared
/// with those of the others.
Plan plan_groups_at_once(const PlanInput& in) {
  using Lists = PointGroups::Lists;
  const std::int64_t count = static_cast<std::int64_t>(in.group_sizes.size());
  PlanInput part = in;
  part.group_sizes.clear();
  // Groups do not share chunks.
  part.num_points = std::max<std::int64_t>(1, in.num_points / count);
  const std::int64_t chunk = plan_plain(part).chunk_size;
  const bool together = in.lists == Lists::together;
  const bool separately = together && in.group_sizes.size() > kMostGroupsMet;
  part.num_points = in.num_points;
  part.chunk_size = chunk;
  Plan p = plan_plain(part);
  p.chunk_size = chunk;
  double between = pairs_among(in.num_points);
  std::int64_t chunks = 0, own = 0;
  for (const std::int64_t size : in.group_sizes) {
    const std::int64_t of_group = ceil_div(size, chunk);
    chunks += of_group;
    own += of_group * (of_group + 1) / 2;
    between -= pairs_among(size);
  }
  if (!separately) {
    p.num_splits = chunks;
    p.chunks_per_split = chunks;
    p.num_chunks = chunks * (chunks + 1) / 2;
    if (in.lists != Lists::each) p.num_chunks -= own;
    p.padded_points = chunks * chunk;
    p.padded_queries = p.padded_points;
    p.num_segments = std::min<std::int64_t>(p.num_workers, p.num_splits);
    p.splits_per_segment = ceil_div(p.num_splits, p.num_segments);
    // The filter's rows are copied in the order of the groups.
    p.bytes_filter *= 2;
  }
  if (in.lists != Lists::each && !separately) p.num_pairs = between;
  p.bytes_result = bytes_of_answer(in, in.num_points, lists_of_answer(in));
  // A list for each point's own group exists even if it is not used.
  const double more = static_cast<double>(together ? 0 : count - 1);
  p.bytes_working +=
      more * static_cast<double>(in.num_points) * bytes_of_list(in);
  sum_bytes(p);
  return p;
}

/// Plans searches without groups, as in core/search/by_groups.hpp.
Plan plan_group_by_group(const PlanInput& in) {
  using Lists = PointGroups::Lists;
  const bool graph = in.num_queries == 0;
  const bool together = in.lists == Lists::together;
  Plan most;
  std::int64_t chunks = 0;
  double pairs = 0;
  const auto add = [&](std::int64_t points, std::int64_t queries) {
    PlanInput part = in;
    part.group_sizes.clear();
    part.num_points = points;
    part.num_queries = queries;
    if (points == 0) return;
    const Plan p = plan_plain(part);
    chunks += p.num_chunks;
    pairs += p.num_pairs;
    if (p.bytes_peak > most.bytes_peak) most = p;
  };
  for (const std::int64_t size : in.group_sizes) {
    const std::int64_t others = in.num_points - size;
    if (graph && in.lists == Lists::each) add(size, 0);
    const std::int64_t asking =
        !graph ? in.num_queries : (together ? size : others);
    if (asking > 0) add(together ? others : size, asking);
  }
  Plan p = most;
  p.num_points = in.num_points;
  p.num_queries = in.num_queries;
  p.num_chunks = chunks;
  p.num_pairs = pairs;
  const std::int64_t rows = graph ? in.num_points : in.num_queries;
  p.bytes_result = bytes_of_answer(in, rows, lists_of_answer(in));
  // The lists of one search before they are copied to the answer.
  p.bytes_working += bytes_of_answer(in, rows, 1);
  sum_bytes(p);
  return p;
}

constexpr const char *kAllPairs = "all", *kHasty = "hasty";

/// The words after the name of an instruction set.
std::vector<std::string> words_asked(const Request& request) {
  const std::string& set = request.instruction_set;
  std::vector<std::string> words;
  for (std::size_t at = set.find('/'); at != std::string::npos;) {
    const std::size_t end = set.find('/', at + 1);
    words.push_back(set.substr(at + 1, end - at - 1));
    at = end;
  }
  return words;
}

bool asked_for(const Request& request, const char* word) {
  const std::vector<std::string> words = words_asked(request);
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

AskedNumbers asked_numbers(const Request& request) {
  for (const std::string& word : words_asked(request)) {
    const FilterNumbers numbers = numbers_named(word.c_str());
    if (numbers != FilterNumbers::none) return {numbers, bits_of(numbers)};
    if (word == "8") return {numbers, 8};
    if (word == "16") return {numbers, 16};
    if (word == "32") return {numbers, 32};
    // Other words choose the order of points (asked_order()),
    // thresholds that are deliberately too low, or all pairs.
    if (word != "sorted" && word != "tree" && word != "scattered" &&
        word != kHasty && word != kAllPairs)
      throw std::invalid_argument("no filter of \"" + word + "\"");
  }
  return {};
}

AskedOrder asked_order(const Request& request) {
  // An engine appends "scattered" where a tree that was asked for cannot be.
  if (asked_for(request, "scattered")) return AskedOrder::scattered;
  if (asked_for(request, "sorted")) return AskedOrder::sorted;
  return asked_for(request, "tree") ? AskedOrder::tree : AskedOrder::as_it_pays;
}

bool asked_for_all_pairs(const Request& request) {
  return asked_for(request, kAllPairs);
}

bool asked_for_haste(const Request& request) {
  return asked_for(request, kHasty);
}

PlanInput plan_input(const Request& request, std::int64_t num_points,
                     std::int64_t num_features, std::int64_t num_queries) {
  PlanInput input;
  input.num_points = num_points;
  input.num_features = num_features;
  input.num_queries = num_queries;
  input.k = request.k;
  input.chunk_size = request.chunk_size;
  input.num_workers = request.num_threads;
  input.filter = request.metric->filter;
  input.unit_dot = request.metric->is_unit_dot();
  input.alleles = static_cast<int>(request.metric->table.copies);
  input.squares =
      request.metric->accumulation == Accumulation::squared_difference;
  input.asked = asked_numbers(request);
  input.order = asked_order(request);
  input.all_pairs = asked_for_all_pairs(request);
  input.pairwise = request.na_pairwise;
  input.max_memory = request.max_memory;
  if (request.covariates != nullptr)
    input.bytes_covariates = request.covariates->bytes();
  if (request.groups != nullptr) {
    input.lists = request.groups->lists();
    input.group_sizes = sizes_of(*request.groups, request.skip);
  }
  return input;
}

Plan plan_cpu(const PlanInput& in) {
  if (in.group_sizes.empty()) {
    Plan p = plan_plain(in);
    if (in.pairwise || in.on_disk) return p;
    // The filter's rows may be copied in the order of the points' keys. Instead
    // tiles of 8 rows and of 48 columns may have boxes, of two floats for each
    // feature. These take less than the copy.
    if ((in.filter == FilterKind::product && !in.unit_dot) ||
        in.filter == FilterKind::difference || in.filter == FilterKind::overlap)
      p.bytes_filter *= 2;
    else if (!in.rows_made && (in.unit_dot || in.filter == FilterKind::largest))
      p.bytes_filter += static_cast<double>(in.num_points + in.num_queries) *
                        static_cast<double>(in.num_features) * 8.0 *
                        (1.0 / 8 + 1.0 / 48);
    sum_bytes(p);
    return p;
  }
  const bool at_once = in.num_queries == 0 && !in.pairwise && !in.on_disk;
  return at_once ? plan_groups_at_once(in) : plan_group_by_group(in);
}

}  // namespace fsknn
