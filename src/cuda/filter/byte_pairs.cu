#include "cuda/filter/byte_pairs.cuh"

#include <stdexcept>
#include <type_traits>

#include "cuda/device/check.cuh"
#include "cuda/filter/start_pairs.cuh"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/filter/warpgroup_pairs.cuh"

namespace fsknn {
namespace cuda {
namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kThreads = HopperBlock::threads;

/// As TiledForm.
struct ByteForm {
  using Work = ByteWork;
  using Number = int;
  using T = ByteTile;
  static constexpr int step_chunks = T::step / T::chunk;
  static constexpr int warpgroup_bytes = 64 * T::chunk;

  __device__ static int steps(const Work& work, int part) {
    return min(T::part_steps, static_cast<int>(work.rows.depth / T::step) -
                                  part * T::part_steps);
  }
  __device__ static int parts(const Work& work) {
    return (static_cast<int>(work.rows.depth / T::step) + T::part_steps - 1) /
           T::part_steps;
  }
  __device__ static int columns_bytes(const Work& work, int part) {
    return steps(work, part) * step_chunks * T::column_chunk_bytes;
  }
  __device__ static int rows_bytes(const Work& work, int part) {
    return steps(work, part) * step_chunks * T::row_chunk_bytes;
  }
  __device__ static void copy_rows(const Work& work, std::int64_t slab,
                                   int part, unsigned to, unsigned barrier) {
    const std::int8_t* from =
        work.rows.chunk(slab / FilterTile::slabs,
                        part * T::part_steps * step_chunks) +
        slab % FilterTile::slabs * T::row_chunk_bytes;
    for (int chunks = steps(work, part) * step_chunks; chunks > 0; --chunks) {
      copy_bulk(to, from, T::row_chunk_bytes, barrier);
      to += T::row_chunk_bytes;
      from += T::column_chunk_bytes;
    }
  }
  /// This block's half of the features, to both blocks of the cluster.
  __device__ static void copy_columns(const Work& work, std::int64_t block,
                                      int part, unsigned to, unsigned barrier) {
    const int half = columns_bytes(work, part) / 2;
    const unsigned rank = cluster_rank();
    copy_bulk_to_both(
        to + rank * half,
        work.columns.chunk(block, part * T::part_steps * step_chunks) +
            rank * half,
        half, barrier);
  }
  __device__ static void multiply(int (&sum)[128], const Work& work, int part,
                                  unsigned rows_at, unsigned columns_at,
                                  bool first) {
    const auto add = [&](int step, int keep) {
      add_byte_products(
          sum,
          chunk_descriptor(rows_at + step * step_chunks * T::row_chunk_bytes,
                           T::row_chunk_bytes),
          chunk_descriptor(
              columns_at + step * step_chunks * T::column_chunk_bytes,
              T::column_chunk_bytes),
          keep);
    };
    const int count = steps(work, part);
    add(0, first ? 0 : 1);
    if (count == T::part_steps) {
#pragma unroll
      for (int step = 1; step < T::part_steps; ++step) add(step, 1);
    } else {
#pragma unroll 1
      for (int step = 1; step < count; ++step) add(step, 1);
    }
  }
};
#else
constexpr int kThreads = 32;
#endif

// As filter_pairs() of half_pairs.cu, of rows of bytes. Grid: any, blocks take
// jobs in turn, in clusters of two. Block: kThreads. Shared: dynamic, `room`
// the bytes there are. No code but Hopper's does anything.
template <class Kind>
__global__ void __launch_bounds__(kThreads, 1)
    filter_bytes(const ByteWork work, const int room) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  filter_by_warpgroups<ByteForm, Kind>(work, room, memory);
#endif
}

template <class Kind>
void start_kind(const ByteWork& work, cudaStream_t stream) {
  PairLaunch launch;
  launch.hopper = true;
  launch.room =
      attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device_in_use());
  launch.bytes =
      HopperMemory(work.slab_bytes(), launch.room, Kind::numbers).bytes();
  start_pairs(filter_bytes<Kind>, work, launch, stream);
}

}  // namespace

bool has_byte_filter() {
  return has_warpgroups(
      filter_bytes<PairKind<Sign::signed_value, MetFor::both, false>>);
}

void start_byte_filter(Sign sign, const ByteWork& work, cudaStream_t stream) {
  if (work.pairs.count != nullptr)
    throw std::logic_error("one list of all pairs has no filter by bytes");
  const auto start = [&](auto met_for) {
    constexpr MetFor whom = decltype(met_for)::value;
    switch (sign) {
      case Sign::absolute:
        return start_kind<PairKind<Sign::absolute, whom, false>>(work, stream);
      case Sign::negative:
        return start_kind<PairKind<Sign::negative, whom, false>>(work, stream);
      case Sign::signed_value:
        return start_kind<PairKind<Sign::signed_value, whom, false>>(work,
                                                                     stream);
    }
    throw_unknown("sign", static_cast<int>(sign));
  };
  if (work.jobs.symmetric)
    start(std::integral_constant<MetFor, MetFor::both>());
  else
    start(std::integral_constant<MetFor, MetFor::rows>());
}

}  // namespace cuda
}  // namespace fsknn
