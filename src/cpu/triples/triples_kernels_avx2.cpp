// AVX2, which processors with AVX-512 use as well.
#include "cpu/kernels/kernels_includes.hpp"
#include "cpu/triples/triples_kernels.hpp"

#ifdef FSKNN_X86_KERNELS
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "core/contract/arithmetic.hpp"

namespace fsknn {
namespace cpu {
namespace triples_avx2 {

struct Lanes {
  __m256d lo, hi;
  static inline Lanes load(const double* p) {
    return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
  }
  inline void store(double* p) const {
    _mm256_storeu_pd(p, lo);
    _mm256_storeu_pd(p + 4, hi);
  }
  static inline Lanes all(double x) {
    return {_mm256_set1_pd(x), _mm256_set1_pd(x)};
  }
};
static inline Lanes add(Lanes a, Lanes b) {
  return {_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)};
}
static inline Lanes larger(Lanes a, Lanes b) {
  return {_mm256_max_pd(a.lo, b.lo), _mm256_max_pd(a.hi, b.hi)};
}

constexpr int kPanel = TripleTile::panel;

/// The eight sums stay in registers.
static void accumulate(const float* a, const float* b, std::int64_t steps,
                       bool add, float* sums) {
  __m256 s[4][2];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) s[r][0] = s[r][1] = _mm256_setzero_ps();
  for (std::int64_t f = 0; f < steps; ++f) {
    const __m256 lo = _mm256_loadu_ps(b + f * kPanel);
    const __m256 hi = _mm256_loadu_ps(b + f * kPanel + 8);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + f * kPanel + r);
      s[r][0] = _mm256_add_ps(s[r][0], _mm256_max_ps(x, lo));
      s[r][1] = _mm256_add_ps(s[r][1], _mm256_max_ps(x, hi));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      float* const to = sums + r * kPanel + 8 * h;
      if (add) s[r][h] = _mm256_add_ps(s[r][h], _mm256_loadu_ps(to));
      _mm256_storeu_ps(to, s[r][h]);
    }
}

static void test(const float* sums, const float* rows, const float* columns,
                 float share, std::uint32_t* keep) {
  const __m256 by = _mm256_set1_ps(share);
  for (int r = 0; r < TripleTile::rows; ++r) {
    keep[r] = 0;
    for (int h = 0; h < 2; ++h) {
      const __m256 most =
          _mm256_mul_ps(by, _mm256_add_ps(_mm256_set1_ps(rows[r]),
                                          _mm256_loadu_ps(columns + 8 * h)));
      const __m256 pass = _mm256_cmp_ps(
          _mm256_loadu_ps(sums + r * kPanel + 8 * h), most, _CMP_LE_OQ);
      keep[r] |= static_cast<std::uint32_t>(_mm256_movemask_ps(pass))
                 << (8 * h);
    }
  }
}

static void larger_panel(const float* row, const float* panel,
                         std::int64_t steps, float* out) {
  for (std::int64_t f = 0; f < steps; ++f) {
    const __m256 x = _mm256_broadcast_ss(row + f * kPanel);
    for (int h = 0; h < 2; ++h)
      _mm256_storeu_ps(
          out + f * kPanel + 8 * h,
          _mm256_max_ps(x, _mm256_loadu_ps(panel + f * kPanel + 8 * h)));
  }
}

}  // namespace triples_avx2

const TripleKernels kAvx2TripleKernels = {
    &triples_avx2::accumulate, &triples_avx2::test, &triples_avx2::larger_panel,
    &sum_of_largest<triples_avx2::Lanes>, nullptr};

}  // namespace cpu
}  // namespace fsknn
#pragma GCC pop_options
#endif
