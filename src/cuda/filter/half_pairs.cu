#include "cuda/filter/half_pairs.cuh"

#include <algorithm>
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
  filter_by_warpgroups<TiledForm<typename Kind::Number>, Kind>(work, room,
                                                               memory);
#else
  filter_by_warps<Kind>(work, room, memory);
#endif
}

template <class Kind>
void start_kind(const HalfWork& work, cudaStream_t stream) {
  using T = FilterTile;
  const auto kernel = filter_pairs<Kind>;
  const int device = device_in_use();
  const int most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  PairLaunch launch;
  launch.hopper = has_warpgroups(kernel);
  if (launch.hopper) {
    launch.room = most;
    launch.bytes = HopperMemory(work.slab_bytes(), most, Kind::numbers).bytes();
  } else {
    const int fit = (most - kQueueBytes) / T::stage_bytes;
    // Below 8.0 nothing is copied ahead.
    launch.room = capability(device) < 80 ? 1 : std::min(fit, T::most_stages);
    launch.bytes = launch.room * T::stage_bytes + kQueueBytes;
  }
  if (Kind::deep && work.stretch_sums == nullptr)
    throw std::logic_error("there is no room for sums of stretches");
  start_pairs(kernel, work, launch, stream);
}

}  // namespace

std::int64_t bytes_stretch_sums(int device, std::int64_t depth) {
  if (!has_stretches(depth)) return 0;
  return attribute(cudaDevAttrMultiProcessorCount, device) * kStretchBytes;
}

void start_bit_pairs(BitSimilarity similarity, Sign sign, const HalfWork& work,
                     cudaStream_t stream) {
  const auto start = [&](auto met_for) {
    constexpr MetFor whom = decltype(met_for)::value;
    if (similarity == BitSimilarity::overlap)
      return start_kind<BitKind<whom>>(work, stream);
    if (similarity == BitSimilarity::difference)
      return start_kind<BitDifferenceKind<whom>>(work, stream);
    switch (sign) {
      case Sign::absolute:
        return start_kind<BitProductKind<Sign::absolute, whom>>(work, stream);
      case Sign::negative:
        return start_kind<BitProductKind<Sign::negative, whom>>(work, stream);
      case Sign::signed_value:
        return start_kind<BitProductKind<Sign::signed_value, whom>>(work,
                                                                    stream);
    }
    throw_unknown("sign", static_cast<int>(sign));
  };
  if (work.pairs.count != nullptr)
    start(std::integral_constant<MetFor, MetFor::pairs>());
  else if (work.jobs.symmetric)
    start(std::integral_constant<MetFor, MetFor::both>());
  else
    start(std::integral_constant<MetFor, MetFor::rows>());
}

void start_half_filter(Sign sign, const HalfWork& work, cudaStream_t stream) {
  const auto start = [&](auto met_for, auto deep) {
    constexpr MetFor whom = decltype(met_for)::value;
    constexpr bool many = decltype(deep)::value;
    switch (sign) {
      case Sign::absolute:
        return start_kind<PairKind<Sign::absolute, whom, many>>(work, stream);
      case Sign::negative:
        return start_kind<PairKind<Sign::negative, whom, many>>(work, stream);
      case Sign::signed_value:
        return start_kind<PairKind<Sign::signed_value, whom, many>>(work,
                                                                    stream);
    }
    throw_unknown("sign", static_cast<int>(sign));
  };
  const auto start_deep = [&](auto met_for) {
    if (has_stretches(work.rows.depth))
      start(met_for, std::true_type());
    else
      start(met_for, std::false_type());
  };
  if (work.pairs.count != nullptr)
    start_deep(std::integral_constant<MetFor, MetFor::pairs>());
  else if (work.jobs.symmetric)
    start_deep(std::integral_constant<MetFor, MetFor::both>());
  else
    start_deep(std::integral_constant<MetFor, MetFor::rows>());
}

}  // namespace cuda
}  // namespace fsknn
