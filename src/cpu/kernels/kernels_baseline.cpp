// Any processor: what the compiler targets by default (SSE2 on x86-64, NEON on
// 64-bit ARM), in plain loops that it can turn into vector code.
#include "core/contract/masked.hpp"
#include "core/contract/prepare.hpp"
#include "cpu/kernels/kernels_includes.hpp"

namespace fsknn {
namespace cpu {
namespace baseline {

using Lanes = ScalarLanes;

struct I32 {
  std::int32_t v[Tile::panel];
  static inline I32 load(const std::int32_t* p) {
    I32 r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  static inline I32 all(std::int32_t x) {
    I32 r;
    for (int c = 0; c < Tile::panel; ++c) r.v[c] = x;
    return r;
  }
};

struct F32 {
  float v[Tile::panel];
  static inline F32 load(const void* p) {
    F32 r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  static inline F32 all(float x) {
    F32 r;
    for (int c = 0; c < Tile::panel; ++c) r.v[c] = x;
    return r;
  }
  inline void store(float* p) const { std::memcpy(p, v, sizeof v); }
};

template <class V, class F>
static inline V each(const V& a, const V& b, F f) {
  V r;
  for (int c = 0; c < Tile::panel; ++c) r.v[c] = f(a.v[c], b.v[c]);
  return r;
}

// Whole numbers wrap around, as in vector instructions.
static inline std::int32_t wrapped(std::uint32_t x) {
  return static_cast<std::int32_t>(x);
}
static inline I32 operator+(const I32& a, const I32& b) {
  return each(a, b,
              [](std::uint32_t x, std::uint32_t y) { return wrapped(x + y); });
}
static inline I32 operator-(const I32& a, const I32& b) {
  return each(a, b,
              [](std::uint32_t x, std::uint32_t y) { return wrapped(x - y); });
}
static inline F32 operator+(const F32& a, const F32& b) {
  return each(a, b, [](float x, float y) { return x + y; });
}
static inline F32 operator-(const F32& a, const F32& b) {
  return each(a, b, [](float x, float y) { return x - y; });
}
static inline F32 operator*(const F32& a, const F32& b) {
  return each(a, b, [](float x, float y) { return x * y; });
}
static inline F32 operator/(const F32& a, const F32& b) {
  return each(a, b, [](float x, float y) { return x / y; });
}
static inline F32 multiply_add(const F32& a, const F32& b, const F32& c) {
  return a * b + c;
}
template <class V>
static inline V smallest(const V& a, const V& b) {
  return each(a, b, [](auto x, auto y) { return x < y ? x : y; });
}
template <class V>
static inline V largest(const V& a, const V& b) {
  return each(a, b, [](auto x, auto y) { return x > y ? x : y; });
}
static inline I32 negate(const I32& a) { return I32::all(0) - a; }
static inline F32 to_float(const I32& a) {
  F32 r;
  for (int c = 0; c < Tile::panel; ++c) r.v[c] = static_cast<float>(a.v[c]);
  return r;
}
template <class V>
static inline std::uint32_t at_most(const V& a, const V& b) {
  std::uint32_t any = 0;
  for (int c = 0; c < Tile::panel; ++c) any |= a.v[c] <= b.v[c];
  if (!any) return 0;
  std::uint32_t mask = 0;
  for (int c = 0; c < Tile::panel; ++c)
    mask |= static_cast<std::uint32_t>(a.v[c] <= b.v[c]) << c;
  return mask;
}

/// Vectorises where the processor has no instruction that counts bits.
static inline std::int32_t count_bits(std::uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return static_cast<std::int32_t>(x * 0x01010101u >> 24);
}

/// Adds one step: 32 features of a bit, two of 16 bits, four of 8, or one
/// float.
template <Product kProduct>
static inline std::int32_t product_step(std::int32_t sum, std::int32_t a,
                                        std::int32_t b) {
  if (kProduct == Product::float_smaller_sum) {
    const float x = as_float(a), y = as_float(b);
    return as_bits(as_float(sum) + (x < y ? x : y));
  }
  if (kProduct == Product::float_largest_difference) {
    const float x = as_float(a), y = as_float(b);
    const float d = std::fabs(x - y), s = as_float(sum);
    return as_bits(s > d ? s : d);
  }
  if (kProduct == Product::common_bits)
    return sum + count_bits(static_cast<std::uint32_t>(a & b));
  if (kProduct == Product::byte_dot || kProduct == Product::count_dot) {
    for (int shift = 0; shift < 32; shift += 8)
      sum += static_cast<std::int8_t>(a >> shift) *
             static_cast<std::int8_t>(b >> shift);
    return sum;
  }
  if (kProduct == Product::byte_difference) {
    for (int shift = 0; shift < 32; shift += 8) {
      const int x = a >> shift & 255, y = b >> shift & 255;
      sum += x > y ? x - y : y - x;
    }
    return sum;
  }
  const int a0 = static_cast<std::int16_t>(a), a1 = a >> 16;
  const int b0 = static_cast<std::int16_t>(b), b1 = b >> 16;
  if (kProduct == Product::dot)
    return wrapped(static_cast<std::uint32_t>(sum) +
                   static_cast<std::uint32_t>(a0 * b0) +
                   static_cast<std::uint32_t>(a1 * b1));
  if (kProduct == Product::smaller_sum)
    return sum + (a0 < b0 ? a0 : b0) + (a1 < b1 ? a1 : b1);
  const int d0 = a0 > b0 ? a0 - b0 : b0 - a0;
  const int d1 = a1 > b1 ? a1 - b1 : b1 - a1;
  const int d = d0 > d1 ? d0 : d1;
  return sum > d ? sum : d;
}

template <Product kProduct>
static void accumulate_tile(const std::int32_t* a, const std::int32_t* b,
                            int num_panels, std::int64_t steps,
                            std::int32_t* sums) {
  for (int r = 0; r < Tile::rows; ++r) {
    for (int p = 0; p < num_panels; ++p) {
      const std::int32_t* panel = b + p * steps * Tile::panel;
      I32 s = I32::all(0);
      for (std::int64_t f = first_steps(kProduct); f < steps; ++f)
        for (int c = 0; c < Tile::panel; ++c)
          s.v[c] = product_step<kProduct>(s.v[c], a[step_at(kProduct, f, r)],
                                          panel[step_at(kProduct, f, c)]);
      std::memcpy(sums + r * Tile::columns + p * Tile::panel, s.v, sizeof s.v);
    }
  }
}

struct WordSum {
  std::int32_t sum;
  static inline WordSum none() { return {0}; }
  inline void add(const std::int16_t* a, const std::int16_t* b) {
    for (std::int64_t f = 0; f < kWordsTogether; ++f)
      sum += a[f] > b[f] ? a[f] - b[f] : b[f] - a[f];
  }
  inline std::int32_t total() const { return sum; }
};

#include "cpu/kernels/kernels_body.hpp"

}  // namespace baseline

const Kernels kBaselineKernels = {"baseline",
                                  &prepare_row<ScalarLanes>,
                                  &baseline::exact,
                                  &baseline::differences,
                                  &baseline::accumulate_products,
                                  &baseline::test_sums,
                                  &baseline::lower_best,
                                  &baseline::near_boxes,
                                  &baseline::masked_pairs,
                                  &baseline::masked_test,
                                  &baseline::masked_distance_test,
                                  &baseline::masked_sums,
                                  &baseline::triple_tables};

}  // namespace cpu
}  // namespace fsknn
