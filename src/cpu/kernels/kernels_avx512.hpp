// There is no include guard on purpose: each AVX-512 kernel file includes this
// once, in its own namespace, with the instruction set enabled. The file
// provides
//   madd(sum, a, b): sum + two 16-bit products in each 32-bit element;
//   madd_bytes(sum, a, b): sum + four 8-bit products in each 32-bit element;
//   first_of_bytes(a): the initial value of such sums, from a row's
//     byte_offset();
//   add_bits(sum, x): sum + the number of bits in each 32-bit element of x.

struct Lanes {
  __m512d v;
  static inline Lanes load(const double* p) { return {_mm512_loadu_pd(p)}; }
  inline void store(double* p) const { _mm512_storeu_pd(p, v); }
  static inline Lanes all(double x) { return {_mm512_set1_pd(x)}; }
};
static inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm512_fmadd_pd(a.v, b.v, c.v)};
}
static inline Lanes add(Lanes a, Lanes b) { return {_mm512_add_pd(a.v, b.v)}; }
static inline Lanes sub(Lanes a, Lanes b) { return {_mm512_sub_pd(a.v, b.v)}; }
static inline Lanes mul(Lanes a, Lanes b) { return {_mm512_mul_pd(a.v, b.v)}; }
static inline Lanes div(Lanes a, Lanes b) { return {_mm512_div_pd(a.v, b.v)}; }
static inline Lanes smaller(Lanes a, Lanes b) {
  return {_mm512_min_pd(a.v, b.v)};
}
static inline Lanes larger(Lanes a, Lanes b) {
  return {_mm512_max_pd(a.v, b.v)};
}
static inline Lanes magnitude(Lanes a) { return {_mm512_abs_pd(a.v)}; }

struct I32 {
  __m512i v;
  static inline I32 load(const std::int32_t* p) {
    return {_mm512_loadu_si512(p)};
  }
  static inline I32 all(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
};
static inline I32 operator+(I32 a, I32 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
static inline I32 operator-(I32 a, I32 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
static inline I32 smallest(I32 a, I32 b) {
  return {_mm512_min_epi32(a.v, b.v)};
}
static inline I32 largest(I32 a, I32 b) { return {_mm512_max_epi32(a.v, b.v)}; }
static inline I32 negate(I32 a) {
  return {_mm512_sub_epi32(_mm512_setzero_si512(), a.v)};
}
static inline std::uint32_t at_most(I32 a, I32 b) {
  return _mm512_cmple_epi32_mask(a.v, b.v);
}

struct F32 {
  __m512 v;
  static inline F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static inline F32 load(const std::int32_t* p) {
    return {_mm512_castsi512_ps(_mm512_loadu_si512(p))};
  }
  static inline F32 all(float x) { return {_mm512_set1_ps(x)}; }
  inline void store(float* p) const { _mm512_storeu_ps(p, v); }
};
static inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
static inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
static inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
static inline F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
static inline F32 multiply_add(F32 a, F32 b, F32 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
static inline F32 smallest(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
static inline F32 largest(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
static inline F32 to_float(I32 a) { return {_mm512_cvtepi32_ps(a.v)}; }
static inline std::uint32_t at_most(F32 a, F32 b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ);
}

template <Product kProduct>
static inline __m512i product_step(__m512i sum, __m512i a, __m512i b) {
  if (kProduct == Product::dot) return madd(sum, a, b);
  if (kProduct == Product::byte_dot) return madd_bytes(sum, a, b);
  if (kProduct == Product::count_dot) return madd_counts(sum, a, b);
  if (kProduct == Product::smaller_sum)
    return madd(sum, _mm512_min_epi16(a, b), _mm512_set1_epi16(1));
  if (kProduct == Product::largest_difference)
    return _mm512_max_epi16(sum, _mm512_abs_epi16(_mm512_sub_epi16(a, b)));
  if (kProduct == Product::common_bits)
    return add_bits(sum, _mm512_and_si512(a, b));
  const __m512 s = _mm512_castsi512_ps(sum);
  const __m512 x = _mm512_castsi512_ps(a), y = _mm512_castsi512_ps(b);
  if (kProduct == Product::float_smaller_sum)
    return _mm512_castps_si512(_mm512_add_ps(s, _mm512_min_ps(x, y)));
  return _mm512_castps_si512(
      _mm512_max_ps(s, _mm512_abs_ps(_mm512_sub_ps(x, y))));
}

template <Product kProduct>
static inline __m512i product_end(__m512i sum) {
  if (kProduct != Product::largest_difference) return sum;
  // Takes the larger of the two 16-bit halves; both are 0 or more.
  return _mm512_max_epi32(_mm512_srli_epi32(sum, 16),
                          _mm512_and_si512(sum, _mm512_set1_epi32(0xffff)));
}

template <Product kProduct, int kPanels>
static inline void accumulate_panels(const std::int32_t* a,
                                     const std::int32_t* b, std::int64_t steps,
                                     std::int32_t* sums) {
  __m512i s[Tile::rows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r)
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p)
      s[r][p] = kProduct == Product::byte_dot
                    ? first_of_bytes(_mm512_set1_epi32(a[r]))
                    : _mm512_setzero_si512();
  const std::int64_t stride = steps * Tile::panel;
  for (std::int64_t f = first_steps(kProduct); f < steps; ++f) {
    __m512i column[kPanels];
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p)
      column[p] = _mm512_loadu_si512(b + p * stride + f * Tile::panel);
#pragma GCC unroll 8
    for (int r = 0; r < Tile::rows; ++r) {
      const __m512i row = _mm512_set1_epi32(a[f * Tile::panel + r]);
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p)
        s[r][p] = product_step<kProduct>(s[r][p], row, column[p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r)
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p)
      _mm512_storeu_si512(sums + r * Tile::columns + p * Tile::panel,
                          product_end<kProduct>(s[r][p]));
}

template <Product kProduct>
static void accumulate_tile(const std::int32_t* a, const std::int32_t* b,
                            int num_panels, std::int64_t steps,
                            std::int32_t* sums) {
  if (num_panels == 3) return accumulate_panels<kProduct, 3>(a, b, steps, sums);
  if (num_panels == 2) return accumulate_panels<kProduct, 2>(a, b, steps, sums);
  accumulate_panels<kProduct, 1>(a, b, steps, sums);
}

static inline __m512i broadcast_64(const std::int32_t* p) {
  long long x;
  std::memcpy(&x, p, sizeof x);
  return _mm512_set1_epi64(x);
}

/// Sums differences of bytes, eight of each point in 64 bits: four rows against
/// all panels, with 24 sums in registers.
template <int kPanels>
static inline void subtract_panels(const std::int32_t* a, const std::int32_t* b,
                                   std::int64_t steps, std::int32_t* sums) {
  __m512i s[4][kPanels][2];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p)
      s[r][p][0] = s[r][p][1] = _mm512_setzero_si512();
  const std::int64_t stride = steps * Tile::panel;
  for (std::int64_t f = 0; f < steps; f += 2) {
    __m512i first[kPanels], others[kPanels];
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      const std::int32_t* column = b + p * stride + f * Tile::panel;
      first[p] = _mm512_loadu_si512(column);
      others[p] = _mm512_loadu_si512(column + Tile::panel);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m512i row = broadcast_64(a + f * Tile::panel + 2 * r);
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        s[r][p][0] =
            _mm512_add_epi64(s[r][p][0], _mm512_sad_epu8(row, first[p]));
        s[r][p][1] =
            _mm512_add_epi64(s[r][p][1], _mm512_sad_epu8(row, others[p]));
      }
    }
  }
  // Takes the low halves in the order of their points.
  const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 16, 18, 20, 22,  //
                                          8, 10, 12, 14, 24, 26, 28, 30);
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r)
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p)
      _mm512_storeu_si512(
          sums + r * Tile::columns + p * Tile::panel,
          _mm512_permutex2var_epi32(s[r][p][0], order, s[r][p][1]));
}

template <>
void accumulate_tile<Product::byte_difference>(const std::int32_t* a,
                                               const std::int32_t* b,
                                               int num_panels,
                                               std::int64_t steps,
                                               std::int32_t* sums) {
  for (int r = 0; r < Tile::rows; r += 4) {
    const std::int32_t* rows = a + step_at(Product::byte_difference, 0, r);
    std::int32_t* to = sums + r * Tile::columns;
    if (num_panels == 3)
      subtract_panels<3>(rows, b, steps, to);
    else if (num_panels == 2)
      subtract_panels<2>(rows, b, steps, to);
    else
      subtract_panels<1>(rows, b, steps, to);
  }
}

struct WordSum {
  __m512i sum;
  static inline WordSum none() { return {_mm512_setzero_si512()}; }
  inline void add(const std::int16_t* a, const std::int16_t* b) {
    const __m512i d = _mm512_abs_epi16(
        _mm512_sub_epi16(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    sum = madd(sum, d, _mm512_set1_epi16(1));
  }
  inline std::int32_t total() const { return _mm512_reduce_add_epi32(sum); }
};
