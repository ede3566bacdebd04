#include "cuda/filter/elementwise_pairs.cuh"
#include "cuda/filter/float_pairs.cuh"

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
  /// |a - b| is one addition, its absolute value part of the next: two
  /// instructions a feature.
  __device__ static float add(std::uint32_t a, std::uint32_t b, float sum) {
    const float difference = fabsf(__uint_as_float(a) - __uint_as_float(b));
    return kind == FilterKind::largest ? fmaxf(sum, difference)
                                       : sum + difference;
  }
  __device__ static float differences(float sum, std::uint32_t) { return sum; }
};

template <FilterKind kind>
void start(const ElementwiseWork& work, cudaStream_t stream) {
  elementwise::start_pairs_of<Floats<kind>, kind>(work, stream);
}

}  // namespace

void start_float_pairs(FilterKind kind, const ElementwiseWork& work,
                       cudaStream_t stream) {
  switch (kind) {
    case FilterKind::difference:
      return start<FilterKind::difference>(work, stream);
    case FilterKind::largest: return start<FilterKind::largest>(work, stream);
    case FilterKind::overlap: return start<FilterKind::overlap>(work, stream);
    case FilterKind::none:
    case FilterKind::product:
    case FilterKind::bits: break;
  }
  throw_unknown("filter of differences", static_cast<int>(kind));
}

}  // namespace cuda
}  // namespace fsknn
