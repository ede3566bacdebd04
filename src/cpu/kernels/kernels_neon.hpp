// There is no include guard on purpose: each NEON kernel file includes this
// once, in its own namespace, with the instruction set enabled. The file
// provides
//   ByteDifferences: sums of differences of bytes, four or two for each of two
//     points: add(a, b), at most `most` times; added_to(total): in 32 bits;
//   multiply_bytes(a, b, steps, sums): products of bytes of 8 rows and of the 8
//     points of half a panel.

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

template <class F>
static inline Lanes each(const Lanes& a, const Lanes& b, F f) {
  return {{f(a.v[0], b.v[0]), f(a.v[1], b.v[1]), f(a.v[2], b.v[2]),
           f(a.v[3], b.v[3])}};
}
static inline Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return {{vfmaq_f64(c.v[0], a.v[0], b.v[0]), vfmaq_f64(c.v[1], a.v[1], b.v[1]),
           vfmaq_f64(c.v[2], a.v[2], b.v[2]),
           vfmaq_f64(c.v[3], a.v[3], b.v[3])}};
}
static inline Lanes add(const Lanes& a, const Lanes& b) {
  return each(a, b,
              [](float64x2_t x, float64x2_t y) { return vaddq_f64(x, y); });
}
static inline Lanes sub(const Lanes& a, const Lanes& b) {
  return each(a, b,
              [](float64x2_t x, float64x2_t y) { return vsubq_f64(x, y); });
}
static inline Lanes mul(const Lanes& a, const Lanes& b) {
  return each(a, b,
              [](float64x2_t x, float64x2_t y) { return vmulq_f64(x, y); });
}
static inline Lanes div(const Lanes& a, const Lanes& b) {
  return each(a, b,
              [](float64x2_t x, float64x2_t y) { return vdivq_f64(x, y); });
}
// These compare and select, because the processor's own minimum treats 0, -0
// and NaN differently from the contract.
static inline Lanes smaller(const Lanes& a, const Lanes& b) {
  return each(a, b, [](float64x2_t x, float64x2_t y) {
    return vbslq_f64(vcltq_f64(x, y), x, y);
  });
}
static inline Lanes larger(const Lanes& a, const Lanes& b) {
  return each(a, b, [](float64x2_t x, float64x2_t y) {
    return vbslq_f64(vcgtq_f64(x, y), x, y);
  });
}
static inline Lanes magnitude(const Lanes& a) {
  return {{vabsq_f64(a.v[0]), vabsq_f64(a.v[1]), vabsq_f64(a.v[2]),
           vabsq_f64(a.v[3])}};
}

struct I32 {
  int32x4_t v[4];
  static inline I32 load(const std::int32_t* p) {
    return {
        {vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)}};
  }
  static inline I32 all(std::int32_t x) {
    const int32x4_t y = vdupq_n_s32(x);
    return {{y, y, y, y}};
  }
};

struct F32 {
  float32x4_t v[4];
  static inline F32 load(const float* p) {
    return {
        {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
  }
  static inline F32 load(const std::int32_t* p) {
    const I32 bits = I32::load(p);
    return {{vreinterpretq_f32_s32(bits.v[0]), vreinterpretq_f32_s32(bits.v[1]),
             vreinterpretq_f32_s32(bits.v[2]),
             vreinterpretq_f32_s32(bits.v[3])}};
  }
  static inline F32 all(float x) {
    const float32x4_t y = vdupq_n_f32(x);
    return {{y, y, y, y}};
  }
  inline void store(float* p) const {
    vst1q_f32(p, v[0]);
    vst1q_f32(p + 4, v[1]);
    vst1q_f32(p + 8, v[2]);
    vst1q_f32(p + 12, v[3]);
  }
};

template <class V, class F>
static inline V each(const V& a, const V& b, F f) {
  return {{f(a.v[0], b.v[0]), f(a.v[1], b.v[1]), f(a.v[2], b.v[2]),
           f(a.v[3], b.v[3])}};
}
static inline I32 operator+(const I32& a, const I32& b) {
  return each(a, b, [](int32x4_t x, int32x4_t y) { return vaddq_s32(x, y); });
}
static inline I32 operator-(const I32& a, const I32& b) {
  return each(a, b, [](int32x4_t x, int32x4_t y) { return vsubq_s32(x, y); });
}
static inline I32 smallest(const I32& a, const I32& b) {
  return each(a, b, [](int32x4_t x, int32x4_t y) { return vminq_s32(x, y); });
}
static inline I32 largest(const I32& a, const I32& b) {
  return each(a, b, [](int32x4_t x, int32x4_t y) { return vmaxq_s32(x, y); });
}
static inline I32 negate(const I32& a) { return I32::all(0) - a; }

static inline F32 operator+(const F32& a, const F32& b) {
  return each(a, b,
              [](float32x4_t x, float32x4_t y) { return vaddq_f32(x, y); });
}
static inline F32 operator-(const F32& a, const F32& b) {
  return each(a, b,
              [](float32x4_t x, float32x4_t y) { return vsubq_f32(x, y); });
}
static inline F32 operator*(const F32& a, const F32& b) {
  return each(a, b,
              [](float32x4_t x, float32x4_t y) { return vmulq_f32(x, y); });
}
static inline F32 operator/(const F32& a, const F32& b) {
  return each(a, b,
              [](float32x4_t x, float32x4_t y) { return vdivq_f32(x, y); });
}
static inline F32 multiply_add(const F32& a, const F32& b, const F32& c) {
  return {{vfmaq_f32(c.v[0], a.v[0], b.v[0]), vfmaq_f32(c.v[1], a.v[1], b.v[1]),
           vfmaq_f32(c.v[2], a.v[2], b.v[2]),
           vfmaq_f32(c.v[3], a.v[3], b.v[3])}};
}
// These compare and select, as for Lanes, so that NaN gives the same result
// everywhere.
static inline F32 smallest(const F32& a, const F32& b) {
  return each(a, b, [](float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcltq_f32(x, y), x, y);
  });
}
static inline F32 largest(const F32& a, const F32& b) {
  return each(a, b, [](float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcgtq_f32(x, y), x, y);
  });
}
static inline F32 to_float(const I32& a) {
  return {{vcvtq_f32_s32(a.v[0]), vcvtq_f32_s32(a.v[1]), vcvtq_f32_s32(a.v[2]),
           vcvtq_f32_s32(a.v[3])}};
}

/// Packs 16 elements, each all ones or all zeros, into 16 bits.
static inline std::uint32_t bits_of(uint32x4_t a, uint32x4_t b, uint32x4_t c,
                                    uint32x4_t d) {
  alignas(16) static const std::uint8_t own[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                   1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t bytes =
      vuzp1q_u8(vreinterpretq_u8_u16(vuzp1q_u16(vreinterpretq_u16_u32(a),
                                                vreinterpretq_u16_u32(b))),
                vreinterpretq_u8_u16(vuzp1q_u16(vreinterpretq_u16_u32(c),
                                                vreinterpretq_u16_u32(d))));
  const uint8x16_t bits = vandq_u8(bytes, vld1q_u8(own));
  return vaddv_u8(vget_low_u8(bits)) |
         static_cast<std::uint32_t>(vaddv_u8(vget_high_u8(bits))) << 8;
}
static inline std::uint32_t at_most(const I32& a, const I32& b) {
  return bits_of(vcleq_s32(a.v[0], b.v[0]), vcleq_s32(a.v[1], b.v[1]),
                 vcleq_s32(a.v[2], b.v[2]), vcleq_s32(a.v[3], b.v[3]));
}
static inline std::uint32_t at_most(const F32& a, const F32& b) {
  return bits_of(vcleq_f32(a.v[0], b.v[0]), vcleq_f32(a.v[1], b.v[1]),
                 vcleq_f32(a.v[2], b.v[2]), vcleq_f32(a.v[3], b.v[3]));
}

// The tiles compare 8 rows with the 8 points of half a panel. The sums, four in
// a register, take 16 of the 32 registers.

constexpr int kHalf = Tile::panel / 2;

static inline int16x8_t as_16(int32x4_t x) { return vreinterpretq_s16_s32(x); }
static inline int32x4_t as_32(int16x8_t x) { return vreinterpretq_s32_s16(x); }

static inline void store_half(const int32x4_t (*s)[2], std::int32_t* sums) {
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r) {
    vst1q_s32(sums + r * Tile::columns, s[r][0]);
    vst1q_s32(sums + r * Tile::columns + 4, s[r][1]);
  }
}

/// Multiplies one of the four rows in a register: its two features with the
/// points' first and second features.
template <int kRow>
static inline void multiply_row(int32x4_t* s, int16x8_t first, int16x8_t second,
                                int16x8_t rows) {
  s[0] = vmlal_laneq_s16(s[0], vget_low_s16(first), rows, 2 * kRow);
  s[1] = vmlal_high_laneq_s16(s[1], first, rows, 2 * kRow);
  s[0] = vmlal_laneq_s16(s[0], vget_low_s16(second), rows, 2 * kRow + 1);
  s[1] = vmlal_high_laneq_s16(s[1], second, rows, 2 * kRow + 1);
}
static inline void multiply_rows(int32x4_t (*s)[2], int16x8_t first,
                                 int16x8_t second, int16x8_t rows) {
  multiply_row<0>(s[0], first, second, rows);
  multiply_row<1>(s[1], first, second, rows);
  multiply_row<2>(s[2], first, second, rows);
  multiply_row<3>(s[3], first, second, rows);
}

static inline void multiply_halves(const std::int32_t* a, const std::int32_t* b,
                                   std::int64_t steps, std::int32_t* sums) {
  int32x4_t s[Tile::rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r) s[r][0] = s[r][1] = vdupq_n_s32(0);
  for (std::int64_t at = 0; at < steps * Tile::panel; at += Tile::panel) {
    const int16x8_t lo = as_16(vld1q_s32(b + at));
    const int16x8_t hi = as_16(vld1q_s32(b + at + 4));
    const int16x8_t first = vuzp1q_s16(lo, hi), second = vuzp2q_s16(lo, hi);
    multiply_rows(s, first, second, as_16(vld1q_s32(a + at)));
    multiply_rows(s + 4, first, second, as_16(vld1q_s32(a + at + 4)));
  }
  store_half(s, sums);
}

/// Bits are counted in bytes, and widened before these can overflow.
static inline void count_common(const std::int32_t* a, const std::int32_t* b,
                                std::int64_t steps, std::int32_t* sums) {
  constexpr std::int64_t kMost = 255 / 8;
  int32x4_t total[Tile::rows][2];
  for (int r = 0; r < Tile::rows; ++r)
    total[r][0] = total[r][1] = vdupq_n_s32(0);
  for (std::int64_t first = 0; first < steps; first += kMost) {
    const std::int64_t end = first + kMost < steps ? first + kMost : steps;
    uint8x16_t s[Tile::rows][2];
#pragma GCC unroll 8
    for (int r = 0; r < Tile::rows; ++r) s[r][0] = s[r][1] = vdupq_n_u8(0);
    for (std::int64_t f = first; f < end; ++f) {
      const std::int64_t at = f * Tile::panel;
      const int32x4_t lo = vld1q_s32(b + at), hi = vld1q_s32(b + at + 4);
#pragma GCC unroll 8
      for (int r = 0; r < Tile::rows; ++r) {
        const int32x4_t row = vdupq_n_s32(a[at + r]);
        s[r][0] = vaddq_u8(s[r][0],
                           vcntq_u8(vreinterpretq_u8_s32(vandq_s32(row, lo))));
        s[r][1] = vaddq_u8(s[r][1],
                           vcntq_u8(vreinterpretq_u8_s32(vandq_s32(row, hi))));
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Tile::rows; ++r)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h)
        total[r][h] = vreinterpretq_s32_u32(vpadalq_u16(
            vreinterpretq_u32_s32(total[r][h]), vpaddlq_u8(s[r][h])));
  }
  store_half(total, sums);
}

template <Product kProduct>
static inline int32x4_t product_step(int32x4_t sum, int32x4_t a, int32x4_t b) {
  if (kProduct == Product::smaller_sum)
    return vpadalq_s16(sum, vminq_s16(as_16(a), as_16(b)));
  if (kProduct == Product::largest_difference)
    return as_32(vmaxq_s16(as_16(sum), vabdq_s16(as_16(a), as_16(b))));
  const float32x4_t s = vreinterpretq_f32_s32(sum);
  const float32x4_t x = vreinterpretq_f32_s32(a), y = vreinterpretq_f32_s32(b);
  if (kProduct == Product::float_smaller_sum)
    return vreinterpretq_s32_f32(vaddq_f32(s, vminq_f32(x, y)));
  return vreinterpretq_s32_f32(vmaxq_f32(s, vabdq_f32(x, y)));
}

template <Product kProduct>
static inline int32x4_t product_end(int32x4_t sum) {
  if (kProduct != Product::largest_difference) return sum;
  // Takes the larger of the two 16-bit halves; both are 0 or more.
  return vmaxq_s32(vshrq_n_s32(sum, 16), vandq_s32(sum, vdupq_n_s32(0xffff)));
}

template <Product kProduct>
static inline void accumulate_half(const std::int32_t* a, const std::int32_t* b,
                                   std::int64_t steps, std::int32_t* sums) {
  if (kProduct == Product::dot) return multiply_halves(a, b, steps, sums);
  if (kProduct == Product::byte_dot) return multiply_bytes(a, b, steps, sums);
  // The same without a first step.
  if (kProduct == Product::count_dot)
    return multiply_bytes(a - Tile::panel, b - Tile::panel, steps + 1, sums);
  if (kProduct == Product::common_bits) return count_common(a, b, steps, sums);
  int32x4_t s[Tile::rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r) s[r][0] = s[r][1] = vdupq_n_s32(0);
  for (std::int64_t at = 0; at < steps * Tile::panel; at += Tile::panel) {
    const int32x4_t lo = vld1q_s32(b + at), hi = vld1q_s32(b + at + 4);
#pragma GCC unroll 8
    for (int r = 0; r < Tile::rows; ++r) {
      const int32x4_t row = vdupq_n_s32(a[at + r]);
      s[r][0] = product_step<kProduct>(s[r][0], row, lo);
      s[r][1] = product_step<kProduct>(s[r][1], row, hi);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Tile::rows; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) s[r][h] = product_end<kProduct>(s[r][h]);
  store_half(s, sums);
}

template <Product kProduct>
static void accumulate_tile(const std::int32_t* a, const std::int32_t* b,
                            int num_panels, std::int64_t steps,
                            std::int32_t* sums) {
  for (int p = 0; p < num_panels; ++p)
    for (int half = 0; half < Tile::panel; half += kHalf)
      accumulate_half<kProduct>(a, b + p * steps * Tile::panel + half, steps,
                                sums + p * Tile::panel + half);
}

static inline uint8x16_t broadcast_64(const std::int32_t* p) {
  std::uint64_t x;
  std::memcpy(&x, p, sizeof x);
  return vreinterpretq_u8_u64(vdupq_n_u64(x));
}
static inline uint8x16_t load_bytes(const std::int32_t* p) {
  return vreinterpretq_u8_s32(vld1q_s32(p));
}

/// Compares four rows with the eight points of half a panel, eight bytes of
/// each in 64 bits: points 0 and 1, 2 and 3, 4 and 5, 6 and 7.
static inline void subtract_quarter(const std::int32_t* a,
                                    const std::int32_t* b, std::int64_t steps,
                                    std::int32_t* sums) {
  uint32x4_t total[4][4];
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; ++c) total[r][c] = vdupq_n_u32(0);
  for (std::int64_t first = 0; first < steps;) {
    const std::int64_t end = steps - first > 2 * ByteDifferences::most
                                 ? first + 2 * ByteDifferences::most
                                 : steps;
    ByteDifferences s[4][4];
    for (; first < end; first += 2) {
      const std::int64_t at = first * Tile::panel;
      const uint8x16_t column[4] = {load_bytes(b + at), load_bytes(b + at + 4),
                                    load_bytes(b + at + Tile::panel),
                                    load_bytes(b + at + Tile::panel + 4)};
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const uint8x16_t row = broadcast_64(a + at + 2 * r);
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) s[r][c].add(row, column[c]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) total[r][c] = s[r][c].added_to(total[r][c]);
  }
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; c += 2)
      vst1q_s32(
          sums + r * Tile::columns + 2 * c,
          vreinterpretq_s32_u32(vpaddq_u32(total[r][c], total[r][c + 1])));
}

template <>
void accumulate_tile<Product::byte_difference>(const std::int32_t* a,
                                               const std::int32_t* b,
                                               int num_panels,
                                               std::int64_t steps,
                                               std::int32_t* sums) {
  for (int p = 0; p < num_panels; ++p)
    for (int half = 0; half < Tile::panel; half += kHalf)
      for (int r = 0; r < Tile::rows; r += 4)
        subtract_quarter(a + step_at(Product::byte_difference, 0, r),
                         b + p * steps * Tile::panel + half, steps,
                         sums + r * Tile::columns + p * Tile::panel + half);
}

struct WordSum {
  uint32x4_t sum;
  static inline WordSum none() { return {vdupq_n_u32(0)}; }
  inline void add(const std::int16_t* a, const std::int16_t* b) {
    for (int f = 0; f < kWordsTogether; f += 8)
      sum = vpadalq_u16(sum, vreinterpretq_u16_s16(vabdq_s16(
                                 vld1q_s16(a + f), vld1q_s16(b + f))));
  }
  inline std::int32_t total() const {
    return static_cast<std::int32_t>(vaddvq_u32(sum));
  }
};
