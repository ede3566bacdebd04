// NEON with the dot product extension (sdot, udot).
#include "cpu/kernels/kernels_includes.hpp"

#ifdef FSKNN_NEONDOT_KERNELS
#include <arm_neon.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("dotprod"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace cpu {
namespace neondot {

#include "cpu/kernels/kernels_neon_dot.hpp"

/// A register holds four bytes of each of four rows; kRow selects the row.
template <int kRow>
static inline void multiply_bytes_of(int32x4_t* s, int8x16_t lo, int8x16_t hi,
                                     int8x16_t rows) {
  s[0] = vdotq_laneq_s32(s[0], lo, rows, kRow);
  s[1] = vdotq_laneq_s32(s[1], hi, rows, kRow);
}
static inline void multiply_bytes_of_four(int32x4_t (*s)[2], int8x16_t lo,
                                          int8x16_t hi, int8x16_t rows) {
  multiply_bytes_of<0>(s[0], lo, hi, rows);
  multiply_bytes_of<1>(s[1], lo, hi, rows);
  multiply_bytes_of<2>(s[2], lo, hi, rows);
  multiply_bytes_of<3>(s[3], lo, hi, rows);
}

static inline void multiply_bytes(const std::int32_t* a, const std::int32_t* b,
                                  std::int64_t steps, std::int32_t* sums) {
  int32x4_t s[Tile::rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r) s[r][0] = s[r][1] = vdupq_n_s32(0);
  for (std::int64_t f = first_steps(Product::byte_dot); f < steps; ++f) {
    const std::int64_t at = f * Tile::panel;
    const int8x16_t lo = load_signed(b + at), hi = load_signed(b + at + 4);
    multiply_bytes_of_four(s, lo, hi, load_signed(a + at));
    multiply_bytes_of_four(s + 4, lo, hi, load_signed(a + at + 4));
  }
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r) {
    vst1q_s32(sums + r * Tile::columns, s[r][0]);
    vst1q_s32(sums + r * Tile::columns + 4, s[r][1]);
  }
}

#include "cpu/kernels/kernels_neon.hpp"

#include "cpu/kernels/kernels_body.hpp"

}  // namespace neondot

const Kernels kNeonDotKernels = {"neondot",
                                 &prepare_row<neondot::Lanes>,
                                 &neondot::exact,
                                 &neondot::differences,
                                 &neondot::accumulate_products,
                                 &neondot::test_sums,
                                 &neondot::lower_best,
                                 &neondot::near_boxes,
                                 &neondot::masked_pairs,
                                 &neondot::masked_test,
                                 &neondot::masked_distance_test,
                                 &neondot::masked_sums,
                                 &neondot::triple_tables};

}  // namespace cpu
}  // namespace fsknn
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
