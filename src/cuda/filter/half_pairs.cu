#include "cuda/filter/half_pairs.hpp"

#include <stdexcept>
#include <type_traits>

#include "cuda/filter/pair_kernel.cuh"
#include "cuda/filter/pair_kinds.cuh"
#include "cuda/filter/tiled_form.cuh"

namespace fsknn {
namespace cuda {
namespace {

// See filter_in_form().
template <class Kind>
__global__ void __launch_bounds__(kPairThreads, 1)
    filter_pairs(const HalfWork work, const int room) {
  extern __shared__ __align__(1024) unsigned char memory[];
  filter_in_form<TiledForm<typename Kind::Number>, Kind>(work, room, memory);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kShortRowsThreads = ShortRowsBlock::threads;
#else
constexpr int kShortRowsThreads = WarpTile::threads;
#endif

// The same for rows of one part, on Hopper only.
template <class Kind>
__global__ void __launch_bounds__(kShortRowsThreads, 1)
    filter_short_rows(const HalfWork work, const int room) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  filter_by_warpgroups<TiledForm<float>, Kind, ShortRowsBlock>(work, room,
                                                               memory);
#endif
}

/// Whether there is a kernel for short rows. Filling lists needs other tiles.
template <class Kind>
constexpr bool may_be_short() {
  return std::is_same<typename Kind::Number, float>::value && !Kind::deep &&
         Kind::numbers == 0 && Kind::symmetric && !Kind::in_one_list;
}

template <class Kind>
void start_kind(const HalfWork& work, cudaStream_t stream) {
  if (Kind::deep && work.feature_range_sums == nullptr)
    throw std::logic_error("there is no room for sums of feature_ranges");
  if constexpr (may_be_short<Kind>())
    if (work.rows.depth == FilterTile::depth &&
        has_warpgroups(filter_short_rows<Kind>))
      return start_pair_kernel<Kind>(filter_short_rows<Kind>, work, stream);
  start_pair_kernel<Kind>(filter_pairs<Kind>, work, stream);
}

}  // namespace

std::int64_t bytes_feature_range_sums(int device, std::int64_t depth) {
  if (!has_feature_ranges(depth)) return 0;
  return attribute_of(cudaDevAttrMultiProcessorCount, device) *
         kFeatureRangeBytes;
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

void start_table_pairs(const HalfWork& work, cudaStream_t stream) {
  if (work.pairs.count != nullptr)
    start_kind<TableKind<MetFor::pairs>>(work, stream);
  else if (work.jobs.symmetric)
    start_kind<TableKind<MetFor::both>>(work, stream);
  else
    start_kind<TableKind<MetFor::rows>>(work, stream);
}

void start_half_filter(Sign sign, const HalfWork& work, cudaStream_t stream) {
  const auto start = [&](auto met_for, auto deep) {
    constexpr MetFor whom = decltype(met_for)::value;
    constexpr bool many = decltype(deep)::value;
    if (work.row_numbers[0] != nullptr)
      return start_kind<FactorPairKind<whom, many>>(work, stream);
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
    if (has_feature_ranges(work.rows.depth))
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
