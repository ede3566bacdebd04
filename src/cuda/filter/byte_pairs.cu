#include "cuda/filter/byte_pairs.hpp"

#include <stdexcept>
#include <type_traits>

#include "cuda/filter/byte_form.cuh"
#include "cuda/filter/pair_kernel.cuh"
#include "cuda/filter/pair_kinds.cuh"

namespace fsknn {
namespace cuda {
namespace {

// See filter_in_form().
template <class Kind>
__global__ void __launch_bounds__(kPairThreads, 1)
    filter_pairs(const ByteWork work, const int room) {
  extern __shared__ __align__(1024) unsigned char memory[];
  filter_in_form<ByteForm, Kind>(work, room, memory);
}

template <class Kind>
void start_kind(const ByteWork& work, cudaStream_t stream) {
  start_pair_kernel<Kind>(filter_pairs<Kind>, work, stream);
}

}  // namespace

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
