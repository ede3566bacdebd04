// NEON, which processors with its extensions use as well.
#include "cpu/kernels/kernels_includes.hpp"
#include "cpu/triples/triples_kernels.hpp"

#ifdef FSKNN_NEON_KERNELS
#include <arm_neon.h>

#include "core/contract/arithmetic.hpp"

namespace fsknn {
namespace cpu {
namespace triples_neon {

struct Lanes {
  float64x2_t v[4];
  static inline Lanes load(const double* p) {
    return {
        {vld1q_f64(p), vld1q_f64(p + 2), vld1q_f64(p + 4), vld1q_f64(p + 6)}};
  }
  inline void store(double* p) const {
    vst1q_f64(p, v[0]);
    vst1q_f64(p + 2, v[1]);
    vst1q_f64(p + 4, v[2]);
    vst1q_f64(p + 6, v[3]);
  }
  static inline Lanes all(double x) {
    const float64x2_t y = vdupq_n_f64(x);
    return {{y, y, y, y}};
  }
};
static inline Lanes add(const Lanes& a, const Lanes& b) {
  return {{vaddq_f64(a.v[0], b.v[0]), vaddq_f64(a.v[1], b.v[1]),
           vaddq_f64(a.v[2], b.v[2]), vaddq_f64(a.v[3], b.v[3])}};
}
static inline float64x2_t larger_two(float64x2_t a, float64x2_t b) {
  return vbslq_f64(vcgtq_f64(a, b), a, b);  // for 0 and -0 the second
}
static inline Lanes larger(const Lanes& a, const Lanes& b) {
  return {{larger_two(a.v[0], b.v[0]), larger_two(a.v[1], b.v[1]),
           larger_two(a.v[2], b.v[2]), larger_two(a.v[3], b.v[3])}};
}

constexpr int kPanel = TripleTile::panel;

/// Sixteen vectors of four sums stay in registers.
static void accumulate(const float* a, const float* b, std::int64_t steps,
                       bool add, float* sums) {
  float32x4_t s[4][4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) s[r][c] = vdupq_n_f32(0.0f);
  for (std::int64_t f = 0; f < steps; ++f) {
    float32x4_t column[4];
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) column[c] = vld1q_f32(b + f * kPanel + 4 * c);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const float32x4_t x = vdupq_n_f32(a[f * kPanel + r]);
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c)
        s[r][c] = vaddq_f32(s[r][c], vmaxq_f32(x, column[c]));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      float* const to = sums + r * kPanel + 4 * c;
      vst1q_f32(to, add ? vaddq_f32(s[r][c], vld1q_f32(to)) : s[r][c]);
    }
}

static void test(const float* sums, const float* rows, const float* columns,
                 float share, std::uint32_t* keep) {
  alignas(16) static const std::uint32_t own[4] = {1, 2, 4, 8};
  const uint32x4_t bits = vld1q_u32(own);
  for (int r = 0; r < TripleTile::rows; ++r) {
    keep[r] = 0;
    for (int c = 0; c < kPanel; c += 4) {
      const float32x4_t most = vmulq_n_f32(
          vaddq_f32(vdupq_n_f32(rows[r]), vld1q_f32(columns + c)), share);
      const uint32x4_t pass = vcleq_f32(vld1q_f32(sums + r * kPanel + c), most);
      keep[r] |= vaddvq_u32(vandq_u32(pass, bits)) << c;
    }
  }
}

static void larger_panel(const float* row, const float* panel,
                         std::int64_t steps, float* out) {
  for (std::int64_t f = 0; f < steps; ++f) {
    const float32x4_t x = vdupq_n_f32(row[f * kPanel]);
    for (int c = 0; c < kPanel; c += 4)
      vst1q_f32(out + f * kPanel + c,
                vmaxq_f32(x, vld1q_f32(panel + f * kPanel + c)));
  }
}

}  // namespace triples_neon

const TripleKernels kNeonTripleKernels = {
    &triples_neon::accumulate, &triples_neon::test, &triples_neon::larger_panel,
    &sum_of_largest<triples_neon::Lanes>, nullptr};

}  // namespace cpu
}  // namespace fsknn
#endif
