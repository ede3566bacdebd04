// Tests which values are small whole numbers, and that two codes share as many
// bits as the smaller value.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/small_numbers.hpp"

using fsknn::largest_whole;

TEST_CASE("the largest of small whole numbers, or that there are others") {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> x(100000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(i * i % 7);
  x[5] = -0.0;
  const auto look = [&](std::int32_t most, int threads) {
    return largest_whole(x.data(), static_cast<std::int64_t>(x.size()), most,
                         threads);
  };
  for (const int threads : {1, 3}) {
    CHECK(look(4, threads) == 4);
    CHECK(look(32, threads) == 4);
    CHECK(look(3, threads) == -1);
    // The other value may be anywhere.
    for (const std::size_t at : {std::size_t{0}, std::size_t{16383},
                                 std::size_t{16384}, x.size() - 1}) {
      const double before = x[at];
      for (const double other : {0.5, -1.0, -0x1p-1074, 33.0, 1e300, none,
                                 static_cast<double>(HUGE_VAL)}) {
        x[at] = other;
        CHECK(look(32, threads) == -1);
      }
      x[at] = 32.0;
      CHECK(look(32, threads) == 32);
      x[at] = before;
    }
  }
  CHECK(largest_whole(x.data(), 0, 32, 2) == 0);
}

TEST_CASE("codes have the smaller value in common, and the larger in all") {
  const auto code = [](int a) { return (std::uint64_t{1} << a) - 1; };
  const auto count = [](std::uint64_t bits) {
    int bits_set = 0;
    for (; bits != 0; bits &= bits - 1) ++bits_set;
    return bits_set;
  };
  for (int a = 0; a <= 32; ++a)
    for (int b = 0; b <= 32; ++b) {
      REQUIRE(count(code(a) & code(b)) == std::min(a, b));
      REQUIRE(count(code(a) | code(b)) == std::max(a, b));
      for (int c = 0; c <= 32; ++c) {
        const std::uint64_t x = code(a) | code(b), y = code(a) | code(c);
        REQUIRE(count(x) + count(y) - count(x & y) ==
                std::max(a, std::max(b, c)));
      }
    }
}
