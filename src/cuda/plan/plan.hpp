#pragma once

// The plan of the CUDA engine. Pure arithmetic with no CUDA in it: linked in
// every build, and testable without a GPU.

#include <vector>

#include "core/plan.hpp"

namespace fsknn {
namespace cuda {

/// A chunk is a multiple of this on a side: whole tiles of the distance kernel.
static constexpr std::int64_t kChunkUnit = 64;

/// Rows that `count` of them take, in whole tiles of the distance kernel.
inline std::int64_t whole_tiles(std::int64_t count) {
  return (count + kChunkUnit - 1) / kChunkUnit * kChunkUnit;
}

/// The filter's rows and columns of pairs come in blocks of this many points,
/// their features in steps of this many.
static constexpr std::int64_t kFilterBlock = 256;
static constexpr std::int64_t kFilterSlab = kFilterBlock / 2;
static constexpr std::int64_t kFilterDepth = 64;
/// Tensor cores lose more the longer they add. Of rows of many features they add
/// up so many at a time, a stretch, and floats the stretches, which takes some
/// time: it pays where more than kMostInOne features are added.
static constexpr std::int64_t kFilterStretch = 1024, kMostInOne = 2048;
inline bool has_stretches(std::int64_t depth) { return depth > kMostInOne; }
/// Bytes of a block of threads for the sums of the stretches before.
static constexpr std::int64_t kStretchBytes = 128 * 1024;

/// What a plan needs to know of the devices.
struct GpuFacts {
  double bytes_free = 0;       ///< of the one that has least; 0: not known
  bool half_products = false;  ///< all can run the filter
  double bytes_limit = 0;      ///< no more than this on each; 0: no limit
  int multiprocessors = 0;     ///< of the one that has most

  /// What a plan may use on each; 0: not known.
  double bytes_usable() const;
};

/// input.num_workers: the devices. An automatic chunk is made small enough to
/// fit. bytes_prepared, bytes_filter, bytes_working and bytes_peak are those of
/// one device (working: a chunk of distances, the neighbour lists of a split, and
/// what is on its way to the host).
///
/// Here is chosen what the filter does (Plan::filtered): graphs of enough points
/// and enough queries, with not too many neighbours; on how many of the devices;
/// and whether the points come piece by piece (Plan::streamed). A chunk is then
/// what a block of threads meets at a time, and what the rows that no filter
/// settles are done again by.
Plan plan_cuda(const PlanInput& input, const GpuFacts& gpus);

/// Points in the filter's blocks, an odd number of blocks, so that in round
/// delta block I meets block I + delta, and each unordered pair of blocks is met
/// once. The points are spread evenly: block I has those from first(I) on.
struct FilterBlocks {
  explicit FilterBlocks(std::int64_t points)
      : num_points(points),
        count((points + kFilterBlock - 1) / kFilterBlock | 1) {}
  std::int64_t num_points, count;

  std::int64_t num_slots() const { return count * kFilterBlock; }
  std::int64_t first(std::int64_t block) const {
    return block * (num_points / count) +
           block * (num_points % count) / count;
  }
  /// [num_slots()] the place of the point in each slot; -1: padding.
  std::vector<std::int32_t> places() const;
};

/// Jobs first_job .. end_job - 1 of a round. Job j is a slab, half a block, of
/// rows, the (j mod num_slabs)-th from first_slab on, against `span` successive
/// blocks of columns: row block I meets column block I + delta.
struct FilterJobs {
  std::int64_t num_blocks = 0;  ///< of columns
  std::int64_t first_slab = 0, num_slabs = 0;
  std::int64_t first_delta = 0, end_delta = 0;  ///< the round's
  std::int64_t span = 1;
  /// Row block I meets column block I + delta + shift.
  std::int64_t shift = 0;
  std::int64_t first_job = 0, end_job = 0;
  bool ends_round = false;
  /// Rows and columns are the same slots, and a pair is for both its lists.
  bool symmetric = true;
  /// Thresholds are not known yet: all pairs are written to their row's list,
  /// delta's at delta blocks from its start. Not with `symmetric`: what a graph
  /// fills it meets once from each side.
  bool fill = false;
};

/// What jobs are to be made of.
struct FilterRounds {
  std::int64_t num_blocks = 0;  ///< of columns
  std::int64_t first_slab = 0, num_slabs = 0;
  bool symmetric = true;
  /// Whether the first round fills lists, with so many blocks to each; an odd
  /// number where symmetric.
  std::int64_t fill_blocks = 1;
  std::int64_t depth = 0;       ///< features of the filter's rows
  std::int64_t chunk_size = 0;
  int multiprocessors = 1;
  /// What points have met after a round, to what they had before; at most 2.
  double growth = 2.0;
};

/// All jobs, in launches that are each a fraction of a second. Rounds double:
/// each lets a point meet as many others as all rounds before it. Rounds are
/// the same whichever slabs are asked for.
std::vector<FilterJobs> schedule_filter(const FilterRounds& rounds);

/// The blocks of a device's segment, of `count` devices'.
inline std::int64_t first_block_of(const FilterBlocks& blocks, int device,
                                   int count) {
  return blocks.count * device / count;
}

/// Features of the half-precision filter's rows.
std::int64_t filter_depth(std::int64_t num_features);
std::int64_t half_depth(const MetricEntry& metric, std::int64_t num_features);
/// What a metric's filter does for a pair, in features of that one.
std::int64_t work_depth(const MetricEntry& metric, std::int64_t num_features);

/// Whose rows have features more: their norms, in parts.
static constexpr std::int64_t kNormFeatures = 6;

/// Candidates that a row of the filter has room for.
std::int32_t candidates_for(std::int64_t k);

/// The longest list there is.
static constexpr std::int32_t kMostCandidates = 8192;

/// How rows whose candidates overflowed are filtered again: so many at a time,
/// with lists that are up to sixteen times as long, in the memory of the search's
/// own.
struct WideRows {
  /// form_bytes: a slot's, of the filter.
  WideRows(std::int64_t num_slots, std::int32_t list_capacity,
           std::int64_t form_bytes, std::int64_t padded);
  std::int32_t capacity;
  std::int64_t rows;       ///< whole blocks
  double row_bytes;        ///< besides the lists
  bool own_lists;          ///< the search's are too few for one block
  double bytes() const {
    return static_cast<double>(rows) *
           (row_bytes + (own_lists ? 8.0 * capacity : 0.0));
  }
};

/// Where memory of another device cannot be read, lists are copied so many bytes
/// at a time.
static constexpr std::int64_t kStagedBytes = std::int64_t{16} << 20;

/// Blocks that a list's first entries are: with some to spare more points than
/// k, an odd number of blocks.
std::int64_t fill_blocks_for(std::int64_t num_points, std::int64_t k);

/// Queries that are filtered at a time: their lists are to fit in 1 GiB.
std::int64_t queries_at_a_time(std::int64_t num_queries, std::int64_t k);
inline std::int64_t query_slots(std::int64_t num_queries) {
  return (num_queries + kFilterBlock - 1) / kFilterBlock * kFilterBlock;
}

/// What the plan knows of the filter that a search would use.
struct FilterShape {
  bool usable = false;
  const char* name = "";           ///< in words
  std::int64_t row_bytes = 0;      ///< of a slot's row in the filter's form
  std::int64_t floats_a_slot = 0;  ///< besides
  double bytes_sums = 0;           ///< of sums over stretches of features
  std::int64_t depth = 0;          ///< features of its rows
  std::int32_t capacity = 0;       ///< candidates that a list has room for
  std::int64_t fill_blocks = 1;    ///< blocks that a list's first entries are
};
FilterShape filter_shape(const PlanInput& input, const GpuFacts& gpus);

/// How a filtered graph is searched where its points do not fit a device in
/// doubles: the filter's rows stay, with short lists, and rounds that grow
/// slowly; doubles come in panels. See GraphByFilterPanels.
struct FilterStreaming {
  bool fits = false;
  std::int32_t capacity = 0;        ///< of the lists
  double growth = 1.5;              ///< of the rounds
  std::int64_t fill_blocks = 0;     ///< of the first round,
  std::int32_t fill_capacity = 0;   ///< whose lists are longer,
  std::int64_t fill_slots = 0;      ///< of so many slots at a time
  std::int64_t stream_rows = 0;     ///< points of a panel that comes by
  std::int64_t redo_rows = 0;       ///< rows done in doubles at a time
  std::int64_t write_rows = 0;      ///< rows written out at a time
  std::int64_t stay_rows = 0;       ///< points that stay, about
  double bytes_usable = 0;
  double bytes_fixed = 0;           ///< held all the time, lists and rows apart
  double bytes_peak = 0;
};
FilterStreaming filter_streaming(const PlanInput& input,
                                 const FilterShape& shape,
                                 double bytes_usable);

}  // namespace cuda
}  // namespace fsknn
