#include "cuda/filter/byte_pairs.cuh"

#include <stdexcept>
#include <type_traits>

#include "cuda/filter/byte_form.cuh"
#include "cuda/filter/pair_kernel.cuh"

namespace fsknn {
namespace cuda {
namespace {

template <class Kind>
void start_kind(const ByteWork& work, cudaStream_t stream) {
  start_pairs<ByteForm, Kind>(work, stream);
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
