#include "cuda/filter/half_pairs.cuh"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "cuda/device/check.cuh"
#include "cuda/filter/warp_pairs.cuh"
#include "cuda/filter/warpgroup_pairs.cuh"

namespace fsknn {
namespace cuda {
namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kFilterThreads = HopperBlock::threads;
#else
constexpr int kFilterThreads = WarpTile::threads;
#endif
constexpr int kQueueBytes = WarpTile::threads / 32 * WarpQueue::length *
                            static_cast<int>(sizeof(Found));
static_assert(FilterTile::stage_bytes + kQueueBytes ==
                  entry_of(NumberForm::half).shared_bytes,
              "the plan knows what a device must have");

// Similarities of pairs by tensor cores, and what reaches a row's or, by
// symmetry, a column's threshold into its list. In a graph half of the pairs of
// blocks, each for its rows and its columns (CoMet's circulant order, Joubert
// et al. 2018). In and out: see HalfWork. Grid: any, blocks take jobs in turn;
// on Hopper clusters of two. Block: kFilterThreads. Shared: dynamic, `room` the
// bytes (Hopper), or the stages.
template <class Kind>
__global__ void __launch_bounds__(kFilterThreads, 1)
    filter_pairs(const HalfWork work, const int room) {
  extern __shared__ __align__(1024) unsigned char memory[];
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  filter_by_warpgroups<Kind>(work, room, memory);
#else
  filter_by_warps<Kind>(work, room, memory);
#endif
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

int capability(int device) {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
         attribute(cudaDevAttrComputeCapabilityMinor, device);
}

template <class Kind>
void start_kind(const HalfWork& work, cudaStream_t stream) {
  using T = FilterTile;
  const auto kernel = filter_pairs<Kind>;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  // Which of the two bodies the loaded code has, its bounds tell.
  cudaFuncAttributes code;
  CUDA_CHECK(cudaFuncGetAttributes(&code, kernel));
  const bool hopper = code.maxThreadsPerBlock >= HopperBlock::threads;
  const int most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  int room, bytes;
  if (hopper) {
    room = most;
    bytes = HopperMemory(work.rows.depth, most, Kind::by_sums).bytes();
  } else {
    const int fit = (most - kQueueBytes) / T::stage_bytes;
    // Below 8.0 nothing is copied ahead.
    room = capability(device) < 80 ? 1 : std::min(fit, T::most_stages);
    bytes = room * T::stage_bytes + kQueueBytes;
  }
  CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const std::int64_t num_jobs = work.jobs.end_job - work.jobs.first_job;
  if ((work.jobs.first_job | num_jobs | work.jobs.first_slab |
       work.jobs.num_slabs) %
          T::slabs !=
      0)
    throw std::logic_error("filter jobs are not of whole blocks");
  if (Kind::deep && work.stretch_sums == nullptr)
    throw std::logic_error("there is no room for sums of stretches");
  const std::int64_t processors =
      attribute(cudaDevAttrMultiProcessorCount, device) / T::slabs * T::slabs;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = HopperBlock::cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(std::min(num_jobs, processors));
  config.blockDim = hopper ? HopperBlock::threads : WarpTile::threads;
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = hopper ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, work, room));
}

}  // namespace

std::int64_t bytes_stretch_sums(int device, std::int64_t depth) {
  if (!has_stretches(depth)) return 0;
  return attribute(cudaDevAttrMultiProcessorCount, device) * kStretchBytes;
}

void start_bit_pairs(const HalfWork& work, cudaStream_t stream) {
  if (work.jobs.symmetric)
    start_kind<BitKind<true>>(work, stream);
  else
    start_kind<BitKind<false>>(work, stream);
}

void start_half_filter(Sign sign, const HalfWork& work, cudaStream_t stream) {
  const auto start = [&](auto symmetric, auto deep) {
    constexpr bool both = decltype(symmetric)::value;
    constexpr bool many = decltype(deep)::value;
    switch (sign) {
      case Sign::absolute:
        return start_kind<PairKind<Sign::absolute, both, many>>(work, stream);
      case Sign::negative:
        return start_kind<PairKind<Sign::negative, both, many>>(work, stream);
      case Sign::signed_value:
        return start_kind<PairKind<Sign::signed_value, both, many>>(work,
                                                                    stream);
    }
    throw_unknown("sign", static_cast<int>(sign));
  };
  const auto start_deep = [&](auto symmetric) {
    if (has_stretches(work.rows.depth))
      start(symmetric, std::true_type());
    else
      start(symmetric, std::false_type());
  };
  if (work.jobs.symmetric)
    start_deep(std::true_type());
  else
    start_deep(std::false_type());
}

}  // namespace cuda
}  // namespace fsknn
