#pragma once

// The self-test of a GPU: rows and numbers that are hard for what the proofs
// assume of its arithmetic (vignette "proofs"), and the results that they must
// give. Plain C++, for host and device. self_test.cu runs it.

#include <bitset>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "core/base/select.hpp"
#include "core/rows/split_mix.hpp"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/byte_bound.hpp"
#include "cuda/filter/half_bound.hpp"

namespace fsknn {
namespace cuda {

/// Names of assumptions: byte_sums, bit_counts, half_sums, float64, float32,
/// order. The vignette lists what each says.
using Failed = std::set<std::string>;

// Sums of products. Rows are repeated to fill a tile.

static constexpr int kTestRows = 16;

/// One side of the products: [kTestRows x depth], row-major.
template <class Number>
struct TestRows {
  explicit TestRows(std::int64_t length)
      : depth(length), numbers(static_cast<std::size_t>(kTestRows * length)) {}
  Number* row(int r) { return numbers.data() + r * depth; }
  const Number* row(int r) const { return numbers.data() + r * depth; }
  std::int64_t depth;
  std::vector<Number> numbers;
};

inline std::uint64_t random_number(int side, int row, std::int64_t f) {
  return mixed_number(static_cast<std::uint64_t>(2 * row + side),
                      static_cast<std::uint64_t>(f));
}

/// Rows of the largest bytes. Their sums reach both ends of the accumulator's
/// range, or half of it and return. The last eight begin with other bytes.
inline TestRows<std::int8_t> test_bytes(int side, std::int64_t depth) {
  TestRows<std::int8_t> to(depth);
  for (int r = 0; r < kTestRows; ++r)
    for (std::int64_t f = 0; f < depth; ++f) {
      const bool negative = r % 4 == 3 || (r % 4 == 2 && f >= depth / 2);
      const bool random = r >= 8 && f < 256;
      to.row(r)[f] = static_cast<std::int8_t>(
          random ? static_cast<int>(random_number(side, r, f) % 255) - 127
                 : (negative ? -kLargestByte : kLargestByte));
    }
  return to;
}

/// Rows of 16 bits a number: all of them, none, or any.
inline TestRows<std::uint16_t> test_bits(int side, std::int64_t depth) {
  TestRows<std::uint16_t> to(depth);
  for (int r = 0; r < kTestRows; ++r)
    for (std::int64_t f = 0; f < depth; ++f)
      to.row(r)[f] = static_cast<std::uint16_t>(
          r < 2 ? 0xffff : (r == 2 ? 0 : random_number(side, r, f)));
  return to;
}

/// The bits of a half.
inline std::uint16_t half_bits(unsigned sign, unsigned exponent,
                               unsigned digits) {
  return static_cast<std::uint16_t>(sign << 15 | exponent << 10 | digits);
}
inline double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, digits = bits & 0x3ff;
  const double magnitude = exponent == 0
                               ? std::ldexp(digits, -24)
                               : std::ldexp(1024 + digits, exponent - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

/// Rows of halves whose sums lose as much as they can. Rows r and columns r
/// belong together, but any pair must be within the bound.
inline TestRows<std::uint16_t> test_halves(int side, std::int64_t depth) {
  TestRows<std::uint16_t> to(depth);
  for (int r = 0; r < kTestRows; ++r)
    for (std::int64_t f = 0; f < depth; ++f) {
      const std::uint64_t random = random_number(side, r, f);
      const unsigned digits = random & 0x3ff, sign = random >> 10 & 1;
      const unsigned any = static_cast<unsigned>(random >> 11 & 0xffff);
      const auto half = [&] {
        switch (r % 8) {
          case 0:  // of one sign, all digits set
            return half_bits(0, 12 + any % 8, 0x3ff);
          case 1:  // one large product, then parts of its last digit
            return half_bits(0, f == 5 ? 30 : 13 + any % 5, 0x3ff);
          case 2:  // the first and the last product cancel
            if (f == 0) return half_bits(0, 30, 0x3ff);
            if (f == depth - 1) return half_bits(side == 0 ? 1 : 0, 30, 0x3ff);
            return half_bits(sign, 9 + any % 4, digits);
          case 3:  // subnormal
            return half_bits(sign, 0, digits);
          case 4:  // subnormal beside large
            return half_bits(sign, f % 7 == 0 ? 30 : 15u * (side != 0), digits);
          case 5:  // growing
            return half_bits(sign, static_cast<unsigned>(1 + f * 29 / depth),
                             digits);
          case 6:  // large by turns
            return half_bits(sign, f % 2 == side ? 27 : 2, digits);
          default: return half_bits(sign, any % 31, digits);
        }
      };
      to.row(r)[f] = half();
    }
  return to;
}

/// A sum of products, and the largest error that the proofs allow.
struct TestSum {
  double sum = 0.0, allowed = 0.0;
};
inline TestSum sum_of_bytes(const std::int8_t* a, const std::int8_t* b,
                            std::int64_t depth) {
  std::int64_t sum = 0;
  for (std::int64_t f = 0; f < depth; ++f) sum += a[f] * b[f];
  return {static_cast<double>(sum), 0.0};
}
inline TestSum sum_of_bits(const std::uint16_t* a, const std::uint16_t* b,
                           std::int64_t depth) {
  std::size_t sum = 0;
  for (std::int64_t f = 0; f < depth; ++f)
    sum += std::bitset<16>(static_cast<std::size_t>(a[f] & b[f])).count();
  return {static_cast<double>(sum), 0.0};
}
/// Within 2^-40 of the magnitudes, which is nothing beside what is allowed.
inline TestSum sum_of_halves(const std::uint16_t* a, const std::uint16_t* b,
                             std::int64_t depth) {
  long double sum = 0.0L;
  double magnitude = 0.0;
  for (std::int64_t f = 0; f < depth; ++f) {
    const double product = half_value(a[f]) * half_value(b[f]);
    sum += product;
    magnitude += std::fabs(product);
  }
  return {static_cast<double>(sum), sums_error(depth) * magnitude};
}

/// Both sides, and the sums of all pairs: [kTestRows x kTestRows].
template <class Number>
struct TestProducts {
  template <class Sum>
  TestProducts(TestRows<Number> (*make)(int, std::int64_t), Sum sum,
               std::int64_t depth)
      : rows(make(0, depth)), columns(make(1, depth)) {
    for (int r = 0; r < kTestRows; ++r)
      for (int c = 0; c < kTestRows; ++c)
        sums.push_back(sum(rows.row(r), columns.row(c), depth));
  }
  /// Whether a device's sums are right. found: [.. x width], of repeated rows
  /// and columns; whole numbers may have been converted to floats.
  template <class Found>
  bool hold(const std::vector<Found>& found, std::int64_t width) const {
    for (std::size_t at = 0; at < found.size(); ++at) {
      const auto i = static_cast<std::int64_t>(at);
      const TestSum& expected = sums[static_cast<std::size_t>(
          i / width % kTestRows * kTestRows + i % width % kTestRows)];
      const double sum =
          expected.allowed > 0.0
              ? expected.sum
              : static_cast<double>(static_cast<Found>(expected.sum));
      if (!(std::fabs(static_cast<double>(found[at]) - sum) <=
            expected.allowed))
        return false;
    }
    return !found.empty();
  }
  TestRows<Number> rows, columns;
  std::vector<TestSum> sums;
};

// Single operations. The same function runs on the host and on a device.

struct Operands {
  double a = 0.0, b = 0.0, c = 0.0;
};

template <class Bits, class Number>
FSKNN_HD inline Bits bits_of_number(Number x) {
  static_assert(sizeof(Bits) == sizeof(Number), "the same bits");
  Bits bits = ~Bits{0};  // a NaN may have any
  if (x == x) std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

/// Bits of results, by assumption.
struct Results {
  std::uint64_t float64[6];
  std::uint32_t float32[9];
  std::uint32_t order;

  /// The compiler must not contract a product and a sum.
  FSKNN_HD static Results of(const Operands& in) {
    const double a = in.a, b = in.b, c = in.c;
    const float x = static_cast<float>(a), y = static_cast<float>(b),
                z = static_cast<float>(c);
    const std::uint32_t random =
        static_cast<std::uint32_t>(bits_of_number<std::uint64_t>(a));
    const float some = as_count(static_cast<int>(random & 0xfffff)),
                more = as_count(static_cast<int>(random >> 11));
    const auto d = [](double result) {
      return bits_of_number<std::uint64_t>(result);
    };
    const auto s = [](float result) {
      return bits_of_number<std::uint32_t>(result);
    };
    const auto compared = [](auto p, auto q) {
      return (p < q ? 1u : 0u) | (p <= q ? 2u : 0u) | (p == q ? 4u : 0u) |
             (p >= q ? 8u : 0u) | (p > q ? 16u : 0u);
    };
    return {{d(a + b), d(a * b), d(a / b), d(sqrt(fabs(a))), d(a * b + c),
             d(fma(a, b, c))},
            {s(x), s(x + y), s(x * y), s(x / y), s(x * y + z), s(fmaf(x, y, z)),
             s(static_cast<float>(static_cast<std::int32_t>(random))),
             reaches_overlap(some, more, fabsf(y)) ? 1u : 0u,
             s(negative_difference(some, more))},
            compared(a, b) | compared(x, y) << 5 | compared(a, c) << 10 |
                compared(some, more) << 15 |
                (nearer(a, 1, b, 2) ? 1u << 20 : 0u) |
                (nearer(a, 2, b, 1) ? 1u << 21 : 0u)};
  }
};

/// Numbers of like magnitude, subnormal ones as doubles or as floats, any bits
/// and special numbers; some are equal, or a product and a sum cancel.
inline std::vector<Operands> test_operands() {
  constexpr int count = 1 << 14, kinds = 5;
  const double special[] = {
      0.0,  -0.0,        0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1p-149,    1.0,
      -1.0, 1 + 0x1p-52, 0x1p1023,  HUGE_VAL,   -HUGE_VAL, std::nan("")};
  const auto number = [&](int i, int which) {
    const std::uint64_t z = random_number(which, i, which);
    const std::uint64_t more = z >> 52 & 0x7ff;
    const std::uint64_t first[kinds] = {1021, 1023 - 540, 1023 - 151, 0, 0};
    const std::uint64_t span[kinds] = {5, 40, 30, 2048, 1};
    if (i % kinds == 4) return special[z % (sizeof special / sizeof *special)];
    const std::uint64_t bits =
        (z & 0x800fffffffffffffu) | (first[i % kinds] + more % span[i % kinds])
                                        << 52;
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  };
  std::vector<Operands> all;
  for (int i = 0; i < count; ++i) {
    Operands in = {number(i, 0), number(i, 1), number(i, 2)};
    if (i / kinds % 4 == 1) in.b = in.a;
    if (i / kinds % 4 == 2) in.c = -(in.a * in.b);
    if (i / kinds % 4 == 3)
      in.b = std::nextafter(static_cast<float>(in.a), HUGE_VALF);
    all.push_back(in);
  }
  return all;
}

/// Adds the assumptions that a device's results of these operands contradict.
inline void compare_results(const std::vector<Operands>& operands,
                            const std::vector<Results>& found, Failed& failed) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Results expected = Results::of(operands[i]);
    if (std::memcmp(expected.float64, found[i].float64,
                    sizeof expected.float64) != 0)
      failed.insert("float64");
    if (std::memcmp(expected.float32, found[i].float32,
                    sizeof expected.float32) != 0)
      failed.insert("float32");
    if (expected.order != found[i].order) failed.insert("order");
  }
}

}  // namespace cuda
}  // namespace fsknn
