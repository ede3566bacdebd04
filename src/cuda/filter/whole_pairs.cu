#include "cuda/filter/elementwise_pairs.cuh"
#include "cuda/filter/start_elementwise.cuh"
#include "cuda/filter/whole_pairs.hpp"

namespace fsknn {
namespace cuda {
namespace {

/// Four bytes a word.
struct Bytes {
  using Sum = std::uint32_t;
  static constexpr int blocks = 2, loaded = 4;
  static constexpr bool by_totals = false;
  /// The bits of 2^23, so that the bits of the sum are those of 2^23 plus all
  /// differences.
  __device__ static std::uint32_t zero() { return 0x4b000000u; }
  /// Adds four differences to the sum in one instruction.
  __device__ static std::uint32_t add(std::uint32_t a, std::uint32_t b,
                                      std::uint32_t sum) {
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %0;"
        : "+r"(sum)
        : "r"(a), "r"(b));
    return sum;
  }
  __device__ static float differences(std::uint32_t sum, std::uint32_t) {
    return __uint_as_float(sum) - 0x1p23f;
  }
};

/// Two 16-bit numbers a word. |a - b| = a + b - 2 min(a, b), so minima are
/// summed, two at a time, in 32 bits.
struct Words {
  using Sum = std::uint32_t;
  static constexpr int blocks = 2, loaded = 2;
  static constexpr bool by_totals = true;
  __device__ static std::uint32_t zero() { return 0u; }
  __device__ static std::uint32_t add(std::uint32_t a, std::uint32_t b,
                                      std::uint32_t sum) {
    return __dp2a_lo(__vminu2(a, b), 0x0101u, sum);
  }
  __device__ static float differences(std::uint32_t sum, std::uint32_t totals) {
    return __uint2float_rn(totals - 2u * sum);
  }
};

/// The same below 2^15, for the largest difference: a + ~b is a - b - 1, so
/// that the larger of both is |a - b| - 1, in each half.
struct LargestWords {
  using Sum = std::uint32_t;
  static constexpr int blocks = 1, loaded = 4;
  static constexpr bool by_totals = false;
  __device__ static std::uint32_t zero() { return 0xffffffffu; }
  __device__ static std::uint32_t add(std::uint32_t a, std::uint32_t b,
                                      std::uint32_t sum) {
    return __viaddmax_s16x2(b, ~a, __viaddmax_s16x2(a, ~b, sum));
  }
  __device__ static float differences(std::uint32_t sum, std::uint32_t) {
    const int low = static_cast<std::int16_t>(sum & 0xffffu);
    const int high = static_cast<std::int32_t>(sum) >> 16;
    return static_cast<float>(max(low, high) + 1);
  }
};

// Block: ElementwiseTile::threads; otherwise as filter_pairs().
template <class Numbers, FilterKind kind, bool in_one_list>
__global__ void __launch_bounds__(ElementwiseTile::threads, Numbers::blocks)
    filter_whole(const ElementwiseWork work, const int num_stages) {
  extern __shared__ __align__(16) std::uint32_t stages[];
  elementwise::filter_pairs<Numbers, kind, in_one_list>(work, num_stages,
                                                        stages);
}

template <class Numbers, FilterKind kind>
void start(const ElementwiseWork& work, cudaStream_t stream) {
  start_elementwise(work.pairs.count != nullptr
                        ? filter_whole<Numbers, kind, true>
                        : filter_whole<Numbers, kind, false>,
                    Numbers::blocks, work, stream);
}

[[noreturn]] void no_such_differences(FilterKind kind) {
  throw_unknown("filter of differences", static_cast<int>(kind));
}

}  // namespace

void start_byte_differences(FilterKind kind, const ElementwiseWork& work,
                            cudaStream_t stream) {
  switch (kind) {
    case FilterKind::difference:
      return start<Bytes, FilterKind::difference>(work, stream);
    case FilterKind::overlap:
      return start<Bytes, FilterKind::overlap>(work, stream);
    case FilterKind::largest:
    case FilterKind::none:
    case FilterKind::product:
    case FilterKind::table:
    case FilterKind::bits: break;
  }
  no_such_differences(kind);
}

void start_word_differences(FilterKind kind, const ElementwiseWork& work,
                            cudaStream_t stream) {
  switch (kind) {
    case FilterKind::difference:
      return start<Words, FilterKind::difference>(work, stream);
    case FilterKind::overlap:
      return start<Words, FilterKind::overlap>(work, stream);
    case FilterKind::largest:
      return start<LargestWords, FilterKind::largest>(work, stream);
    case FilterKind::none:
    case FilterKind::product:
    case FilterKind::table:
    case FilterKind::bits: break;
  }
  no_such_differences(kind);
}

}  // namespace cuda
}  // namespace fsknn
