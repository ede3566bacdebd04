#pragma once

// Products on tensor cores by warpgroups (wgmma), on Hopper. The two blocks of
// a cluster have the two slabs of a block of rows, and compare them with the
// same columns: each copies half of these to both. In a block one warp starts
// copies and two warpgroups multiply 64 rows each, or four 64 rows and half of
// the columns each. They synchronise only before a stage is overwritten, so
// that one can multiply while others examine their sums.

#include <type_traits>

#include "cuda/device/copies.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/filter/accept.cuh"
#include "cuda/filter/feature_ranges.cuh"
#include "cuda/filter/jobs.cuh"
#include "cuda/filter/wgmma.cuh"

namespace fsknn {
namespace cuda {

template <int consumers_>
struct HopperBlockOf {
  static constexpr int consumers = consumers_;  ///< warpgroups: 2 or 4
  static constexpr int threads = 128 * (consumers + 1);
  static constexpr int columns_a_group = 2 * FilterTile::columns / consumers;
  static constexpr int column_groups = FilterTile::columns / columns_a_group;
  /// Registers of a thread that copies, and of one that multiplies.
  static constexpr int copying = consumers == 2 ? 40 : 24;
  static constexpr int multiplying = consumers == 2 ? 232 : 112;
  static constexpr int cluster = 2;  ///< blocks
  static constexpr int most_stages = 4;
  /// Each consumer warp signals both blocks when it has finished with a stage.
  static constexpr int releases = 4 * consumers * cluster;
  static constexpr int queue_bytes =
      4 * consumers * SpreadQueue::length * static_cast<int>(sizeof(Found));
  static constexpr int barrier_bytes = 8 * (2 * most_stages + 2);
  /// The columns' numbers that accept() needs, for the tiles in progress. Those
  /// staged may belong to most_stages tiles, and two more are being examined.
  static constexpr int tiles = 6;
  static constexpr int numbers_bytes = FilterTile::columns * 4;
  /// Thresholds, or whether columns are points, and this many numbers.
  static constexpr int bytes_of_numbers(int numbers) {
    return (1 + numbers) * numbers_bytes;
  }
  static_assert(tiles >= most_stages + 2, "no tile's numbers are overwritten");
};
/// Its sums fill the registers of two warpgroups.
using HopperBlock = HopperBlockOf<2>;
/// For rows of one part, whose sums take longer to examine than to compute:
/// more warps hide the latencies of the examination.
using ShortRowsBlock = HopperBlockOf<4>;
static_assert(FilterTile::slabs == HopperBlock::cluster,
              "a cluster's rows are a block of slots");

/// The layout of a block's shared memory: the rows' tiles, if they stay for a
/// whole job; stages of the columns' tile, and of the rows' if they do not;
/// queues; the columns' numbers; barriers.
struct HopperMemory {
  int rows_bytes, stage_bytes, num_stages, queue_bytes, numbers_bytes;

  /// slab_bytes: of all features of a slab's rows. consumers: warpgroups.
  __host__ __device__ HopperMemory(std::int64_t slab_bytes, int room,
                                   int numbers, int consumers) {
    using T = FilterTile;
    using B = HopperBlock;
    queue_bytes = B::queue_bytes / B::consumers * consumers;
    numbers_bytes = B::bytes_of_numbers(numbers);
    room -= queue_bytes + B::tiles * numbers_bytes + B::barrier_bytes;
    const bool stay = slab_bytes + 3 * T::column_tile_bytes <= room;
    rows_bytes = stay ? static_cast<int>(slab_bytes) : 0;
    stage_bytes = stay ? T::column_tile_bytes : T::stage_bytes;
    num_stages = (room - rows_bytes) / stage_bytes;
    if (num_stages > B::most_stages) num_stages = B::most_stages;
  }
  __host__ __device__ int queues() const {
    return rows_bytes + num_stages * stage_bytes;
  }
  __host__ __device__ int numbers() const { return queues() + queue_bytes; }
  __host__ __device__ int barriers() const {
    return numbers() + HopperBlock::tiles * numbers_bytes;
  }
  __host__ __device__ int bytes() const {
    return barriers() + HopperBlock::barrier_bytes;
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Like WarpPairs, for a warpgroup: 64 rows by a group of columns. Number_ is
/// the type of the tensor cores' sums.
template <class Number_, class Block>
class WarpgroupPairs {
 public:
  using Number = Number_;
  /// Filters whose sums are whole numbers ignore FillRule.
  static constexpr bool is_float = std::is_same<Number, float>::value;
  static constexpr int column_pairs = 4;  ///< a group's, every 8 columns
  static constexpr int group_columns = 8 * column_pairs;
  static constexpr int rows = 2;
  static constexpr int groups = Block::columns_a_group / group_columns;

  __device__ WarpgroupPairs(int warp, int lane)
      : first_row(row_group(warp) * 64 + warp % 4 * 16 + LanePlace::row(lane)),
        first_column(column_group(warp) * Block::columns_a_group +
                     LanePlace::column(lane)) {}
  __device__ static int row_group(int warp) {
    return warp / 4 / Block::column_groups;
  }
  __device__ static int column_group(int warp) {
    return warp / 4 % Block::column_groups;
  }
  __device__ static constexpr int row_of(int at) { return at / 2 % 2; }
  __device__ static constexpr int column_of(int at) {
    return at / 4 * 8 + at % 2;
  }
  __device__ Number value(int group, int at) const {
    return sums[group * 16 + at];
  }
  __device__ Number& sum(int i) { return sums[i]; }
  __device__ Number sum(int i) const { return sums[i]; }

  const int first_row, first_column;
  Number sums[16 * groups];
};

/// A position in the ring of stages.
struct StageTurn {
  int stage = 0;
  unsigned parity = 0;
  __device__ void next(int num_stages) {
    if (++stage < num_stages) return;
    stage = 0;
    parity ^= 1;
  }
};

struct HopperBarriers {
  unsigned first;
  int num_stages;
  __device__ unsigned full(int stage) const { return first + 8 * stage; }
  __device__ unsigned empty(int stage) const {
    return first + 8 * (num_stages + stage);
  }
  __device__ unsigned rows_full() const { return first + 16 * num_stages; }
  __device__ unsigned rows_empty() const { return first + 16 * num_stages + 8; }
};

/// The jobs of a cluster: two successive ones at a time.
struct ClusterJobs {
  std::int64_t first, step;
  __device__ explicit ClusterJobs(const FilterJobs& jobs)
      : first(jobs.first_job +
              blockIdx.x / HopperBlock::cluster * HopperBlock::cluster +
              cluster_rank()),
        step(gridDim.x) {}
};

/// Starts all copies, in one thread.
template <class Form, class Kind>
__device__ inline void copy_for_products(const typename Form::Work& work,
                                         const HopperMemory& layout,
                                         const HopperBarriers& barriers,
                                         unsigned shared) {
  using T = FilterTile;
  const int parts = Form::parts(work);
  const bool rows_stay = layout.rows_bytes > 0;
  const unsigned stages = shared + layout.rows_bytes;
  StageTurn turn;
  unsigned job_parity = 0;
  unsigned tile = 0;
  const ClusterJobs mine(work.jobs);
  for (std::int64_t at = mine.first; at < work.jobs.end_job; at += mine.step) {
    const FilterJob job(work.jobs, at);
    if (rows_stay) {
      wait_for_barrier(barriers.rows_empty(), job_parity ^ 1);
      expect_bytes(barriers.rows_full(), layout.rows_bytes);
      for (int part = 0; part < parts; ++part)
        Form::copy_rows(work, job.slab, part, shared + part * T::row_tile_bytes,
                        barriers.rows_full());
      job_parity ^= 1;
    }
    std::int64_t column_block = job.column_block;
    for (std::int64_t delta = job.first_delta; delta < job.end_delta; ++delta) {
      for (int part = 0; part < parts; ++part) {
        const unsigned to = stages + turn.stage * layout.stage_bytes;
        const unsigned full = barriers.full(turn.stage);
        wait_ahead_for_barrier(barriers.empty(turn.stage), turn.parity ^ 1);
        expect_bytes(full, Form::columns_bytes(work, part) +
                               (part == 0 ? layout.numbers_bytes : 0) +
                               (rows_stay ? 0 : Form::rows_bytes(work, part)));
        if (part == 0) {
          constexpr int bytes = HopperBlock::numbers_bytes;
          const unsigned numbers =
              shared + layout.numbers() +
              tile++ % HopperBlock::tiles * layout.numbers_bytes;
          const std::int64_t first = column_block * T::columns;
          copy_bulk(numbers, column_numbers<Kind>(work) + first, bytes, full);
          for (int which = 0; which < Kind::numbers; ++which)
            copy_bulk(numbers + (1 + which) * bytes,
                      work.column_numbers[which] + first, bytes, full);
        }
        Form::copy_columns(work, column_block, part, to, full);
        if (!rows_stay)
          Form::copy_rows(work, job.slab, part, to + T::column_tile_bytes,
                          full);
        turn.next(layout.num_stages);
      }
      column_block = FilterJob::next(work.jobs, column_block, delta);
    }
  }
}

/// Multiplies and collects the pairs found, by a warpgroup.
template <class Form, class Kind, class Block>
__device__ inline void multiply_and_accept(const typename Form::Work& work,
                                           const HopperMemory& layout,
                                           const HopperBarriers& barriers,
                                           unsigned shared,
                                           unsigned char* memory) {
  using T = FilterTile;
  using P = WarpgroupPairs<typename Form::Number, Block>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned own_rows = P::row_group(warp) * Form::warpgroup_bytes;
  const unsigned own_columns =
      P::column_group(warp) * Block::columns_a_group * Form::column_bytes;
  const int parts = Form::parts(work);
  const bool rows_stay = layout.rows_bytes > 0;
  const unsigned stages = shared + layout.rows_bytes;
  SpreadQueue queue(reinterpret_cast<Found*>(memory + layout.queues()) +
                        warp * SpreadQueue::length,
                    lane);
  const float* const numbers =
      reinterpret_cast<const float*>(memory + layout.numbers());
  P pairs(warp, lane);
  const auto release = [&](int stage) {
    if (lane < HopperBlock::cluster) arrive_at(barriers.empty(stage), lane);
  };
  StageTurn turn;
  unsigned job_parity = 0, tile = 0;
  const ClusterJobs mine(work.jobs);
  for (std::int64_t at = mine.first; at < work.jobs.end_job; at += mine.step) {
    const FilterJob job(work.jobs, at);
    std::int64_t column_block = job.column_block;
    const std::int32_t row0 =
        static_cast<std::int32_t>(job.slab * T::rows) + pairs.first_row;
    const RowNumbers<Kind, P::rows> of_rows(work, row0);
    if (rows_stay) wait_for_barrier(barriers.rows_full(), job_parity);

    for (std::int64_t delta = job.first_delta; delta < job.end_delta; ++delta) {
      int before = 0;
#pragma unroll 1
      for (int part = 0; part < parts; ++part) {
        wait_for_barrier(barriers.full(turn.stage), turn.parity);
        const unsigned columns_at = stages + turn.stage * layout.stage_bytes;
        const unsigned rows_at = rows_stay ? shared + part * T::row_tile_bytes
                                           : columns_at + T::column_tile_bytes;
        begin_products();
        Form::multiply(
            pairs.sums, work, part, rows_at + own_rows,
            columns_at + own_columns,
            Kind::deep ? FeatureRangeSums::begins_at(part) : part == 0);
        end_products();
        wait_for_products<1>();
        if (part > 0) release(before);
        before = turn.stage;
        if constexpr (Kind::deep)
          if (FeatureRangeSums::ends_at(part, parts)) {
            wait_for_products<0>();
            FeatureRangeSums(work).put(pairs, part);
          }
        turn.next(layout.num_stages);
      }
      wait_for_products<0>();
      release(before);
      if constexpr (Kind::deep) FeatureRangeSums(work).add_to(pairs);
      if (rows_stay && delta + 1 == job.end_delta) {
        if (lane == 0) arrive_at(barriers.rows_empty(), cluster_rank());
        job_parity ^= 1;
      }
      const std::int32_t column0 =
          static_cast<std::int32_t>(column_block * T::columns) +
          pairs.first_column;
      const float* const of_tile =
          numbers + tile % HopperBlock::tiles * (layout.numbers_bytes / 4) +
          pairs.first_column;
      const ColumnNumbers<Kind> of_columns = {
          of_tile,
          {of_tile + T::columns, of_tile + 2 * T::columns,
           of_tile + 3 * T::columns}};
      if constexpr (Kind::symmetric) {
        accept<Kind>(work, pairs, of_rows, of_columns, row0, column0, queue);
      } else {
        if (!work.jobs.fill)
          accept<Kind>(work, pairs, of_rows, of_columns, row0, column0, queue);
        else if (P::is_float && work.fill_rule.k > 0)
          write_nearest<Kind>(work, pairs, of_rows, of_columns, row0, column0);
        else
          write_all<Kind>(work, pairs, of_rows, of_columns, row0, column0,
                          delta);
      }
      // Orders all lanes' reads of the columns' numbers before the arrivals of
      // two lanes that let these be overwritten.
      __syncwarp();
      ++tile;
      column_block = FilterJob::next(work.jobs, column_block, delta);
    }
  }
  queue.flush(list_of<Kind>(work));
}

/// The kernel's body. memory: see HopperMemory.
template <class Form, class Kind, class Block>
__device__ inline void filter_by_warpgroups(const typename Form::Work& work,
                                            int room, unsigned char* memory) {
  using B = Block;
  const HopperMemory layout(work.slab_bytes(), room, Kind::numbers,
                            B::consumers);
  const unsigned shared = shared_address(memory);
  const HopperBarriers barriers = {
      shared + static_cast<unsigned>(layout.barriers()), layout.num_stages};
  if (threadIdx.x == 0) {
    for (int s = 0; s < layout.num_stages; ++s) {
      make_barrier(barriers.full(s), 1);
      make_barrier(barriers.empty(s), B::releases);
    }
    make_barrier(barriers.rows_full(), 1);
    make_barrier(barriers.rows_empty(), 4 * B::consumers);
    show_barriers();
  }
  cluster_sync();
  if (threadIdx.x >= 128 * B::consumers) {
    leave_registers<B::copying>();
    if (threadIdx.x == 128 * B::consumers)
      copy_for_products<Form, Kind>(work, layout, barriers, shared);
  } else {
    take_registers<B::multiplying>();
    multiply_and_accept<Form, Kind, B>(work, layout, barriers, shared, memory);
  }
  // Neither block may end while the other can still write to its memory.
  __syncwarp();
  cluster_sync();
}

#endif

}  // namespace cuda
}  // namespace fsknn
