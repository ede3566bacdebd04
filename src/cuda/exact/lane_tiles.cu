#include "cuda/exact/lane_tiles.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <type_traits>

#include "cuda/device/check.hpp"
#include "cuda/device/hopper.cuh"
#include "cuda/device/transfer.hpp"
#include "cuda/plan/lane_tile.hpp"
#include "cuda/prepare/rules.cuh"

namespace fsknn {
namespace cuda {
namespace {

using Tile = LaneTile;

/// One instruction: 16 rows by 8 columns, 8 features. Thread 4 g + q of a warp
/// holds features q and q + 4 of rows g and g + 8 and of column g. Of the sums,
/// it holds columns 2 q and 2 q + 1 of the two rows.
struct Step {
  static constexpr int rows = 16, columns = 8, features = 8;
};
static_assert(Tile::warp_rows % Step::rows == 0 &&
                  Tile::warp_columns % Step::columns == 0 &&
                  Tile::depth % Step::features == 0,
              "a warp's part of a tile is made of whole steps");
static_assert(kLanes == 8, "lanes are joined by the bits of their turns");

// A piece is 16 bytes of a row of a stage: features q and q + 4 of a step.
constexpr int kPieces = Tile::depth / 2;
constexpr int kStepPieces = Step::features / 2;

/// Returns the position of a row's piece. Two rows' pieces of one step cover
/// all banks.
__device__ inline int piece_at(int row, int piece) {
  return piece ^ ((row & 1) * kStepPieces);
}

/// Adds the products to the sums, one feature after the other. On devices where
/// the kernel does nothing this does nothing either, so that the test in
/// adds_in_order() fails there.
__device__ inline void multiply(double (&sum)[4], const double2& row,
                                const double2& lower_row,
                                const double2& column) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
      : "d"(row.x), "d"(lower_row.x), "d"(row.y), "d"(lower_row.y),
        "d"(column.x), "d"(column.y));
#endif
}

/// Returns the lane that is processed at this turn. Reversing the bits makes
/// lanes that are reduced together adjacent.
__device__ inline int lane_in_turn(int turn) {
  return ((turn & 1) << 2) | (turn & 2) | (turn >> 2);
}

// Rearranges the rows of a panel lane by lane in tiles of rows, in the order of
// stages in shared memory. A lane's zeros precede its features: a sum of 0
// keeps its sign, which a -0 at the end would not.
// In: rows [num_rows x padded]. Out: lane_doubles(). Grid: x over stages of a
// lane, y over tiles. Block: any. Shared: none.
__global__ void turn_to_lanes(const double* rows, std::int64_t num_rows,
                              std::int64_t padded, std::int64_t length,
                              double2* transposed) {
  constexpr int side = Tile::side;
  const std::int64_t tile = blockIdx.y, stages = length / Tile::depth;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * Tile::depth -
      (length - padded / kLanes);
  for (int at = static_cast<int>(threadIdx.x); at < kLanes * side * kPieces;
       at += static_cast<int>(blockDim.x)) {
    const int place = at % kPieces, r = at / kPieces % side;
    const int turn = at / kPieces / side;
    const int piece = piece_at(r, place);
    const std::int64_t f =
        first + piece / kStepPieces * Step::features + piece % kStepPieces;
    const std::int64_t row = tile * side + r;
    double2 values = {0.0, 0.0};
    if (row < num_rows) {
      const double* const from = rows + row * padded + lane_in_turn(turn);
      if (f >= 0) values.x = from[f * kLanes];
      if (f + 4 >= 0) values.y = from[(f + 4) * kLanes];
    }
    const std::int64_t stage =
        (tile * kLanes + turn) * stages + static_cast<std::int64_t>(blockIdx.x);
    transposed[(stage * side + r) * kPieces + place] = values;
  }
}

/// The inputs and outputs of the tiles. Device memory.
struct LaneWork {
  const double* rows = nullptr;     ///< from turn_to_lanes()
  const double* columns = nullptr;  ///< the same
  std::int64_t stages = 0;          ///< of a tile: of all lanes
  std::int64_t row_tiles = 0, column_tiles = 0;
  double* waiting = nullptr;  ///< [blocks x Tile::waiting]
  Chunk chunk;
};

/// Returns the number of tiles of a chunk. Where rows and columns are the same,
/// only tiles on the diagonal and to the right of it count.
__host__ __device__ inline std::int64_t num_tiles(const LaneWork& work) {
  return work.chunk.same ? work.row_tiles * (work.row_tiles + 1) / 2
                         : work.row_tiles * work.column_tiles;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// This many stages are sent ahead: all threads finished reading the next one's
// memory two stages ago.
constexpr int kStagesAhead = Tile::stages - 2;

struct TilePlace {
  std::int64_t row, column;
};
/// Returns a tile in an order that takes 8 rows of tiles at a time, so that
/// concurrent blocks share rows and columns.
__device__ inline TilePlace tile_at(const LaneWork& work, std::int64_t at) {
  constexpr std::int64_t height = 8;
  for (std::int64_t first = 0;; first += height) {
    const std::int64_t rows = min(height, work.row_tiles - first);
    // The tiles are a triangle and a rectangle to the right of it.
    const std::int64_t corner = work.chunk.same ? rows * (rows + 1) / 2 : 0;
    const std::int64_t begin = work.chunk.same ? first + rows : 0;
    const std::int64_t all = corner + (work.column_tiles - begin) * rows;
    if (at >= all) {
      at -= all;
      continue;
    }
    if (at >= corner)
      return {first + (at - corner) % rows, begin + (at - corner) / rows};
    std::int64_t row = 0;
    for (; at >= rows - row; ++row) at -= rows - row;
    return {first + row, first + row + at};
  }
}

/// Copies the stages of a block's tiles into shared memory, one after the
/// other, by one thread.
class StageFeed {
 public:
  __device__ StageFeed(const LaneWork& work, unsigned staged, unsigned full)
      : work_(work), staged_(staged), full_(full), tile_(blockIdx.x) {}

  /// Sends the next stage into memory that no thread still reads.
  __device__ void send() {
    if (tile_ >= num_tiles(work_)) return;
    if (stage_ == 0) place_ = tile_at(work_, tile_);
    const unsigned slot = sent_ % Tile::stages;
    const unsigned full = full_ + 8 * slot;
    const unsigned to = staged_ + slot * Tile::stage_bytes;
    expect_bytes(full, Tile::stage_bytes);
    send_part(to, work_.rows, place_.row, full);
    send_part(to + Tile::stage_bytes / 2, work_.columns, place_.column, full);
    ++sent_;
    if (++stage_ < work_.stages) return;
    stage_ = 0;
    tile_ += gridDim.x;
  }

 private:
  __device__ void send_part(unsigned to, const double* from, std::int64_t tile,
                            unsigned full) const {
    copy_bulk(to, from + (tile * work_.stages + stage_) * Tile::part,
              Tile::stage_bytes / 2, full);
  }
  const LaneWork& work_;
  const unsigned staged_, full_;
  std::int64_t tile_, stage_ = 0;
  TilePlace place_ = {0, 0};
  unsigned sent_ = 0;
};

/// Orders this thread's reads of shared memory before bulk copies that start
/// after the block's next barrier. Bulk copies use another proxy: without this
/// fence such a copy was seen to overtake reads.
__device__ inline void order_before_copies() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

/// A warp's part of a tile's sums.
struct WarpSums {
  static constexpr int down = Tile::warp_rows / Step::rows;
  static constexpr int across = Tile::warp_columns / Step::columns;
  static constexpr int halves = down * across * 2;
  double v[down][across][4];

  __device__ void clear() {
    each([&](int i, int j, int x, int) { v[i][j][x] = v[i][j][x + 1] = 0.0; });
  }
  /// Copies to and from a level of waiting sums, at the thread's own positions.
  __device__ void put(double2* level) const {
    each([&](int i, int j, int x, int at) {
      level[at * Tile::threads] = {v[i][j][x], v[i][j][x + 1]};
    });
  }
  __device__ void join(const double2* level) {
    each([&](int i, int j, int x, int at) {
      const double2 other = level[at * Tile::threads];
      v[i][j][x] = other.x + v[i][j][x];
      v[i][j][x + 1] = other.y + v[i][j][x + 1];
    });
  }
  /// Calls use(i, j, x, number) for the two sums from x on of step (i, j).
  template <class Use>
  __device__ static void each(Use use) {
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < across; ++j)
#pragma unroll
        for (int x = 0; x < 4; x += 2)
          use(i, j, x, (i * across + j) * 2 + x / 2);
  }
};

/// Adds a stage's features to the warp's sums.
__device__ inline void add_stage(const double2* rows, const double2* columns,
                                 WarpSums& sums) {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const int q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int step = 0; step < Tile::depth / Step::features; ++step) {
    const int place = piece_at(g, step * kStepPieces + q);
    double2 a[WarpSums::down * 2], b[WarpSums::across];
#pragma unroll
    for (int i = 0; i < WarpSums::down * 2; ++i)
      a[i] = rows[(i * 8 + g) * kPieces + place];
#pragma unroll
    for (int j = 0; j < WarpSums::across; ++j)
      b[j] = columns[(j * 8 + g) * kPieces + place];
#pragma unroll
    for (int i = 0; i < WarpSums::down; ++i)
#pragma unroll
      for (int j = 0; j < WarpSums::across; ++j)
        multiply(sums.v[i][j], a[2 * i], a[2 * i + 1], b[j]);
  }
}

/// Writes the warp's pairs, which start at this row and column.
template <class Rule>
__device__ inline void write_pairs(const Chunk& chunk, const WarpSums& sums,
                                   std::int64_t row0, std::int64_t column0,
                                   const Rule& rule) {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const int q = static_cast<int>(threadIdx.x) % 4;
  WarpSums::each([&](int i, int j, int x, int) {
    const std::int64_t row = row0 + i * Step::rows + g + 4 * x;
    const std::int64_t column = column0 + j * Step::columns + 2 * q;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      if (row >= chunk.num_rows || column + c >= chunk.num_columns) continue;
      const double distance =
          finished(rule, sums.v[i][j][x + c], chunk.row_sums[row],
                   chunk.column_sums[column + c], chunk.undo);
      chunk.put(row, column + c, distance);
    }
  });
}

#endif

// Computes tiles of the distance matrix. The blocks take tiles in turn. Bulk
// copies bring stages, some ahead; all warps add one stage, then the next.
// After the t-th lane, its sums are joined with as many waiting levels as t has
// trailing one bits: l with l + 4, then l + 2, then l + 1.
// In and out: see LaneWork. Grid: one block a multiprocessor, at most one a
// tile. Block: Tile::threads. Shared: Tile::shared_bytes, dynamic.
template <class Rule>
__global__ void __launch_bounds__(Tile::threads, 1)
    lane_tiles(const LaneWork work, const Rule rule) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  const unsigned staged =
      static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const unsigned full = staged + Tile::stages * Tile::stage_bytes;
  const int tid = static_cast<int>(threadIdx.x), warp = tid / 32;
  const int warp_row = warp % Tile::warps_down * Tile::warp_rows;
  const int warp_column = warp / Tile::warps_down * Tile::warp_columns;
  if (tid == 0) {
    for (int s = 0; s < Tile::stages; ++s) make_barrier(full + 8 * s, 1);
    show_barriers();
  }
  __syncthreads();
  StageFeed feed(work, staged, full);
  if (tid == 0)
    for (int s = 0; s < kStagesAhead; ++s) feed.send();

  double2* const waiting =
      reinterpret_cast<double2*>(work.waiting + blockIdx.x * Tile::waiting) +
      tid;
  constexpr int level_size = WarpSums::halves * Tile::threads;
  const std::int64_t lane_stages = work.stages / kLanes;
  unsigned done = 0;
  for (std::int64_t tile = blockIdx.x; tile < num_tiles(work);
       tile += gridDim.x) {
    WarpSums sums;
#pragma unroll 1
    for (int turn = 0; turn < kLanes; ++turn) {
      sums.clear();
#pragma unroll 1
      for (std::int64_t stage = 0; stage < lane_stages; ++stage, ++done) {
        if (tid == 0) feed.send();
        __syncwarp();
        const unsigned slot = done % Tile::stages;
        wait_for_barrier(full + 8 * slot, done / Tile::stages & 1);
        // The wait loop may leave threads diverged, and products need the whole
        // warp.
        __syncwarp();
        const double2* const rows =
            reinterpret_cast<const double2*>(shared + slot * Tile::stage_bytes);
        add_stage(rows + warp_row * kPieces,
                  rows + Tile::part / 2 + warp_column * kPieces, sums);
        order_before_copies();
        __syncthreads();
      }
      int level = __popc(turn);
#pragma unroll 1
      for (int left = turn; (left & 1) != 0; left >>= 1)
        sums.join(waiting + --level * level_size);
      if (turn + 1 < kLanes) sums.put(waiting + level * level_size);
    }
    const TilePlace place = tile_at(work, tile);
    write_pairs(work.chunk, sums, place.row * Tile::side + warp_row,
                place.column * Tile::side + warp_column, rule);
  }
#endif
}

// Tests of the order of summation.

constexpr int kTrials = 256;

/// Returns a number whose sums are rounded: all bits used, and magnitudes that
/// are close, 53 bits apart, or so small that products underflow.
__device__ inline double made_up(std::uint64_t seed, int kind) {
  std::uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  const std::uint64_t bits = z & 0x800fffffffffffffull, more = z >> 52 & 0x7ff;
  const std::uint64_t exponent = kind == 0   ? 1022 + more % 3
                                 : kind == 1 ? 1023 - 27 + more % 54
                                             : 1023 - 530 + more % 30;
  return __longlong_as_double(static_cast<long long>(bits | exponent << 52));
}

// Computes one step's sums both ways in each warp, and counts the differences.
// Grid: kTrials blocks of a warp. Shared: none.
__global__ void examine_order(int* differ) {
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, q = lane % 4;
  const int kind = static_cast<int>(blockIdx.x) % 3;
  const std::uint64_t seed = blockIdx.x * 1024ull;
  const auto value = [&](int side, int point, int f) {
    return made_up(seed + side * 256 + point * Step::features + f, kind);
  };
  const auto pair = [&](int side, int point) {
    return double2{value(side, point, q), value(side, point, q + 4)};
  };
  double sum[4], expected[4];
  for (int x = 0; x < 4; ++x) {
    const int row = g + x / 2 * 8, column = 2 * q + x % 2;
    sum[x] = expected[x] = value(2, row, column) * (blockIdx.x % 2);
    for (int f = 0; f < Step::features; ++f)
      expected[x] = fma(value(0, row, f), value(1, column, f), expected[x]);
  }
  multiply(sum, pair(0, g), pair(0, g + 8), pair(1, g));
  for (int x = 0; x < 4; ++x)
    if (__double_as_longlong(sum[x]) != __double_as_longlong(expected[x]))
      atomicAdd(differ, 1);
}

}  // namespace

bool adds_in_order(const Stream& stream) {
  static std::mutex mutex;
  static std::map<int, bool> known;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(device);
  if (found != known.end()) return found->second;
  DeviceBuffer<int> d_differ(1);
  clear_from(d_differ, 0, stream);
  examine_order<<<kTrials, 32, 0, stream.get()>>>(d_differ.data());
  CUDA_CHECK(cudaGetLastError());
  return known[device] = downloaded(d_differ.data(), stream) == 0;
}

LaneTiles::LaneTiles(std::int64_t most_rows, std::int64_t most_columns,
                     bool same, std::int64_t padded, int blocks)
    : blocks_(blocks),
      rows_(lane_doubles(most_rows, padded)),
      columns_(same ? 0 : lane_doubles(most_columns, padded)),
      waiting_(blocks * LaneTile::waiting) {}

void LaneTiles::start(const MetricEntry& metric, const Chunk& chunk,
                      cudaStream_t stream) {
  const std::int64_t length = lane_length(chunk.padded);
  LaneWork work;
  const auto turn = [&](const double* from, std::int64_t count,
                        DeviceBuffer<double>& to) {
    const std::int64_t tiles = ceil_div(count, Tile::side);
    turn_to_lanes<<<dim3(static_cast<unsigned>(length / Tile::depth),
                         static_cast<unsigned>(tiles)),
                    256, 0, stream>>>(from, count, chunk.padded, length,
                                      reinterpret_cast<double2*>(to.data()));
    CUDA_CHECK(cudaGetLastError());
    return tiles;
  };
  work.row_tiles = turn(chunk.rows, chunk.num_rows, rows_);
  work.column_tiles = chunk.same
                          ? work.row_tiles
                          : turn(chunk.columns, chunk.num_columns, columns_);
  work.rows = rows_.data();
  work.columns = chunk.same ? rows_.data() : columns_.data();
  work.stages = kLanes * (length / Tile::depth);
  work.waiting = waiting_.data();
  work.chunk = chunk;
  const std::int64_t blocks = std::min<std::int64_t>(blocks_, num_tiles(work));
  with_any_sign(metric, [&](auto rule) {
    using Rule = decltype(rule);
    if constexpr (is_unit_rule<Rule>) {
      CUDA_CHECK(cudaFuncSetAttribute(
          lane_tiles<Rule>, cudaFuncAttributeMaxDynamicSharedMemorySize,
          Tile::shared_bytes));
      lane_tiles<Rule><<<static_cast<unsigned>(blocks), Tile::threads,
                         Tile::shared_bytes, stream>>>(work, rule);
      CUDA_CHECK(cudaGetLastError());
    } else {
      throw std::logic_error("tensor cores make products of unit rows only");
    }
  });
}

}  // namespace cuda
}  // namespace fsknn
