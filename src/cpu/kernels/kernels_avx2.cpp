// AVX2 and FMA.
#include "cpu/kernels/kernels_includes.hpp"

#ifdef FSKNN_X86_KERNELS
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"

namespace fsknn {
namespace cpu {
namespace avx2 {

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
static inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)};
}
static inline Lanes add(Lanes a, Lanes b) {
  return {_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)};
}
static inline Lanes sub(Lanes a, Lanes b) {
  return {_mm256_sub_pd(a.lo, b.lo), _mm256_sub_pd(a.hi, b.hi)};
}
static inline Lanes mul(Lanes a, Lanes b) {
  return {_mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi)};
}
static inline Lanes div(Lanes a, Lanes b) {
  return {_mm256_div_pd(a.lo, b.lo), _mm256_div_pd(a.hi, b.hi)};
}
static inline Lanes smaller(Lanes a, Lanes b) {
  return {_mm256_min_pd(a.lo, b.lo), _mm256_min_pd(a.hi, b.hi)};
}
static inline Lanes larger(Lanes a, Lanes b) {
  return {_mm256_max_pd(a.lo, b.lo), _mm256_max_pd(a.hi, b.hi)};
}
static inline Lanes magnitude(Lanes a) {
  const __m256d sign = _mm256_set1_pd(-0.0);
  return {_mm256_andnot_pd(sign, a.lo), _mm256_andnot_pd(sign, a.hi)};
}

struct I32 {
  __m256i lo, hi;
  static inline I32 load(const std::int32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
  }
  static inline I32 all(std::int32_t x) {
    return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
  }
};
static inline I32 operator+(I32 a, I32 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
static inline I32 operator-(I32 a, I32 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
static inline I32 smallest(I32 a, I32 b) {
  return {_mm256_min_epi32(a.lo, b.lo), _mm256_min_epi32(a.hi, b.hi)};
}
static inline I32 largest(I32 a, I32 b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
static inline I32 negate(I32 a) { return I32::all(0) - a; }
static inline std::uint32_t bits_of(__m256 lo, __m256 hi) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(lo)) |
         static_cast<std::uint32_t>(_mm256_movemask_ps(hi)) << 8;
}
static inline std::uint32_t at_most(I32 a, I32 b) {
  const std::uint32_t above =
      bits_of(_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.lo, b.lo)),
              _mm256_castsi256_ps(_mm256_cmpgt_epi32(a.hi, b.hi)));
  return ~above & 0xffffu;
}

struct F32 {
  __m256 lo, hi;
  static inline F32 load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  static inline F32 load(const std::int32_t* p) {
    const I32 bits = I32::load(p);
    return {_mm256_castsi256_ps(bits.lo), _mm256_castsi256_ps(bits.hi)};
  }
  static inline F32 all(float x) {
    return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
  }
  inline void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
};
static inline F32 operator+(F32 a, F32 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
static inline F32 operator-(F32 a, F32 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
static inline F32 operator*(F32 a, F32 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
static inline F32 operator/(F32 a, F32 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
static inline F32 multiply_add(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
static inline F32 smallest(F32 a, F32 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
static inline F32 largest(F32 a, F32 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
static inline F32 to_float(I32 a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
static inline std::uint32_t at_most(F32 a, F32 b) {
  return bits_of(_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ),
                 _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ));
}

/// Counts bits with a table of half bytes.
static inline __m256i bits_of_half_bytes(__m256i x) {
  const __m256i counts =
      _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                       0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  return _mm256_shuffle_epi8(counts, _mm256_and_si256(x, _mm256_set1_epi8(15)));
}
static inline __m256i add_bits(__m256i sum, __m256i x) {
  const __m256i bytes = _mm256_add_epi8(
      bits_of_half_bytes(x), bits_of_half_bytes(_mm256_srli_epi16(x, 4)));
  const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/// AVX2 has no instruction that multiplies bytes and sums without saturation.
/// So even and odd bytes are multiplied as 16 bits.
static inline __m256i even_bytes(__m256i x) {
  return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
}
static inline __m256i odd_bytes(__m256i x) { return _mm256_srai_epi16(x, 8); }
static inline __m256i madd_bytes(__m256i sum, __m256i a, __m256i b) {
  const __m256i even = _mm256_madd_epi16(even_bytes(a), even_bytes(b));
  const __m256i odd = _mm256_madd_epi16(odd_bytes(a), odd_bytes(b));
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}

template <Product kProduct>
static inline __m256i product_step(__m256i sum, __m256i a, __m256i b) {
  if (kProduct == Product::dot)
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  if (kProduct == Product::byte_dot) return madd_bytes(sum, a, b);
  if (kProduct == Product::smaller_sum)
    return _mm256_add_epi32(
        sum, _mm256_madd_epi16(_mm256_min_epi16(a, b), _mm256_set1_epi16(1)));
  if (kProduct == Product::largest_difference)
    return _mm256_max_epi16(sum, _mm256_abs_epi16(_mm256_sub_epi16(a, b)));
  if (kProduct == Product::common_bits)
    return add_bits(sum, _mm256_and_si256(a, b));
  const __m256 s = _mm256_castsi256_ps(sum);
  const __m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b);
  if (kProduct == Product::float_smaller_sum)
    return _mm256_castps_si256(_mm256_add_ps(s, _mm256_min_ps(x, y)));
  return _mm256_castps_si256(_mm256_max_ps(
      s, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(x, y))));
}

template <Product kProduct>
static inline __m256i product_end(__m256i sum) {
  if (kProduct != Product::largest_difference) return sum;
  return _mm256_max_epi32(_mm256_srli_epi32(sum, 16),
                          _mm256_and_si256(sum, _mm256_set1_epi32(0xffff)));
}

/// Compares four rows with one panel; the eight sums stay in registers.
template <Product kProduct>
static inline void accumulate_quarter(const std::int32_t* a,
                                      const std::int32_t* b, std::int64_t steps,
                                      std::int32_t* sums) {
  __m256i s[4][2];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) s[r][0] = s[r][1] = _mm256_setzero_si256();
  for (std::int64_t f = first_steps(kProduct); f < steps; ++f) {
    const I32 column = I32::load(b + f * Tile::panel);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m256i row = _mm256_set1_epi32(a[f * Tile::panel + r]);
      s[r][0] = product_step<kProduct>(s[r][0], row, column.lo);
      s[r][1] = product_step<kProduct>(s[r][1], row, column.hi);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(sums + r * Tile::columns + 8 * h),
          product_end<kProduct>(s[r][h]));
}

template <Product kProduct>
static void accumulate_tile(const std::int32_t* a, const std::int32_t* b,
                            int num_panels, std::int64_t steps,
                            std::int32_t* sums) {
  for (int p = 0; p < num_panels; ++p)
    for (int r = 0; r < Tile::rows; r += 4)
      accumulate_quarter<kProduct>(a + r, b + p * steps * Tile::panel, steps,
                                   sums + r * Tile::columns + p * Tile::panel);
}

/// Two products are summed in 16 bits, and many of these before they can
/// overflow.
static inline void count_quarter(const std::int32_t* a, const std::int32_t* b,
                                 std::int64_t steps, std::int32_t* sums) {
  constexpr std::int64_t kMost = 32767 / (2 * kMostCount * kMostCount);
  __m256i total[4][2];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
    total[r][0] = total[r][1] = _mm256_setzero_si256();
  for (std::int64_t first = 0; first < steps; first += kMost) {
    const std::int64_t end = first + kMost < steps ? first + kMost : steps;
    __m256i s[4][2];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) s[r][0] = s[r][1] = _mm256_setzero_si256();
    for (std::int64_t f = first; f < end; ++f) {
      const I32 column = I32::load(b + f * Tile::panel);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const __m256i row = _mm256_set1_epi32(a[f * Tile::panel + r]);
        s[r][0] =
            _mm256_add_epi16(s[r][0], _mm256_maddubs_epi16(row, column.lo));
        s[r][1] =
            _mm256_add_epi16(s[r][1], _mm256_maddubs_epi16(row, column.hi));
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h)
        total[r][h] = _mm256_add_epi32(
            total[r][h], _mm256_madd_epi16(s[r][h], _mm256_set1_epi16(1)));
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(sums + r * Tile::columns + 8 * h),
          total[r][h]);
}

template <>
void accumulate_tile<Product::count_dot>(const std::int32_t* a,
                                         const std::int32_t* b, int num_panels,
                                         std::int64_t steps,
                                         std::int32_t* sums) {
  for (int p = 0; p < num_panels; ++p)
    for (int r = 0; r < Tile::rows; r += 4)
      count_quarter(a + r, b + p * steps * Tile::panel, steps,
                    sums + r * Tile::columns + p * Tile::panel);
}

static inline __m256i broadcast_64(const std::int32_t* p) {
  long long x;
  std::memcpy(&x, p, sizeof x);
  return _mm256_set1_epi64x(x);
}

/// Compares four rows with the eight points of half a panel, eight bytes of
/// each in 64 bits.
static inline void subtract_quarter(const std::int32_t* a,
                                    const std::int32_t* b, std::int64_t steps,
                                    std::int32_t* sums) {
  __m256i s[4][2];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) s[r][0] = s[r][1] = _mm256_setzero_si256();
  for (std::int64_t f = 0; f < steps; f += 2) {
    const std::int32_t* column = b + f * Tile::panel;
    const __m256i first =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(column));
    const __m256i others = _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(column + Tile::panel));
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m256i row = broadcast_64(a + f * Tile::panel + 2 * r);
      s[r][0] = _mm256_add_epi64(s[r][0], _mm256_sad_epu8(row, first));
      s[r][1] = _mm256_add_epi64(s[r][1], _mm256_sad_epu8(row, others));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    // Takes the low halves: of points 0, 1, 4, 5, then 2, 3, 6, 7.
    const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(
        _mm256_castsi256_ps(s[r][0]), _mm256_castsi256_ps(s[r][1]), 0x88));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + r * Tile::columns),
                        _mm256_permute4x64_epi64(low, 0xd8));
  }
}

template <>
void accumulate_tile<Product::byte_difference>(const std::int32_t* a,
                                               const std::int32_t* b,
                                               int num_panels,
                                               std::int64_t steps,
                                               std::int32_t* sums) {
  for (int p = 0; p < num_panels; ++p)
    for (int half = 0; half < 2; ++half)
      for (int r = 0; r < Tile::rows; r += 4)
        subtract_quarter(a + step_at(Product::byte_difference, 0, r),
                         b + p * steps * Tile::panel + half * 8, steps,
                         sums + r * Tile::columns + p * Tile::panel + half * 8);
}

struct WordSum {
  __m256i sum;
  static inline WordSum none() { return {_mm256_setzero_si256()}; }
  inline void add_half(const std::int16_t* a, const std::int16_t* b) {
    const __m256i d = _mm256_abs_epi16(_mm256_sub_epi16(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b))));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(d, _mm256_set1_epi16(1)));
  }
  inline void add(const std::int16_t* a, const std::int16_t* b) {
    add_half(a, b);
    add_half(a + 16, b + 16);
  }
  inline std::int32_t total() const {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum),
                              _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
  }
};

#include "cpu/kernels/kernels_body.hpp"

}  // namespace avx2

const Kernels kAvx2Kernels = {"avx2",
                              &prepare_row<avx2::Lanes>,
                              &avx2::exact,
                              &avx2::differences,
                              &avx2::accumulate_products,
                              &avx2::test_sums,
                              &avx2::lower_best,
                              &avx2::near_boxes,
                              &avx2::masked_pairs,
                              &avx2::masked_test,
                              &avx2::masked_distance_test,
                              &avx2::masked_sums,
                              &avx2::triple_tables};

}  // namespace cpu
}  // namespace fsknn
#pragma GCC pop_options
#endif
