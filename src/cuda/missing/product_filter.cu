#include <cuda_fp16.h>

#include <algorithm>

#include "core/contract/masked.hpp"
#include "cuda/device/check.hpp"
#include "cuda/device/copies.cuh"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/missing/masked_kernels.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// 16 x 16 numbers of some points as factors of products.
struct Factors {
  unsigned value[4], mask[4], square[4];

  /// raw: halves, NaN for missing values.
  __device__ void make(const unsigned (&raw)[4], unsigned one) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      unsigned there;
      asm("set.num.u32.f16x2 %0, %1, %1;" : "=r"(there) : "r"(raw[e]));
      value[e] = raw[e] & there;
      mask[e] = one & there;
      asm("mul.rn.f16x2 %0, %1, %1;" : "=r"(square[e]) : "r"(value[e]));
    }
  }
  __device__ void turn_sign() {
#pragma unroll
    for (int e = 0; e < 4; ++e) value[e] ^= 0x80008000u;
  }
};

/// The pairs of a warp: kDown x kAcross products of 16 x 8.
template <int kDown, int kAcross>
struct Sums {
  float of[kDown][kAcross][4];
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
#pragma unroll
        for (int v = 0; v < 4; ++v) of[i][j][v] = 0.0f;
  }
};

/// The sums P, A, B, X and Y of correlations.
struct CorrelationSums {
  static constexpr int down = 2, across = 4;  // products of a warp
  static constexpr int warps_down = 4, warps_across = 2;
  static constexpr int blocks = 1;  // on a multiprocessor
  static constexpr bool loads_ahead = true;
  static constexpr unsigned one = 0x3c00u;  // 1
  Sums<down, across> p, a, b, x, y;

  __device__ void clear() {
    p.clear();
    a.clear();
    b.clear();
    x.clear();
    y.clear();
  }
  __device__ static void prepare(Factors&) {}
  __device__ void add(int i, const Factors& row,
                      const Factors (&columns)[across / 2]) {
#pragma unroll
    for (int j = 0; j < across; ++j) {
      const Factors& column = columns[j / 2];
      const int at = j % 2 * 2;
      add_products(p.of[i][j], row.value, column.value[at],
                   column.value[at + 1]);
      add_products(a.of[i][j], row.value, column.mask[at], column.mask[at + 1]);
      add_products(x.of[i][j], row.square, column.mask[at],
                   column.mask[at + 1]);
      add_products(b.of[i][j], row.mask, column.value[at],
                   column.value[at + 1]);
      add_products(y.of[i][j], row.mask, column.square[at],
                   column.square[at + 1]);
    }
  }

  /// The numbers of one row for the test of its pairs.
  struct Row {
    float threshold, known;
    ProductBounds bounds;
    __device__ Row(float reach, const float4& of)
        : threshold(reach), known(of.z), bounds{of.x, of.y} {}
  };
  __device__ static bool may_be_near(const MaskedWork& w,
                                     const PairProducts& pair, const Row& row,
                                     const float4& column) {
    const float fewest =
        fmaxf(row.known + column.z - static_cast<float>(w.terms.num_features),
              fmaxf(static_cast<float>(w.terms.min_pairs), 1.0f));
    return products_may_be_near<false>(w.sign, pair, fewest, row.threshold,
                                       row.bounds, {column.x, column.y});
  }
  __device__ static bool may_be_near(const MaskedWork& w,
                                     const PairProducts& pair, const Row& row,
                                     const float4& column, float n) {
    return products_may_be_near<true>(w.sign, pair, n, row.threshold,
                                      row.bounds, {column.x, column.y});
  }

  using Pair = PairProducts;
  __device__ Pair pair(int i, int j, int v) const {
    return {p.of[i][j][v], a.of[i][j][v], b.of[i][j][v], x.of[i][j][v],
            y.of[i][j][v]};
  }
};

/// Half of the sum of squared differences: [x^2, -x, 1/2] [1/2, y, y^2].
struct SquareSums {
  static constexpr int down = 4, across = 4;
  static constexpr int warps_down = 2, warps_across = 4;
  static constexpr int blocks = 2;
  static constexpr bool loads_ahead = false;  // registers allow no more
  static constexpr unsigned one = 0x3800u;    // 1/2
  Sums<down, across> s;

  __device__ void clear() { s.clear(); }
  __device__ static void prepare(Factors& row) { row.turn_sign(); }
  /// The order keeps products from waiting for the previous one of the same
  /// sum.
  __device__ void add(int i, const Factors& row,
                      const Factors (&columns)[across / 2]) {
    const auto each = [&](const unsigned(&of_row)[4],
                          const unsigned(Factors::*of_column)[4]) {
#pragma unroll
      for (int j = 0; j < across; ++j) {
        const unsigned(&column)[4] = columns[j / 2].*of_column;
        add_products(s.of[i][j], of_row, column[j % 2 * 2],
                     column[j % 2 * 2 + 1]);
      }
    };
    each(row.value, &Factors::value);
    each(row.square, &Factors::mask);
    each(row.mask, &Factors::square);
  }

  struct Row {
    float threshold, reach;
    ProductBounds bounds;
    __device__ Row(float near, const float4& of)
        : threshold(near),
          reach(near * sqrtf(of.z) + of.x),
          bounds{of.x, of.y} {}
  };
  /// The row's number of values bounds the number of common samples.
  __device__ static bool may_be_near(const MaskedWork&, float half,
                                     const Row& row, const float4& column) {
    return squares_may_be_near(half, row.reach, row.bounds,
                               {column.x, column.y});
  }
  __device__ static bool may_be_near(const MaskedWork&, float half,
                                     const Row& row, const float4& column,
                                     float n) {
    return squares_may_be_near(half,
                               row.threshold * sqrtf(n) + row.bounds.first,
                               row.bounds, {column.x, column.y});
  }

  using Pair = float;
  __device__ Pair pair(int i, int j, int v) const { return s.of[i][j][v]; }
};

/// A pair of a tile that passed the test of its sums. The remaining test needs
/// few words a pair, which all threads fetch together.
template <class S>
struct LeftPair {
  typename S::Pair pair;
  std::uint16_t row, column;  ///< of the tile
};

/// A block of threads computes a tile of rows x columns pairs, `depth` features
/// at a time.
template <class S>
struct ProductTile {
  static constexpr int warp_rows = 16 * S::down, warp_columns = 8 * S::across;
  static constexpr int rows = warp_rows * S::warps_down;
  static constexpr int columns = warp_columns * S::warps_across;
  static constexpr int threads = 32 * S::warps_down * S::warps_across;
  static constexpr int depth = static_cast<int>(kProductDepth);
  static constexpr int row_bytes = 2 * depth;
  static constexpr int stage_bytes = (rows + columns) * row_bytes;
  static constexpr int most_stages = 3;
  static_assert(row_bytes == 128, "a staged row is 8 pieces of 16 bytes");
  static_assert(rows * 8 % threads == 0 && columns * 8 % threads == 0,
                "threads stage as much as each other");
};

/// Orders tiles so that concurrent ones share rows and columns.
struct TilePlace {
  std::int64_t row0, column0;
  __device__ TilePlace(std::int64_t block, std::int64_t tiles_down,
                       std::int64_t tiles_across, int rows, int columns) {
    constexpr std::int64_t group = 16;
    const std::int64_t first = block / (group * tiles_across) * group;
    const std::int64_t height = min(group, tiles_down - first);
    const std::int64_t within = block % (group * tiles_across);
    row0 = (first + within % height) * rows;
    column0 = within / height * columns;
  }
};

/// Stages the features of `count` points. Piece c of 16 bytes of point r is at
/// c ^ (r & 7), so that reads of 8 points' same piece use all banks.
template <class T, int count>
__device__ inline void stage_points(unsigned to, const __half* from,
                                    std::int64_t depth, std::int64_t left,
                                    int part) {
  const int tid = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int q = 0; q < count * 8; q += T::threads) {
    const int point = (q + tid) / 8, piece = tid % 8;
    // Beyond the end it copies the first point again, which is never used.
    const std::int64_t at = point < left ? point : 0;
    copy_16_bytes(to + point * T::row_bytes + (piece ^ (point & 7)) * 16,
                  from + at * depth + part * T::depth + piece * 8);
  }
}

/// 16 features of a warp's rows and columns, as staged.
template <class S>
struct RawStep {
  unsigned rows[S::down][4], columns[S::across / 2][4];

  __device__ void load_columns(unsigned staged, int warp_column, int lane,
                               int step) {
    using T = ProductTile<S>;
    const int column = T::rows + warp_column + (lane & 7) + (lane >> 4) * 8;
    const int piece = (2 * step + ((lane >> 3) & 1)) ^ (column & 7);
#pragma unroll
    for (int j = 0; j < S::across / 2; ++j)
      load_tiles(columns[j],
                 staged + (column + 16 * j) * T::row_bytes + piece * 16);
  }
  __device__ void load_row(unsigned staged, int warp_row, int lane, int step,
                           int i) {
    using T = ProductTile<S>;
    const int row = warp_row + (lane & 15);
    const int piece = (2 * step + (lane >> 4)) ^ (row & 7);
    load_tiles(rows[i], staged + (row + 16 * i) * T::row_bytes + piece * 16);
  }
  __device__ void load(unsigned staged, int warp_row, int warp_column, int lane,
                       int step) {
    load_columns(staged, warp_column, lane, step);
#pragma unroll
    for (int i = 0; i < S::down; ++i) load_row(staged, warp_row, lane, step, i);
  }
};

template <class S>
__device__ inline void multiply(S& sums, unsigned staged, int warp_row,
                                int warp_column, int lane) {
  using T = ProductTile<S>;
  constexpr int steps = T::depth / 16;
  constexpr unsigned one = S::one << 16 | S::one;
  RawStep<S> next;
  if (S::loads_ahead) next.load(staged, warp_row, warp_column, lane, 0);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    RawStep<S> now = next;
    if (!S::loads_ahead)
      now.load_columns(staged, warp_column, lane, step);
    else if (step + 1 < steps)
      next.load(staged, warp_row, warp_column, lane, step + 1);
    Factors columns[S::across / 2];
#pragma unroll
    for (int j = 0; j < S::across / 2; ++j)
      columns[j].make(now.columns[j], one);
#pragma unroll
    for (int i = 0; i < S::down; ++i) {
      if (!S::loads_ahead) now.load_row(staged, warp_row, lane, step, i);
      Factors of_row;
      of_row.make(now.rows[i], one);
      S::prepare(of_row);
      sums.add(i, of_row, columns);
    }
  }
}

/// Appends a pair to the row's candidates if it may be near by its sums and its
/// number of samples. at_row, at_column: from row0 and column0 on.
template <class S>
__device__ __noinline__ void try_pair(const MaskedWork& w, std::int64_t at_row,
                                      std::int64_t at_column,
                                      const typename S::Pair pair) {
  const std::uint64_t* own = w.rows.masks + (w.row0 + at_row) * w.words;
  const std::uint64_t* other =
      w.columns.masks + (w.column0 + at_column) * w.words;
  int common = 0;
  for (std::int64_t word = 0; word < w.words; ++word)
    common += __popcll(own[word] & other[word]);
  const float n = static_cast<float>(common);
  if (n < static_cast<float>(w.terms.min_pairs)) return;
  const typename S::Row row(w.thresholds[at_row],
                            w.rows.bounds[w.row0 + at_row]);
  if (!S::may_be_near(w, pair, row, w.columns.bounds[w.column0 + at_column], n))
    return;
  const std::int32_t at = atomicAdd(&w.counts[at_row], 1);
  if (at < w.capacity)
    w.candidates[at_row * w.capacity + at] =
        static_cast<std::int32_t>(w.column0 + at_column);
}

// The filter by products of halves over the common samples, on tensor cores. In
// and out: see MaskedWork; halves, bounds and masks of rows and columns. Grid:
// tiles_down times the tiles across. Block: ProductTile::threads. Shared:
// num_stages x stage_bytes, dynamic. The caller guarantees that half_depth is a
// multiple of kProductDepth, and counts below 2^31.
template <class S>
__global__ void __launch_bounds__(ProductTile<S>::threads, S::blocks)
    product_filter(const __grid_constant__ MaskedWork w,
                   const std::int64_t tiles_down,
                   const std::int64_t tiles_across, const int num_stages) {
  using T = ProductTile<S>;
  extern __shared__ __align__(128) unsigned char memory[];
  const unsigned shared = shared_address(memory);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp % S::warps_down * T::warp_rows;
  const int warp_column = warp / S::warps_down * T::warp_columns;
  const TilePlace tile(blockIdx.x, tiles_down, tiles_across, T::rows,
                       T::columns);
  const __half* from_rows = w.rows.halves + (w.row0 + tile.row0) * w.half_depth;
  const __half* from_columns =
      w.columns.halves + (w.column0 + tile.column0) * w.half_depth;
  const int parts = static_cast<int>(w.half_depth / T::depth);
  const auto stage = [&](int part, int at) {
    if (part < parts) {
      const unsigned to = shared + at * T::stage_bytes;
      stage_points<T, T::rows>(to, from_rows, w.half_depth,
                               w.num_rows - tile.row0, part);
      stage_points<T, T::columns>(to + T::rows * T::row_bytes, from_columns,
                                  w.half_depth, w.num_columns - tile.column0,
                                  part);
    }
    commit_copies();
  };

  S sums;
  sums.clear();
  const int ahead = num_stages - 1;
  for (int s = 0; s < ahead; ++s) stage(s, s);
  int now = 0;
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    if (ahead == 2)
      wait_for_copies<1>();
    else
      wait_for_copies<0>();
    __syncthreads();
    // All threads had finished with this stage before the barrier.
    const int next = now + ahead;
    stage(part + ahead, next < num_stages ? next : next - num_stages);
    if (ahead == 0) {
      wait_for_copies<0>();
      __syncthreads();
    }
    multiply(sums, shared + now * T::stage_bytes, warp_row, warp_column, lane);
    now = now + 1 == num_stages ? 0 : now + 1;
  }

  // The remaining pairs overwrite the last stages, so that all threads share
  // the next test. This code runs once a tile, so it is kept short.
  __shared__ int num_left;
  using Left = LeftPair<S>;
  Left* const left = reinterpret_cast<Left*>(memory);
  const int room = num_stages * T::stage_bytes / static_cast<int>(sizeof(Left));
  __syncthreads();
  if (threadIdx.x == 0) num_left = 0;
  __syncthreads();
  const int column0 = warp_column + lane % 4 * 2;
  float4 columns[2 * S::across];
#pragma unroll
  for (int c = 0; c < 2 * S::across; ++c) {
    const std::int64_t at = tile.column0 + column0 + c / 2 * 8 + c % 2;
    columns[c] = w.columns.bounds[w.column0 + (at < w.num_columns ? at : 0)];
  }
#pragma unroll
  for (int i = 0; i < S::down; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int tile_row = warp_row + 16 * i + 8 * half + lane / 4;
      const std::int64_t at_row = tile.row0 + tile_row;
      if (at_row >= w.num_rows) continue;
      const typename S::Row row(w.thresholds[at_row],
                                w.rows.bounds[w.row0 + at_row]);
#pragma unroll
      for (int c = 0; c < 2 * S::across; ++c) {
        const typename S::Pair pair = sums.pair(i, c / 2, 2 * half + c % 2);
        if (!S::may_be_near(w, pair, row, columns[c])) continue;
        const int tile_column = column0 + c / 2 * 8 + c % 2;
        const std::int64_t at_column = tile.column0 + tile_column;
        if (at_column >= w.num_columns) continue;
        const int at = atomicAdd(&num_left, 1);
        if (at < room)
          left[at] = {pair, static_cast<std::uint16_t>(tile_row),
                      static_cast<std::uint16_t>(tile_column)};
        else
          try_pair<S>(w, at_row, at_column, pair);
      }
    }
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < min(num_left, room);
       at += T::threads)
    try_pair<S>(w, tile.row0 + left[at].row, tile.column0 + left[at].column,
                left[at].pair);
}

template <class S>
void start(const MaskedWork& work, cudaStream_t stream) {
  using T = ProductTile<S>;
  const auto kernel = product_filter<S>;
  const int device = current_device();
  const int most =
      attribute_of(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  // GPUs below 8.0 cannot copy ahead.
  const int stages = attribute_of(cudaDevAttrComputeCapabilityMajor, device) < 8
                         ? 1
                         : std::min(most / T::stage_bytes, T::most_stages);
  const int bytes = stages * T::stage_bytes;
  CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const std::int64_t down = (work.num_rows + T::rows - 1) / T::rows;
  const std::int64_t across = (work.num_columns + T::columns - 1) / T::columns;
  kernel<<<static_cast<unsigned>(down * across), T::threads,
           static_cast<std::size_t>(bytes), stream>>>(work, down, across,
                                                      stages);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void start_product_filter(const MaskedWork& work, cudaStream_t stream) {
  if (work.terms.accumulation == Accumulation::dot)
    start<CorrelationSums>(work, stream);
  else
    start<SquareSums>(work, stream);
}

}  // namespace cuda
}  // namespace fsknn
