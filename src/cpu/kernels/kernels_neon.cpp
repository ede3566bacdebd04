// NEON, which every 64-bit ARM processor has.
#include "cpu/kernels/kernels_includes.hpp"

#ifdef FSKNN_NEON_KERNELS
#include <arm_neon.h>

#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace cpu {
namespace neon {

/// Adds pairs of differences, each at most 255, in 16 bits.
struct ByteDifferences {
  static constexpr std::int64_t most = 65535 / (2 * 255);
  uint16x8_t sum = vdupq_n_u16(0);
  inline void add(uint8x16_t a, uint8x16_t b) {
    sum = vpadalq_u8(sum, vabdq_u8(a, b));
  }
  inline uint32x4_t added_to(uint32x4_t total) const {
    return vpadalq_u16(total, sum);
  }
};

/// Compares four rows with four points. It never adds two products of bytes in
/// 16 bits, which twice (-128)^2 would overflow. It takes as many instructions
/// as products of 16 bits.
static inline void multiply_quarter(const std::int32_t* a,
                                    const std::int32_t* b, std::int64_t steps,
                                    std::int32_t* sums) {
  int32x4_t s[4][2];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) s[r][0] = s[r][1] = vdupq_n_s32(0);
  for (std::int64_t f = first_steps(Product::byte_dot); f < steps; ++f) {
    const int8x16_t column =
        vreinterpretq_s8_s32(vld1q_s32(b + f * Tile::panel));
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const int8x16_t row =
          vreinterpretq_s8_s32(vdupq_n_s32(a[f * Tile::panel + r]));
      s[r][0] =
          vpadalq_s16(s[r][0], vmull_s8(vget_low_s8(row), vget_low_s8(column)));
      s[r][1] = vpadalq_s16(s[r][1], vmull_high_s8(row, column));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
    vst1q_s32(sums + r * Tile::columns, vpaddq_s32(s[r][0], s[r][1]));
}

static inline void multiply_bytes(const std::int32_t* a, const std::int32_t* b,
                                  std::int64_t steps, std::int32_t* sums) {
  for (int c = 0; c < Tile::panel / 2; c += 4)
    for (int r = 0; r < Tile::rows; r += 4)
      multiply_quarter(a + r, b + c, steps, sums + r * Tile::columns + c);
}

#include "cpu/kernels/kernels_neon.hpp"

#include "cpu/kernels/kernels_body.hpp"

}  // namespace neon

const Kernels kNeonKernels = {"neon",
                              &prepare_row<neon::Lanes>,
                              &neon::exact,
                              &neon::differences,
                              &neon::accumulate_products,
                              &neon::test_sums,
                              &neon::lower_best,
                              &neon::near_boxes,
                              &neon::masked_pairs,
                              &neon::masked_test,
                              &neon::masked_distance_test,
                              &neon::masked_sums,
                              &neon::triple_tables};

}  // namespace cpu
}  // namespace fsknn
#endif
