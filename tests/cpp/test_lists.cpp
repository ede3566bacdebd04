// The rule by which GPUs cut their lists of candidates.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/exact/ascending.hpp"
#include "cuda/exact/list_rules.hpp"

using namespace fsknn::cuda;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();

}  // namespace

TEST_CASE("a list that overflowed has no place, whatever is added to it") {
  for (const std::int32_t added : {0, 1, 2, 8192, 1 << 30, 2147483647}) {
    CHECK(is_overflowed(kOverflowed + added));
    CHECK(!has_place(kOverflowed + added, 8192));
  }
  CHECK(!is_overflowed(0));
  CHECK(has_place(0, 1));
  CHECK(has_place(255, 256));
  CHECK(!has_place(256, 256));
  CHECK(!has_place(-1, 256));
}

TEST_CASE("keys of floats are in the floats' order, and none is 0") {
  const std::vector<float> ascending = {
      -kInfinity, -kMost, -1.0f, -1e-40f, 0.0f, 1e-40f, 1.0f, kMost, kInfinity};
  std::uint32_t before = 0;
  for (const float x : ascending) {
    CHECK(order_key(x) > before);
    CHECK(key_value(order_key(x)) == x);
    before = order_key(x);
  }
}

TEST_CASE("of a candidate of which nothing is known nothing is known") {
  for (const float s :
       {-kInfinity, -1.0f, 0.0f, 1e38f, kMost, kInfinity, kNone})
    for (const double error : {HUGE_VAL, std::nan("")}) {
      CHECK(least_similarity(s, error, 0.0) == -kInfinity);
      CHECK(least_similarity(s, 0.0, error) == -kInfinity);
      CHECK(least_similarity(s, error, error) == -kInfinity);
    }
  for (const float s : {-kInfinity, kInfinity, kNone})
    CHECK(least_similarity(s, 1.0, 1.0) == -kInfinity);
}

TEST_CASE("what a similarity is at least is rounded down") {
  for (const float s : {-3.5f, -0x1p-30f, 0.0f, 1.0f, 1e10f})
    for (const double a : {0.0, 1e-300, 1e-9, 0.1, 1e20, 1e300})
      for (const double b : {0.0, 3e-12, 7.0}) {
        const float least = least_similarity(s, a, b);
        const long double truth = static_cast<long double>(s) -
                                  static_cast<long double>(a) -
                                  static_cast<long double>(b);
        CHECK(static_cast<long double>(least) <= truth);
        if (a < 1e20)
          CHECK(std::fabs(least - truth) <= 1e-6L * (2 + a + b + std::fabs(s)));
      }
}

TEST_CASE("a number is found among ascending ones from any estimate") {
  for (const int count : {1, 2, 15, 16, 17, 18, 33, 100, 257}) {
    std::vector<std::int32_t> sorted;
    for (int i = 0; i < count; ++i) sorted.push_back(3 * i + i * i % 3);
    for (int estimate = 0; estimate < count; ++estimate) {
      for (int i = 0; i < count; ++i)
        CHECK(position_of(sorted.data(), count, sorted[i], estimate) == i);
      for (std::int32_t none = -2; none < sorted.back() + 3; ++none) {
        const bool there =
            std::find(sorted.begin(), sorted.end(), none) != sorted.end();
        if (!there)
          CHECK(position_of(sorted.data(), count, none, estimate) == -1);
      }
    }
    for (std::int64_t bound = -1; bound < sorted.back() + 3; ++bound)
      CHECK(count_below(sorted.data(), count, bound) ==
            std::lower_bound(sorted.begin(), sorted.end(), bound) -
                sorted.begin());
  }
  CHECK(count_below(nullptr, 0, 5) == 0);
}
