#include "cuda/plan/plan.hpp"

#include <algorithm>

#include "cuda/plan/all_pairs.hpp"
#include "cuda/plan/group_pairs.hpp"
#include "cuda/plan/tile_tree.hpp"

namespace fsknn {
namespace cuda {
namespace {

// So few queries fill one tile's rows and need each point once: it is prepared,
// compared and dropped.
constexpr std::int64_t kFewQueries = kChunkUnit;
// The least work of a device in the filter, in products and sums: some
// milliseconds. With less, synchronising devices takes as long as they save.
constexpr double kLeastFilterShare = 5.0e11;
constexpr const char* kWithoutFilter =
    "none (all pairs in double, on tensor cores)";

/// The number of devices that share a graph's filter, as far as they help. If
/// the user sets the chunk size, as many as have a split.
int filter_devices(const PlanInput& in, const FilterShape& shape) {
  // Each device needs a block.
  const std::int64_t most = std::min<std::int64_t>(
      std::max(1, in.num_workers), FilterBlocks(in.num_points).count);
  if (in.num_queries > 0)
    return static_cast<int>(
        std::min(most, ceil_div(in.num_queries, kLeastFilteredQueries)));
  if (in.chunk_size > 0)
    return static_cast<int>(
        std::min(most, ceil_div(in.num_points, whole_tiles(in.chunk_size))));
  const double n = static_cast<double>(in.num_points);
  const double work = n * n / 2 * static_cast<double>(shape.rows.work);
  return static_cast<int>(std::max(
      1.0, std::min(static_cast<double>(most), work / kLeastFilterShare)));
}

CudaPlan plan_filter(const PlanInput& in, const FilterShape& shape,
                     double bytes_usable, std::int64_t chunk_size) {
  PlanInput shared = in;
  shared.num_workers = filter_devices(in, shape);
  shared.chunk_size = chunk_size;
  const double filter = bytes_filter(shared, shape) +
                        (shared.num_workers > 1 && in.num_queries == 0
                             ? static_cast<double>(kStagedBytes)
                             : 0.0);
  CudaPlan p = {
      plan_all_pairs(
          shared, bytes_usable <= 0 ? 0 : std::max(1.0, bytes_usable - filter)),
      shape,
      {}};
  p.filtered = true;
  p.filter = shape.rows.words();
  // All rows are written at once. Recomputed rows are gathered, for a wider
  // filter or for doubles.
  const std::int64_t rows = p.num_queries > 0 ? p.num_queries : p.num_points;
  const WideRows wide(
      in.num_queries > 0 ? query_slots(queries_at_a_time(rows, in.k))
                         : FilterBlocks(in.num_points).num_slots(),
      in.num_queries > 0 ? candidates_for_queries(in.k, in.num_queries)
                         : shape.capacity,
      shape.rows.slot_bytes(), p.padded_features);
  const double more =
      bytes_answer(rows, p.k) +
      std::max(static_cast<double>(std::min(p.chunk_size, whole_tiles(rows))) *
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

/// The plan with a tree of its points, if it may have one, in as few parts as
/// fit. fits(plan) tells. A plan that may do without its tree has the memory
/// for either.
template <class Fits>
CudaPlan with_tree(const PlanInput& in, const CudaPlan& without,
                   std::int64_t chunk, double usable, Fits fits) {
  FilterShape shape = without.shape;
  shape.tree = tree_use(in, shape);
  if (shape.tree == TreeUse::never) return without;
  const std::int64_t most =
      std::min(kMostTreeParts, FilterBlocks(in.num_points).count /
                                   std::max(1, without.num_workers));
  for (;; shape.parts *= 2) {
    CudaPlan p = plan_filter(in, shape, usable, chunk);
    const double bytes = bytes_tree(p.num_points, p.padded_features);
    p.bytes_filter += bytes;
    p.bytes_peak += bytes;
    p.shape.needs_tree = shape.parts > 1 || !fits(without);
    if (!p.shape.needs_tree)
      p.bytes_peak = std::max(p.bytes_peak, without.bytes_peak);
    if (fits(p) || 2 * shape.parts > most) return p;
  }
}

CudaPlan plan_filter_streamed(const PlanInput& in, const FilterShape& shape,
                              const FilterStreaming& streaming) {
  CudaPlan p = plan_filter(in, shape, 0, in.chunk_size);
  p.streamed = true;
  p.streaming = streaming;
  // The points are read once for the filter's rows; then, for each range that
  // stays, the range and all points after it.
  const std::int64_t row_ranges = ceil_div(in.num_points, streaming.stay_rows);
  p.num_passes = 2 + row_ranges / 2;
  const std::int64_t slots =
      streaming.by_row_ranges()
          ? (streaming.row_range_blocks + 2 * streaming.panel_blocks) *
                kFilterBlock
          : FilterBlocks(in.num_points).num_slots();
  p.bytes_filter =
      shape.bytes_sums + static_cast<double>(slots) *
                             (static_cast<double>(shape.rows.slot_bytes()) +
                              static_cast<double>(streaming.capacity) * 8);
  p.bytes_prepared = static_cast<double>(streaming.stay_rows) *
                     (static_cast<double>(p.padded_features) * 8 + 12);
  p.bytes_working = streaming.bytes_fixed;
  p.bytes_peak = streaming.bytes_peak;
  p.bytes_host = streaming.bytes_host;
  return p;
}

/// Plans a search without groups.
CudaPlan plan_plain(const PlanInput& in, const GpuFacts& gpus) {
  const double usable = gpus.bytes_usable();
  const auto fits = [&](const Plan& p) {
    return usable <= 0 || p.bytes_peak <= usable;
  };
  // Each point is needed once, so that none is kept.
  if (!in.held && in.num_queries > 0 && in.num_queries <= kFewQueries &&
      in.num_points > kLargestChunk)
    return {plan_all_pairs_panels(in, usable), {}, {}};
  // Computes all pairs in doubles, on tensor cores or, if these lack memory,
  // without.
  const auto all_pairs = [&](bool on_tensor_cores) {
    const int blocks = on_tensor_cores ? std::max(1, gpus.multiprocessors) : 0;
    CudaPlan p = {plan_all_pairs(in, usable, blocks), {}, {}};
    p.doubles.blocks = blocks;
    p.doubles.splits_at_once = meet_in_bands(p, usable);
    if (on_tensor_cores) p.filter = kWithoutFilter;
    return p;
  };
  const bool by_lanes = tensor_cores_serve(in, gpus);
  if (by_lanes && !in.asked.any() && all_pairs_pay(in)) {
    const CudaPlan p = all_pairs(true);
    const bool once =
        in.num_queries > 0 || p.doubles.splits_at_once == p.splits_per_segment;
    if (fits(p) && once) return p;
  }
  const FilterShape shape = in.all_pairs
                                ? FilterShape()
                                : filter_shape(in, gpus, FilteredSearch::graph);
  // Chunks serve only recomputed rows, so that smaller ones suffice.
  for (const FilterShape& tried : {with_room_to_centre(shape, gpus), shape})
    for (std::int64_t chunk = in.chunk_size; shape.usable();) {
      const CudaPlan p = plan_filter(in, tried, usable, chunk);
      const CudaPlan by_tree = with_tree(in, p, chunk, usable, fits);
      if (fits(by_tree)) return by_tree;
      if (fits(p)) return p;
      if (p.chunk_size <= kLeastShare) break;
      chunk = p.chunk_size / 2;
    }
  if (shape.usable() && in.num_queries == 0) {
    const FilterShape streamed =
        filter_shape(in, gpus, FilteredSearch::graph_in_panels);
    const FilterStreaming streaming = filter_streaming(in, streamed, usable);
    if (streaming.fits) return plan_filter_streamed(in, streamed, streaming);
    const FilterStreaming row_ranges =
        row_range_streaming(in, streamed, usable, gpus.multiprocessors);
    if (row_ranges.fits) return plan_filter_streamed(in, streamed, row_ranges);
  }
  if (by_lanes) {
    const CudaPlan p = all_pairs(true);
    if (fits(p)) return p;
  }
  const CudaPlan p = all_pairs(false);
  if (fits(p)) return p;
  return {plan_all_pairs_panels(in, usable), {}, {}};
}

// The most slots for each point: a group has whole blocks of slots.
constexpr std::int64_t kMostSlots = 8;

std::int64_t lists_a_row(const PlanInput& in) {
  const std::int64_t count = static_cast<std::int64_t>(in.group_sizes.size());
  switch (in.lists) {
    case PointGroups::Lists::each: return count;
    case PointGroups::Lists::others: return count - 1;
    case PointGroups::Lists::together: return 1;
  }
  throw_unknown("lists", static_cast<int>(in.lists));
}

double pairs_among(std::int64_t points) {
  const double n = static_cast<double>(points);
  return n * (n - 1) / 2;
}

/// The number of pairs of points that are compared, each counted once.
double pairs_of_groups(const PlanInput& in) {
  double pairs = pairs_among(in.num_points);
  if (in.lists != PointGroups::Lists::each)
    for (const std::int64_t size : in.group_sizes) pairs -= pairs_among(size);
  return pairs;
}

/// Whether each list of a point has k neighbours to find.
bool enough_for_all(const PlanInput& in) {
  for (const std::int64_t size : in.group_sizes) {
    const std::int64_t others = in.num_points - size;
    switch (in.lists) {
      case PointGroups::Lists::each:
        if (size < in.k + (size > 0 ? 1 : 0)) return false;
        break;
      case PointGroups::Lists::others:
        if (size < in.k) return false;
        break;
      case PointGroups::Lists::together:
        if (size > 0 && others < in.k) return false;
        break;
    }
  }
  return true;
}

/// Plans one search by groups, with lists that take that many bytes at a time.
CudaPlan plan_groups_with(const PlanInput& in, const FilterShape& shape,
                          double bytes_usable, std::int64_t chunk_size,
                          std::int64_t list_bytes) {
  const GroupBlocks blocks(in.group_sizes);
  GroupMeetings meetings;
  meetings.lists = in.lists;
  meetings.k = in.k;
  const double of_list = 8.0 * shape.capacity;
  meetings.most_blocks = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(list_bytes) / of_list /
                                   static_cast<double>(kFilterBlock)));
  const std::int64_t list_blocks = most_list_blocks(blocks, meetings);
  const double list_slots = static_cast<double>(list_blocks * kFilterBlock);
  const double lists = static_cast<double>(lists_a_row(in));
  const double k = static_cast<double>(in.k);
  const double values = 4.0 * static_cast<double>(shape.rows.floats_a_slot);
  // The blocks searched for recomputed rows have values a second time.
  const double filter =
      shape.bytes_sums +
      static_cast<double>(blocks.num_slots()) *
          (static_cast<double>(shape.rows.slot_bytes()) + 9 + values) +
      list_slots * (of_list + 24 + values) +
      static_cast<double>(list_blocks) * (sizeof(ListBlock) + 4) +
      static_cast<double>(kMostListedJobs) * sizeof(ListedJob) +
      static_cast<double>(in.num_points) * (lists * k * 12 + 16) +
      (in.num_workers > 1 ? static_cast<double>(kStagedBytes) : 0.0);
  PlanInput part = in;
  part.group_sizes.clear();
  part.num_workers = 1;
  part.chunk_size = chunk_size;
  CudaPlan p = {
      plan_all_pairs(
          part, bytes_usable <= 0 ? 0 : std::max(1.0, bytes_usable - filter)),
      shape,
      {}};
  p.filtered = true;
  p.groups_at_once = true;
  // A group's rows begin anywhere, and a chunk of them reads whole tiles.
  p.padded_points = whole_tiles(in.num_points) + kChunkUnit;
  p.list_blocks = list_blocks;
  p.filter = shape.rows.words();
  const WideRows wide(list_blocks * kFilterBlock, shape.capacity,
                      shape.rows.slot_bytes(), p.padded_features);
  const double more =
      bytes_answer(in.num_points, in.k * lists_a_row(in)) +
      std::max(static_cast<double>(
                   std::min(p.chunk_size, whole_tiles(p.num_points))) *
                   (static_cast<double>(p.padded_features) * 8 + 16),
               wide.bytes());
  p.bytes_working += more;
  p.bytes_filter = filter;
  p.bytes_peak += more + filter;
  p.num_chunks = p.num_splits * (p.num_splits + 1) / 2;
  const std::int64_t count = static_cast<std::int64_t>(in.group_sizes.size());
  p.num_workers = static_cast<int>(std::min<std::int64_t>(
      filter_devices(in, shape),
      in.lists == PointGroups::Lists::together
          ? 1
          : std::max<std::int64_t>(1, count * (count - 1) / 2)));
  p.num_segments = std::min<std::int64_t>(p.num_workers, p.num_splits);
  p.splits_per_segment = ceil_div(p.num_splits, p.num_segments);
  return p;
}

/// Plans one group after another; the results stay on the host.
CudaPlan plan_group_by_group(const PlanInput& in, const GpuFacts& gpus) {
  using Lists = PointGroups::Lists;
  CudaPlan most;
  std::int64_t chunks = 0;
  double pairs = 0;
  const bool graph = in.num_queries == 0;
  const auto add = [&](std::int64_t points, std::int64_t queries) {
    if (points == 0) return;
    pairs += queries == 0
                 ? pairs_among(points)
                 : static_cast<double>(points) * static_cast<double>(queries);
    PlanInput part = in;
    part.group_sizes.clear();
    part.num_points = points;
    part.num_given = std::max(in.num_points, in.num_given);
    part.num_queries = queries;
    const CudaPlan p = plan_plain(part, gpus);
    chunks += p.num_chunks;
    if (p.bytes_peak > most.bytes_peak) most = p;
  };
  for (const std::int64_t size : in.group_sizes) {
    const std::int64_t others = in.num_points - size;
    if (graph && in.lists == Lists::each) add(size, 0);
    const bool together = in.lists == Lists::together;
    const std::int64_t asking =
        !graph ? in.num_queries : (together ? size : others);
    if (asking > 0) add(together ? others : size, asking);
  }
  CudaPlan p = most;
  p.num_chunks = chunks;
  p.num_pairs = pairs;
  return p;
}

CudaPlan plan_groups(const PlanInput& in, const GpuFacts& gpus) {
  const double usable = gpus.bytes_usable();
  const FilterShape shape =
      filter_shape(in, gpus, FilteredSearch::graph_by_groups);
  const GroupBlocks blocks(in.group_sizes);
  // Devices cannot share one list for all groups.
  const bool own_lists =
      in.lists != PointGroups::Lists::together || in.num_workers <= 1;
  const std::int64_t lists = lists_a_row(in);
  const bool suits = in.num_queries == 0 && shape.usable() && own_lists &&
                     lists > 0 && enough_for_all(in) &&
                     blocks.num_slots() <= kMostSlots * in.num_points &&
                     in.num_points <= INT32_MAX / lists;
  CudaPlan p;
  bool fits = false;
  for (std::int64_t bytes = kListBytes; suits && !fits && bytes >= 1 << 24;
       bytes /= 4)
    for (std::int64_t chunk = in.chunk_size; !fits; chunk = p.chunk_size / 2) {
      p = plan_groups_with(in, shape, usable, chunk, bytes);
      fits = usable <= 0 || p.bytes_peak <= usable;
      if (p.chunk_size <= kLeastShare) break;
    }
  if (!fits) p = plan_group_by_group(in, gpus);
  p.num_points = in.num_points;
  p.num_queries = in.num_queries;
  const std::int64_t rows =
      in.num_queries == 0 ? in.num_points : in.num_queries;
  p.bytes_result = static_cast<double>(rows) *
                   static_cast<double>(in.k * lists) *
                   (in.correlation ? 20 : 12);
  if (fits) p.num_pairs = pairs_of_groups(in);
  return p;
}

}  // namespace

CudaPlan plan_cuda(const PlanInput& in, const GpuFacts& gpus) {
  return in.group_sizes.empty() ? plan_plain(in, gpus) : plan_groups(in, gpus);
}

}  // namespace cuda
}  // namespace fsknn
