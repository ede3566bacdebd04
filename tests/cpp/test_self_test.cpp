// The judgement of the GPU's self-test, on the host: right results pass, and
// every kind of wrong one fails.

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "cuda/filter/self_test.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

namespace {

/// Sums as a device would give them, of more rows and columns than there are.
template <class Found, class Number>
std::vector<Found> right_sums(const TestProducts<Number>& test, int rows,
                              int columns) {
  std::vector<Found> sums;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      sums.push_back(static_cast<Found>(
          test.sums[static_cast<std::size_t>(r % kTestRows * kTestRows +
                                             c % kTestRows)]
              .sum));
  return sums;
}

/// Whether each of some sums fails when it alone is changed.
template <class Found, class Number, class Change>
bool notices(const TestProducts<Number>& test, Change change) {
  const std::vector<Found> right = right_sums<Found>(test, 32, 24);
  REQUIRE(test.hold(right, 24));
  for (std::size_t at = 0; at < right.size(); at += 37) {
    std::vector<Found> wrong = right;
    wrong[at] = change(wrong[at]);
    if (test.hold(wrong, 24)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("sums of bytes reach the accumulator's limit, and must be exact") {
  constexpr std::int64_t longest = kMostBytes / 32 * 32;
  const TestProducts<std::int8_t> test(test_bytes, sum_of_bytes, longest);
  CHECK(test.sums[0].sum == 127.0 * 127.0 * longest);
  CHECK(test.sums[0].sum + 127.0 * 127.0 * 32 > INT32_MAX);
  CHECK(test.sums[3].sum == -test.sums[0].sum);
  CHECK(notices<std::int32_t>(test, [](std::int32_t x) { return x - 1; }));
  CHECK(notices<float>(test, [](float x) { return nextafterf(x, 3e9f); }));
}

TEST_CASE("counts of bits reach the most that rows have, and must be exact") {
  const TestProducts<std::uint16_t> test(test_bits, sum_of_bits,
                                         kMostCommon / 16);
  CHECK(test.sums[0].sum == kMostCommon);
  CHECK(notices<std::int32_t>(test, [](std::int32_t x) { return x + 1; }));
  CHECK(notices<float>(test, [](float x) { return x - 1.0f; }));
}

TEST_CASE("sums of halves must be within the bound") {
  const TestProducts<std::uint16_t> test(test_halves, sum_of_halves, 2048);
  std::vector<float> sums = right_sums<float>(test, 16, 16);
  CHECK(test.hold(sums, 16));
  for (std::size_t at = 0; at < sums.size(); ++at) {
    const TestSum& of = test.sums[at];
    for (const double part : {-1.01, -0.99, 0.99, 1.01}) {
      sums[at] = static_cast<float>(of.sum + part * of.allowed);
      CHECK(test.hold(sums, 16) == (std::fabs(part) < 1.0));
    }
    sums[at] = std::nanf("");
    CHECK(!test.hold(sums, 16));
    sums[at] = static_cast<float>(of.sum);
  }
  CHECK(!test.hold(std::vector<float>(), 16));
}

TEST_CASE("halves find an accumulator that cuts off too much") {
  const TestProducts<std::uint16_t> test(test_halves, sum_of_halves, 2048);
  const auto holds = [&](int digits) {
    std::vector<double> sums;
    for (int r = 0; r < kTestRows; ++r)
      for (int c = 0; c < kTestRows; ++c) {
        double sum = 0.0;
        for (int f = 0; f < 2048; ++f) {
          sum += half_value(test.rows.row(r)[f]) *
                 half_value(test.columns.row(c)[f]);
          int exponent = 0;
          const double part = std::frexp(sum, &exponent);
          sum = std::ldexp(std::trunc(std::ldexp(part, digits)),
                           exponent - digits);
        }
        sums.push_back(sum);
      }
    return test.hold(sums, kTestRows);
  };
  CHECK(holds(24));
  CHECK(!holds(21));
}

TEST_CASE("halves are read as IEEE 754 says") {
  CHECK(half_value(0x3c00) == 1.0);
  CHECK(half_value(0xc000) == -2.0);
  CHECK(half_value(0x7bff) == 65504.0);
  CHECK(half_value(0x0001) == 0x1p-24);
  CHECK(half_value(0x0400) == 0x1p-14);
}

TEST_CASE("a wrong operation is named") {
  const std::vector<Operands> operands = test_operands();
  std::vector<Results> right;
  for (const Operands& in : operands) right.push_back(Results::of(in));
  const auto failed_of = [&](auto change) {
    std::vector<Results> found = right;
    for (std::size_t i = 0; i < found.size(); ++i)
      change(operands[i], found[i]);
    Failed failed;
    compare_results(operands, found, failed);
    return failed;
  };
  CHECK(failed_of([](const Operands&, Results&) {}).empty());
  // A compiler that contracts a product and a sum.
  CHECK(failed_of([](const Operands&, Results& of) {
          of.float64[4] = of.float64[5];
        }) == Failed{"float64"});
  CHECK(failed_of([](const Operands&, Results& of) {
          of.float32[4] = of.float32[5];
        }) == Failed{"float32"});
  // Subnormal floats that are taken for zero.
  CHECK(failed_of([](const Operands&, Results& of) {
          if ((of.float32[0] & 0x7f800000) == 0) of.float32[0] &= 0x80000000;
        }) == Failed{"float32"});
  // Truncation in place of rounding to nearest.
  CHECK(failed_of([](const Operands& in, Results& of) {
          const double sum = in.a + in.b;
          if (std::fabs((sum - in.a) - in.b) > 0.0 && sum > 0.0)
            of.float64[0] =
                bits_of_number<std::uint64_t>(std::nextafter(sum, 0.0));
        }) == Failed{"float64"});
  // Equal numbers that are not.
  CHECK(failed_of([](const Operands& in, Results& of) {
          if (in.a == in.b) of.order &= ~4u;
        }) == Failed{"order"});
  // -0 before 0.
  CHECK(failed_of([](const Operands& in, Results& of) {
          if (in.a == 0.0 && in.b == 0.0 && std::signbit(in.a)) of.order |= 1u;
        }) == Failed{"order"});
}
