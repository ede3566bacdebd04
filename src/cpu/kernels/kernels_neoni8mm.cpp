// NEON with the dot product extension and products of matrices of bytes
// (smmla).
#include "cpu/kernels/kernels_includes.hpp"

#ifdef FSKNN_NEONI8MM_KERNELS
#include <arm_neon.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("dotprod,i8mm"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")
#endif
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace cpu {
namespace neoni8mm {

#include "cpu/kernels/kernels_neon_dot.hpp"

/// Eight bytes of each of two points.
struct PointPairs {
  int8x16_t v[4];
  /// Loads eight points from the steps at p and at q, of four bytes each.
  static inline PointPairs load(const std::int32_t* p, const std::int32_t* q) {
    const int32x4_t p0 = vld1q_s32(p), p1 = vld1q_s32(p + 4);
    const int32x4_t q0 = vld1q_s32(q), q1 = vld1q_s32(q + 4);
    return {{vreinterpretq_s8_s32(vzip1q_s32(p0, q0)),
             vreinterpretq_s8_s32(vzip2q_s32(p0, q0)),
             vreinterpretq_s8_s32(vzip1q_s32(p1, q1)),
             vreinterpretq_s8_s32(vzip2q_s32(p1, q1))}};
  }
};

/// Computes four sums for each register of two rows and one of two columns.
static inline void multiply_pairs(int32x4_t (*s)[4], const PointPairs& rows,
                                  const PointPairs& columns) {
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c)
      s[r][c] = vmmlaq_s32(s[r][c], rows.v[r], columns.v[c]);
}

static inline void multiply_bytes(const std::int32_t* a, const std::int32_t* b,
                                  std::int64_t steps, std::int32_t* sums) {
  int32x4_t s[4][4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) s[r][c] = vdupq_n_s32(0);
  std::int64_t f = first_steps(Product::byte_dot);
  for (; f + 2 <= steps; f += 2) {
    const std::int64_t at = f * Tile::panel, next = at + Tile::panel;
    multiply_pairs(s, PointPairs::load(a + at, a + next),
                   PointPairs::load(b + at, b + next));
  }
  if (f < steps) {
    alignas(16) static const std::int32_t none[Tile::rows] = {};
    multiply_pairs(s, PointPairs::load(a + f * Tile::panel, none),
                   PointPairs::load(b + f * Tile::panel, none));
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < 4; c += 2) {
      const int64x2_t lo = vreinterpretq_s64_s32(s[r][c]);
      const int64x2_t hi = vreinterpretq_s64_s32(s[r][c + 1]);
      std::int32_t* const to = sums + 2 * r * Tile::columns + 2 * c;
      vst1q_s32(to, vreinterpretq_s32_s64(vzip1q_s64(lo, hi)));
      vst1q_s32(to + Tile::columns, vreinterpretq_s32_s64(vzip2q_s64(lo, hi)));
    }
}

#include "cpu/kernels/kernels_neon.hpp"

#include "cpu/kernels/kernels_body.hpp"

}  // namespace neoni8mm

const Kernels kNeonI8mmKernels = {"neoni8mm",
                                  &prepare_row<neoni8mm::Lanes>,
                                  &neoni8mm::exact,
                                  &neoni8mm::differences,
                                  &neoni8mm::accumulate_products,
                                  &neoni8mm::test_sums,
                                  &neoni8mm::lower_best,
                                  &neoni8mm::near_boxes,
                                  &neoni8mm::masked_pairs,
                                  &neoni8mm::masked_test,
                                  &neoni8mm::masked_distance_test,
                                  &neoni8mm::masked_sums,
                                  &neoni8mm::triple_tables};

}  // namespace cpu
}  // namespace fsknn
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
