#pragma once

// Products on tensor cores by warps (mma.sync), for any GPU from compute
// capability 7.5 on.

#include "cuda/device/copies.cuh"
#include "cuda/filter/accept.cuh"
#include "cuda/filter/feature_ranges.cuh"
#include "cuda/filter/jobs.cuh"

namespace fsknn {
namespace cuda {

/// Loads four 8 x 8 tiles of halves in the layout of the products.
__device__ inline void load_tiles(unsigned (&to)[4], unsigned from) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(from));
}
/// Multiplies 16 x 8 pairs by 16 features.
__device__ inline void add_products(float (&sum)[4], const unsigned (&a)[4],
                                    unsigned b0, unsigned b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  const auto add_half = [&](unsigned a0, unsigned a1, unsigned b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(b));
  };
  add_half(a[0], a[1], b0);
  add_half(a[2], a[3], b1);
#endif
}

/// Does the same for 256 bits, and counts the common ones.
__device__ inline void add_products(int (&sum)[4], const unsigned (&a)[4],
                                    unsigned b0, unsigned b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  (void)sum, (void)a, (void)b0, (void)b1;
  __trap();  // the plan gives such a device no bits
#endif
}

/// Multiplies 16 x 8 pairs by 32 features of signed bytes. Sums are whole
/// numbers, so they are exact.
__device__ inline void add_byte_products(int (&sum)[4], const unsigned (&a)[4],
                                         unsigned b0, unsigned b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  // Handles 8 x 8 pairs and 16 features.
  const auto add_quarter = [&](int& sum0, int& sum1, unsigned rows,
                               unsigned columns) {
    asm volatile(
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 "
        "{%0, %1}, {%2}, {%3}, {%0, %1};\n"
        : "+r"(sum0), "+r"(sum1)
        : "r"(rows), "r"(columns));
  };
  add_quarter(sum[0], sum[1], a[0], b0);
  add_quarter(sum[2], sum[3], a[1], b0);
  add_quarter(sum[0], sum[1], a[2], b1);
  add_quarter(sum[2], sum[3], a[3], b1);
#endif
}

/// Eight warps handle 64 x 64 pairs each, as products of 16 x 8 pairs and 32
/// bytes of a row: a step.
struct WarpTile {
  static constexpr int rows = 64, columns = 64;
  static constexpr int down = FilterTile::rows / rows;
  static constexpr int products_down = rows / 16, products_across = columns / 8;
  static constexpr int steps = FilterTile::row_bytes / 32;
  static constexpr int threads = 32 * down * (FilterTile::columns / columns);
};

/// A thread's part of a tile: sums in `groups` groups of 16 values. Value `at`
/// of a group belongs to the thread's row number row_of(at) (the first, and
/// every 8 from there) and to column column_of(at) from the group's first.
/// Form: see TiledForm.
template <class Form>
class WarpPairs {
 public:
  using Number = typename Form::Number;
  using Work = typename Form::Work;
  static constexpr int rows = 2 * WarpTile::products_down;
  static constexpr int groups = WarpTile::products_across;
  static constexpr int column_pairs = 1, group_columns = 8;

  __device__ WarpPairs(int warp, int lane)
      : first_row(warp % WarpTile::down * WarpTile::rows +
                  LanePlace::row(lane)),
        first_column(warp / WarpTile::down * WarpTile::columns +
                     LanePlace::column(lane)),
        warp_row_(warp % WarpTile::down * WarpTile::rows),
        warp_column_(warp / WarpTile::down * WarpTile::columns),
        lane_(lane) {}
  __device__ static constexpr int row_of(int at) { return at / 2; }
  __device__ static constexpr int column_of(int at) { return at % 2; }
  __device__ Number value(int group, int at) const {
    return sum_[at / 4][group][at % 4];
  }
  __device__ Number& sum(int i) { return sum_[i / 32][i / 4 % 8][i % 4]; }
  __device__ Number sum(int i) const { return sum_[i / 32][i / 4 % 8][i % 4]; }

  /// Adds the products of a part's features, which are in this stage: the
  /// columns' tile, then the rows'.
  __device__ void multiply(const Work& work, int part, unsigned staged,
                           bool first) {
    if (first) clear();
    const int steps = Form::steps(work, part);
    if (steps == WarpTile::steps) {
#pragma unroll
      for (int step = 0; step < WarpTile::steps; ++step) add_step(staged, step);
    } else {
#pragma unroll 1
      for (int step = 0; step < steps; ++step) add_step(staged, step);
    }
  }
  const int first_row, first_column;

 private:
  __device__ void add_step(unsigned staged, int step) {
    using W = WarpTile;
    unsigned a[W::products_down][4], b[W::products_across / 2][4];
    const unsigned rows_at =
        staged + FilterTile::column_tile_bytes +
        Form::row_at(warp_row_ + (lane_ & 15), 2 * step + (lane_ >> 4));
    const unsigned columns_at =
        staged + Form::column_at(warp_column_ + (lane_ & 7) + (lane_ >> 4) * 8,
                                 2 * step + ((lane_ >> 3) & 1));
#pragma unroll
    for (int i = 0; i < W::products_down; ++i)
      load_tiles(a[i], rows_at + i * Form::bytes_of_16);
#pragma unroll
    for (int j = 0; j < W::products_across / 2; ++j)
      load_tiles(b[j], columns_at + j * Form::bytes_of_16);
#pragma unroll
    for (int i = 0; i < W::products_down; ++i)
#pragma unroll
      for (int j = 0; j < W::products_across; ++j)
        Form::add(sum_[i][j], a[i], b[j / 2][j % 2 * 2],
                  b[j / 2][j % 2 * 2 + 1]);
  }
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < WarpTile::products_down; ++i)
#pragma unroll
      for (int j = 0; j < WarpTile::products_across; ++j)
#pragma unroll
        for (int v = 0; v < 4; ++v) sum_[i][j][v] = Number();
  }
  Number sum_[WarpTile::products_down][WarpTile::products_across][4];
  int warp_row_, warp_column_, lane_;
};

/// Stages the features of a job's tiles, part after part, as far ahead as there
/// are stages.
template <class Form>
class Stager {
 public:
  using Work = typename Form::Work;

  __device__ Stager(const Work& work, const FilterJob& job, unsigned shared)
      : work_(work),
        job_(job),
        parts_(Form::parts(work)),
        delta_(job.first_delta),
        shared_(shared) {}

  /// Copies the next part into this stage, if any is left.
  __device__ void stage(int stage) {
    if (delta_ == job_.end_delta) return;
    Form::copy(work_, job_.column_block, job_.slab, part_,
               shared_ + stage * FilterTile::stage_bytes);
    if (++part_ < parts_) return;
    part_ = 0;
    job_.column_block =
        FilterJob::next(work_.jobs, job_.column_block, delta_++);
  }

 private:
  const Work& work_;
  FilterJob job_;
  int parts_, part_ = 0;
  std::int64_t delta_;
  unsigned shared_;
};

/// The kernel's body. shared: num_stages x FilterTile::stage_bytes, then the
/// warps' queues. With one stage, copies and products alternate.
template <class Form, class Kind>
__device__ inline void filter_by_warps(const typename Form::Work& work,
                                       int num_stages, unsigned char* memory) {
  using T = FilterTile;
  using P = WarpPairs<Form>;
  const unsigned shared = shared_address(memory);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  SpreadQueue queue(
      reinterpret_cast<Found*>(memory + num_stages * T::stage_bytes) +
          warp * SpreadQueue::length,
      lane);
  const int parts = Form::parts(work);
  const int ahead = num_stages - 1;  // stages in transfer
  P pairs(warp, lane);

  for (std::int64_t at = work.jobs.first_job + blockIdx.x;
       at < work.jobs.end_job; at += gridDim.x) {
    const FilterJob job(work.jobs, at);
    std::int64_t column_block = job.column_block;
    __syncthreads();  // the last job's stages have been read
    Stager<Form> stager(work, job, shared);
    for (int s = 0; s < ahead; ++s) {
      stager.stage(s);
      commit_copies();
    }
    int now = 0;

    const std::int32_t row0 =
        static_cast<std::int32_t>(job.slab * T::rows) + pairs.first_row;
    const RowNumbers<Kind, P::rows> of_rows(work, row0);

    for (std::int64_t delta = job.first_delta; delta < job.end_delta; ++delta) {
#pragma unroll 1
      for (int part = 0; part < parts; ++part) {
        if (ahead == 3)
          wait_for_copies<2>();
        else if (ahead == 2)
          wait_for_copies<1>();
        else
          wait_for_copies<0>();
        __syncthreads();
        // All threads had finished with this stage before the barrier.
        const int next = now + ahead;
        stager.stage(next < num_stages ? next : next - num_stages);
        commit_copies();
        if (ahead == 0) {
          wait_for_copies<0>();
          __syncthreads();
        }
        pairs.multiply(
            work, part, shared + now * T::stage_bytes,
            Kind::deep ? FeatureRangeSums::begins_at(part) : part == 0);
        if constexpr (Kind::deep)
          if (FeatureRangeSums::ends_at(part, parts))
            FeatureRangeSums(work).put(pairs, part);
        now = now + 1 == num_stages ? 0 : now + 1;
      }
      if constexpr (Kind::deep) FeatureRangeSums(work).add_to(pairs);
      const std::int32_t column0 =
          static_cast<std::int32_t>(column_block * T::columns) +
          pairs.first_column;
      const ColumnNumbers<Kind> of_columns = {
          column_numbers<Kind>(work) + column0,
          {work.column_numbers[0] + column0, work.column_numbers[1] + column0,
           work.column_numbers[2] + column0}};
      if (!Kind::symmetric && work.jobs.fill)
        write_all<Kind>(work, pairs, of_rows, of_columns, row0, column0, delta);
      else
        accept<Kind>(work, pairs, of_rows, of_columns, row0, column0, queue);
      column_block = FilterJob::next(work.jobs, column_block, delta);
    }
    queue.flush(list_of<Kind>(work));
    wait_for_copies<0>();
  }
}

}  // namespace cuda
}  // namespace fsknn
