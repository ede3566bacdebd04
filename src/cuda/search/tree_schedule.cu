#include "cuda/search/tree_schedule.hpp"

#include <algorithm>
#include <utility>

#include "cuda/device/check.hpp"
#include "cuda/device/transfer.hpp"
#include "cuda/device/warps.cuh"

namespace fsknn {
namespace cuda {
namespace {

// The most blocks of columns in a job.
constexpr int kJobColumns = 64;
// Blocks that a kernel's block lists before it takes places for them.
constexpr int kListedAtOnce = 4 * kThreads;

/// The counts of a list, in order: blocks of columns, jobs, and pairs of
/// points.
enum { kColumns, kJobs, kPairs, kCounts };

// The reach of a point that accepts pairs; none otherwise: its threshold is
// then infinite or, for padding, NaN.
__device__ inline float reach_of_point(const ReachRule& rule, float threshold) {
  return threshold < HUGE_VALF ? reach_of(rule, threshold) : -HUGE_VALF;
}

// Finds the reach of each block, the largest of its points. Grid: x over
// blocks. Block: kFilterBlock. Shared: 32 bytes, static.
__global__ void find_reach(const float* thresholds, const ReachRule rule,
                           float* reach) {
  __shared__ float of_warp[kFilterBlock / kWarp];
  float largest =
      reach_of_point(rule, thresholds[blockIdx.x * kFilterBlock + threadIdx.x]);
#pragma unroll
  for (int gap = kWarp / 2; gap > 0; gap /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, gap));
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = largest;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int w = 1; w < static_cast<int>(kFilterBlock) / kWarp; ++w)
    largest = fmaxf(largest, of_warp[w]);
  reach[blockIdx.x] = largest;
}

/// Pairs of blocks, each with a bit: those of block of rows r and columns from
/// columns_first[r] on have bits from first_bit[r] on.
struct TileBits {
  const std::int32_t* first_bit;  // [blocks]
  const std::int32_t* columns_first;
  std::uint32_t* words;

  __device__ std::int32_t at(std::int64_t row, std::int64_t column) const {
    return first_bit[row] +
           static_cast<std::int32_t>(column - columns_first[row]);
  }
  __device__ void mark(std::int64_t row, std::int64_t column) const {
    const std::int32_t bit = at(row, column);
    atomicOr(words + bit / 32, 1u << bit % 32);
  }
  __device__ bool is_marked(std::int64_t row, std::int64_t column) const {
    const std::int32_t bit = at(row, column);
    return (words[bit / 32] >> bit % 32 & 1u) != 0;
  }
};

struct MarkTiles {
  TileBoxes boxes;
  TreeRows rows;
  TileBits bits;
  const float* thresholds;              // by slot
  const float* reach;                   // [blocks]
  const std::int32_t *first, *end;      // [blocks] the others of each block
  std::int64_t first_own;               // the block of the grid's first block
  std::int32_t least_other, end_other;  // others are among these
  bool own_are_columns;
};

// The features of which a thread holds its point's values. Those that vary most
// come first; the others add little.
constexpr int kHeld = kBoxFeatures;

// Marks the pairs of blocks in which the own block may reach the box of the
// other. by_points: then tests the own points, each by its own reach, over the
// first kHeld features. Grid: x over own blocks. Block: kFilterBlock, a thread
// for each point. Shared: 4 KB, static.
template <bool by_points>
__global__ void __launch_bounds__(static_cast<int>(kFilterBlock))
    mark_tiles(const MarkTiles mark) {
  constexpr int threads = static_cast<int>(kFilterBlock);
  __shared__ float own_least[kMostTreeFeatures], own_most[kMostTreeFeatures];
  __shared__ float error[kHeld];
  __shared__ std::int32_t left[threads];
  __shared__ int is_reached[threads];
  __shared__ int num_left;
  const std::int64_t own = mark.first_own + blockIdx.x;
  const std::int32_t first = max(mark.first[own], mark.least_other);
  const std::int32_t end = min(mark.end[own], mark.end_other);
  if (first >= end) return;
  const std::int64_t blocks = mark.boxes.num_blocks;
  const int width = mark.boxes.width;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp, lane = thread % kWarp;
  for (int f = thread; f < max(width, kHeld); f += threads) {
    float largest = 0.0f;
    if (f < width) {
      own_least[f] = mark.boxes.least[f * blocks + own];
      own_most[f] = mark.boxes.most[f * blocks + own];
      largest = fmaxf(fabsf(own_least[f]), fabsf(own_most[f]));
    }
    // The point's float is within 2^-24 and 2^-53 of its difference, or
    // 2^-150.
    if (f < kHeld) error[f] = __fmaf_ru(largest, 0x1p-23f, 0x1p-140f);
  }
  // The own point, rounded to floats. Gaps are made smaller for it below.
  float x[by_points ? kHeld : 1];
  float reach = -HUGE_VALF;
  if constexpr (by_points) {
    const std::int64_t slot = own * kFilterBlock + thread;
    const std::int32_t place = mark.rows.places[slot];
    const PreparedRows& from = mark.rows.prepared;
#pragma unroll
    for (int f = 0; f < kHeld; ++f) {
      const int feature = f < width ? mark.boxes.features[f] : 0;
      x[f] = place >= 0 && f < width
                 ? static_cast<float>(from.rows[place * from.padded + feature] -
                                      from.rows[feature])
                 : 0.0f;
    }
    if (place >= 0)
      reach = reach_of_point(mark.rows.rule, mark.thresholds[slot]);
  }
  const float reach_of_block = mark.reach[own];
  const auto mark_other = [&](std::int32_t other) {
    if (mark.own_are_columns)
      mark.bits.mark(other, own);
    else
      mark.bits.mark(own, other);
  };
  for (std::int32_t from = first; from < end; from += threads) {
    if (thread == 0) num_left = 0;
    is_reached[thread] = 0;
    __syncthreads();
    const std::int32_t candidate = from + thread;
    // The rows' side was marked before.
    if (candidate < end &&
        !(mark.own_are_columns && mark.bits.is_marked(candidate, own))) {
      float gaps = 0.0f;
      for (int f = 0; f < width; ++f) {
        const std::int64_t at = f * blocks + candidate;
        const float gap =
            fmaxf(0.0f, fmaxf(__fsub_rd(mark.boxes.least[at], own_most[f]),
                              __fsub_rd(own_least[f], mark.boxes.most[at])));
        gaps = __fmaf_rd(gap, gap, gaps);
        if (gaps > reach_of_block) break;
      }
      if (!(gaps > reach_of_block)) {
        if (by_points)
          left[atomicAdd(&num_left, 1)] = candidate;
        else
          mark_other(candidate);
      }
    }
    __syncthreads();
    if constexpr (by_points) {
      // Warps begin at different pairs, and skip those that another marked.
      const int count = num_left;
      __syncthreads();
      for (int turn = 0; turn < count; ++turn) {
        int i = turn + warp * count / (threads / kWarp);
        if (i >= count) i -= count;
        int skip = 0;
        if (lane == 0) skip = atomicOr(&is_reached[i], 0);
        if (__shfl_sync(0xffffffffu, skip, 0) != 0) continue;
        const std::int32_t other = left[i];
        const float2* const box = mark.boxes.by_block + other * kHeld;
        float gaps = 0.0f;
#pragma unroll
        for (int part = 0; part < kHeld; part += kHeld / 2) {
#pragma unroll
          for (int f = part; f < part + kHeld / 2; ++f) {
            const float2 sides = __ldg(box + f);
            const float gap =
                fmaxf(0.0f, __fsub_rd(fmaxf(__fsub_rd(sides.x, x[f]),
                                            __fsub_rd(x[f], sides.y)),
                                      error[f]));
            gaps = __fmaf_rd(gap, gap, gaps);
          }
          if (__all_sync(0xffffffffu, gaps > reach)) break;
        }
        if (__any_sync(0xffffffffu, !(gaps > reach)) && lane == 0) {
          atomicOr(&is_reached[i], 1);
          mark_other(other);
        }
      }
      __syncthreads();
    }
  }
}

struct ListTiles {
  TileBits bits;
  const std::int32_t* end;  // [blocks] of the columns of each block of rows
  std::int64_t first_row;   // the row block of the grid's first block
  std::int64_t num_points, num_blocks;
  std::int32_t* columns;
  ListedJob* jobs;
  unsigned long long* counts;  // [kCounts]
};

/// The number of points in a block (FilterBlocks).
__device__ inline std::int64_t points_in(const ListTiles& list,
                                         std::int64_t block) {
  const std::int64_t rest = list.num_points % list.num_blocks;
  return list.num_points / list.num_blocks +
         (block + 1) * rest / list.num_blocks - block * rest / list.num_blocks;
}

// Lists the marked blocks of columns of each block of rows, and jobs of them.
// Grid: x over row blocks. Block: kThreads. Shared: 6 KB, static.
__global__ void __launch_bounds__(kThreads) list_marked(const ListTiles list) {
  __shared__ std::int32_t listed[kListedAtOnce + kThreads];
  __shared__ int num_listed;
  __shared__ unsigned long long first_column, first_job;
  const std::int64_t row = list.first_row + blockIdx.x;
  if (threadIdx.x == 0) num_listed = 0;
  __syncthreads();
  const std::int64_t own_points = points_in(list, row);
  unsigned long long pairs = 0;
  const std::int32_t end = list.end[row];
  for (std::int32_t first = list.bits.columns_first[row];; first += kThreads) {
    const bool last = first >= end;
    const std::int32_t column = first + static_cast<std::int32_t>(threadIdx.x);
    if (column < end && list.bits.is_marked(row, column)) {
      listed[atomicAdd(&num_listed, 1)] = column;
      pairs +=
          static_cast<unsigned long long>(own_points * points_in(list, column));
    }
    __syncthreads();
    const int count = num_listed;
    __syncthreads();
    if (count > kListedAtOnce || (last && count > 0)) {
      const int num_jobs = (count + kJobColumns - 1) / kJobColumns;
      if (threadIdx.x == 0) {
        first_column = atomicAdd(list.counts + kColumns,
                                 static_cast<unsigned long long>(count));
        first_job = atomicAdd(list.counts + kJobs,
                              static_cast<unsigned long long>(num_jobs));
        num_listed = 0;
      }
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
        list.columns[first_column + i] = listed[i];
      for (int job = static_cast<int>(threadIdx.x); job < num_jobs;
           job += kThreads) {
        const int from = job * kJobColumns;
        list.jobs[first_job + job] = {
            static_cast<std::int32_t>(row), 0,
            static_cast<std::int32_t>(first_column) + from,
            static_cast<std::int32_t>(first_column) +
                min(from + kJobColumns, count)};
      }
      __syncthreads();
    }
    if (last) break;
  }
  if (pairs > 0) atomicAdd(list.counts + kPairs, pairs);
}

/// Jobs of that many columns, of all row blocks.
std::int64_t most_jobs(std::int64_t num_blocks, std::int64_t columns) {
  return columns / kJobColumns + columns / kListedAtOnce + 2 * num_blocks;
}

}  // namespace

TreeSchedule::TreeSchedule(const TileTree& tree, const TreeRows& rows,
                           const FilterPass& pass, std::int64_t first,
                           std::int64_t end, std::int64_t pieces,
                           const Stream& stream)
    : tree_(tree),
      rows_(rows),
      pass_(pass),
      first_block_(first),
      end_block_(end),
      pieces_(pieces),
      stream_(stream),
      rounds_(tree_rounds(tree.levels(), first)),
      columns_of_(tree.blocks().count),
      rows_of_(tree.blocks().count),
      first_bits_(static_cast<std::size_t>(tree.blocks().count)),
      first_bit_(tree.blocks().count),
      reach_(tree.blocks().count),
      counts_(kCounts) {
  const std::int64_t blocks = tree.blocks().count;
  const double own = static_cast<double>(end - first);
  all_tiles_ = own * (own + 1) / 2 + own * (static_cast<double>(blocks) - own);
  const std::int64_t most = listed_tiles(blocks);
  columns_ = DeviceBuffer<std::int32_t>(most + 1);
  marked_ = DeviceBuffer<std::uint32_t>(most / 32 + 1);
  jobs_ = DeviceBuffer<ListedJob>(most_jobs(blocks, most));
  clear_from(counts_, 0, stream);
  clear_from(columns_, most, stream);
  row_ = end;  // of the round that fills lists
  for (FilterJobs& jobs : schedule_filter(pass.rounds))
    if (jobs.fill) launches_.push_back(jobs);
  tiles_done_ = own;
}

bool TreeSchedule::begin_round() {
  if (round_ == rounds_.size()) return false;
  const TreeRound round = rounds_[round_++];
  const std::int64_t blocks = tree_.blocks().count;
  ranges_ = TreeRanges(tree_.levels(), round, first_block_);
  if (!round.before) {
    upload(rows_of_.first, ranges_.rows_first.data(), blocks, stream_);
    upload(rows_of_.end, ranges_.rows_end.data(), blocks, stream_);
  }
  upload(columns_of_.first, ranges_.columns_first.data(), blocks, stream_);
  upload(columns_of_.end, ranges_.columns_end.data(), blocks, stream_);
  find_reach<<<static_cast<unsigned>(end_block_ - first_block_),
               static_cast<unsigned>(kFilterBlock), 0, stream_.get()>>>(
      pass_.work.lists.thresholds + first_block_ * kFilterBlock, rows_.rule,
      reach_.data() + first_block_);
  CUDA_CHECK(cudaGetLastError());
  stream_.wait();
  row_ = first_block_;
  return true;
}

const FilterJobs* TreeSchedule::next() {
  while (next_launch_ == launches_.size()) {
    if (row_ == end_block_ && !begin_round()) return nullptr;
    launches_.clear();
    next_launch_ = 0;
    list_tiles();
  }
  return &launches_[next_launch_++];
}

void TreeSchedule::list_tiles() {
  const std::int64_t blocks = tree_.blocks().count;
  const std::int64_t first_row = row_;
  std::int64_t tiles = 0;
  for (; row_ < end_block_; ++row_) {
    const std::size_t at = static_cast<std::size_t>(row_);
    const std::int64_t more =
        ranges_.columns_end[at] - ranges_.columns_first[at];
    if (tiles + more > columns_.size() - 1) break;
    first_bits_[at] = static_cast<std::int32_t>(tiles);
    tiles += more;
  }
  CUDA_CHECK(cudaMemcpyAsync(
      first_bit_.data() + first_row,
      first_bits_.data() + static_cast<std::size_t>(first_row),
      static_cast<std::size_t>(row_ - first_row) * sizeof(std::int32_t),
      cudaMemcpyHostToDevice, stream_.get()));
  clear_from(marked_, 0, stream_);
  start_marking(first_row, row_);
  CUDA_CHECK(cudaMemsetAsync(
      counts_.data(), 0, kPairs * sizeof(unsigned long long), stream_.get()));
  ListTiles list;
  list.bits = {first_bit_.data(), columns_of_.first.data(), marked_.data()};
  list.end = columns_of_.end.data();
  list.first_row = first_row;
  list.num_points = tree_.blocks().num_points;
  list.num_blocks = blocks;
  list.columns = columns_.data();
  list.jobs = jobs_.data();
  list.counts = counts_.data();
  list_marked<<<static_cast<unsigned>(row_ - first_row), kThreads, 0,
                stream_.get()>>>(list);
  CUDA_CHECK(cudaGetLastError());
  unsigned long long counts[kPairs];
  download(counts, counts_, kPairs, stream_);
  stream_.wait();
  tiles_done_ += static_cast<double>(tiles);
  launch(static_cast<std::int64_t>(counts[kJobs]));
}

/// Marks the pairs of these blocks of rows with the round's blocks of columns,
/// from both sides. Blocks that are not of the part reach nothing.
void TreeSchedule::start_marking(std::int64_t first_row, std::int64_t end_row) {
  // Nearly all pairs of small nodes are within reach.
  constexpr int small_nodes = 4;
  const TreeRound& round = rounds_[round_ - 1];
  const bool by_points = round.level + small_nodes < tree_.levels().count();
  const std::int32_t blocks = static_cast<std::int32_t>(tree_.blocks().count);
  MarkTiles mark;
  mark.boxes = tree_.boxes();
  mark.rows = rows_;
  mark.bits = {first_bit_.data(), columns_of_.first.data(), marked_.data()};
  mark.thresholds = pass_.work.lists.thresholds;
  mark.reach = reach_.data();
  for (const bool own_are_columns : {false, true}) {
    if (own_are_columns && round.before) return;
    const Ranges& others = own_are_columns ? rows_of_ : columns_of_;
    mark.first = others.first.data();
    mark.end = others.end.data();
    mark.own_are_columns = own_are_columns;
    // Columns come after their rows.
    mark.first_own = first_row;
    const std::int64_t end_own = own_are_columns ? end_block_ : end_row;
    mark.least_other =
        own_are_columns ? static_cast<std::int32_t>(first_row) : 0;
    mark.end_other =
        own_are_columns ? static_cast<std::int32_t>(end_row) : blocks;
    const unsigned grid = static_cast<unsigned>(end_own - first_row);
    const auto start = [&](auto kernel) {
      kernel<<<grid, static_cast<unsigned>(kFilterBlock), 0, stream_.get()>>>(
          mark);
      CUDA_CHECK(cudaGetLastError());
    };
    by_points ? start(mark_tiles<true>) : start(mark_tiles<false>);
  }
}

/// Makes launches of the listed jobs. A round ends with a cut if it has added
/// to the lists.
void TreeSchedule::launch(std::int64_t num_jobs) {
  FilterJobs jobs;
  jobs.num_blocks = tree_.blocks().count;
  jobs.listed = jobs_.data();
  jobs.column_blocks = columns_.data();
  jobs.all_valid = true;
  const std::int64_t a_launch = jobs_a_launch(pass_.rounds, kJobColumns);
  for (std::int64_t job = 0; job < num_jobs * kSlabsABlock; job += a_launch) {
    jobs.first_job = job;
    jobs.end_job = std::min(job + a_launch, num_jobs * kSlabsABlock);
    launches_.push_back(jobs);
    uncut_ = true;
  }
  if (row_ < end_block_ || !uncut_) return;
  if (launches_.empty()) launches_.push_back(jobs);
  uncut_ = false;
  launches_.back().ends_round = true;
  launches_.back().ends_schedule = is_done();
}

std::int64_t TreeSchedule::take_pieces() {
  // The last piece is complete when all launches are.
  const bool last = is_done() && next_launch_ == launches_.size();
  const std::int64_t done =
      last ? pieces_
           : static_cast<std::int64_t>(static_cast<double>(pieces_ - 1) *
                                       tiles_done_ / all_tiles_);
  return done - std::exchange(pieces_taken_, std::max(done, pieces_taken_));
}

double TreeSchedule::pairs() const {
  unsigned long long counts[kCounts];
  download(counts, counts_, kCounts, stream_);
  stream_.wait();
  double own = 0.0;
  for (std::int64_t b = first_block_; b < end_block_; ++b) {
    const double size =
        static_cast<double>(tree_.blocks().first_place(b + 1).value -
                            tree_.blocks().first_place(b).value);
    own += size * (size - 1) / 2;
  }
  return own + static_cast<double>(counts[kPairs]);
}

}  // namespace cuda
}  // namespace fsknn
