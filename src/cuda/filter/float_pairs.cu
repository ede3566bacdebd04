#include "cuda/filter/elementwise_pairs.cuh"
#include "cuda/filter/float_pairs.hpp"
#include "cuda/filter/start_elementwise.cuh"

namespace fsknn {
namespace cuda {
namespace {

template <FilterKind kind>
struct Floats {
  static_assert(kind == FilterKind::difference || kind == FilterKind::largest ||
                    kind == FilterKind::overlap,
                "add() knows what is added up");
  using Sum = float;
  static constexpr int blocks = 1, loaded = 4;
  static constexpr bool by_totals = false;
  __device__ static float zero() { return 0.0f; }
  /// |a - b| costs two instructions a feature: an addition, whose absolute
  /// value is an operand modifier of the next one.
  __device__ static float add(std::uint32_t a, std::uint32_t b, float sum) {
    const float difference = fabsf(__uint_as_float(a) - __uint_as_float(b));
    return kind == FilterKind::largest ? fmaxf(sum, difference)
                                       : sum + difference;
  }
  __device__ static float differences(float sum, std::uint32_t) { return sum; }
};

// Block: ElementwiseTile::threads; otherwise as filter_pairs().
template <class Numbers, FilterKind kind, bool in_one_list>
__global__ void __launch_bounds__(ElementwiseTile::threads, Numbers::blocks)
    filter_floats(const ElementwiseWork work, const int num_stages) {
  extern __shared__ __align__(16) std::uint32_t stages[];
  elementwise::filter_pairs<Numbers, kind, in_one_list>(work, num_stages,
                                                        stages);
}

template <class Numbers, FilterKind kind>
void start(const ElementwiseWork& work, cudaStream_t stream) {
  start_elementwise(work.pairs.count != nullptr
                        ? filter_floats<Numbers, kind, true>
                        : filter_floats<Numbers, kind, false>,
                    Numbers::blocks, work, stream);
}

}  // namespace

void start_float_pairs(FilterKind kind, const ElementwiseWork& work,
                       cudaStream_t stream) {
  switch (kind) {
    case FilterKind::difference:
      return start<Floats<FilterKind::difference>, FilterKind::difference>(
          work, stream);
    case FilterKind::largest:
      return start<Floats<FilterKind::largest>, FilterKind::largest>(work,
                                                                     stream);
    case FilterKind::overlap:
      return start<Floats<FilterKind::overlap>, FilterKind::overlap>(work,
                                                                     stream);
    case FilterKind::none:
    case FilterKind::product:
    case FilterKind::table:
    case FilterKind::bits: break;
  }
  throw_unknown("filter of differences", static_cast<int>(kind));
}

}  // namespace cuda
}  // namespace fsknn
