// The bounds of bit_bound.hpp, by the same arithmetic on the host: what is
// written of a pair, which pairs pass a threshold, and that the exact step has
// the count again.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "core/metrics.hpp"
#include "core/prepared.hpp"
#include "cuda/exact/list_rules.hpp"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/limits.hpp"
#include "cuda/plan/number_forms.hpp"

namespace {

using namespace fsknn;
using namespace fsknn::cuda;

/// Two rows' counts, and how many features both have.
struct Counts {
  std::int64_t a, b, both;
  float half_sums() const {
    return 0.5f * static_cast<float>(a) + 0.5f * static_cast<float>(b);
  }
  double overlap() const {
    return 2.0 * static_cast<double>(both) / static_cast<double>(a + b);
  }
  /// As a device may write it, whose division is off by so many units of the
  /// last place: 2 at most.
  float written(int ulp = 0) const {
    float s = overlap_of(static_cast<float>(both), half_sums());
    for (int i = 0; i < std::abs(ulp) && both > 0; ++i)
      s = std::nextafter(s, ulp < 0 ? -HUGE_VALF : HUGE_VALF);
    return s;
  }
  bool passes(float threshold) const {
    return reaches_overlap(static_cast<float>(both), half_sums(), threshold);
  }
};

/// Up to the most that rows of bits or of codes may have, with the ends.
std::vector<Counts> many_counts() {
  std::mt19937_64 random(1);
  std::vector<Counts> all;
  const std::int64_t largest = kMostCommon;
  static_assert(entry_of(NumberForm::bit).most_features <= largest,
                "rows of 0 and 1 have no more bits than features");
  for (const std::int64_t most :
       {std::int64_t{1}, std::int64_t{3}, std::int64_t{100}, std::int64_t{4097},
        largest})
    for (int i = 0; i < 4000; ++i) {
      const auto below = [&](std::int64_t x) {
        return static_cast<std::int64_t>(random() %
                                         static_cast<std::uint64_t>(x + 1));
      };
      Counts c = {1 + below(most - 1), 1 + below(most - 1), 0};
      const std::int64_t fewer = std::min(c.a, c.b);
      c.both = i % 5 == 0 ? fewer : i % 5 == 1 ? 0 : below(fewer);
      all.push_back(c);
    }
  return all;
}

}  // namespace

TEST_CASE("what is written of two rows of bits is their overlap, nearly") {
  for (const Counts& c : many_counts()) {
    CHECK(c.half_sums() == 0.5 * static_cast<double>(c.a + c.b));
    for (const int ulp : {-2, -1, 0, 1, 2}) {
      const float s = c.written(ulp);
      CHECK(std::fabs(static_cast<double>(s) - c.overlap()) <= 0x1p-22);
      CHECK(told_sum(s, static_cast<double>(c.a), static_cast<double>(c.b)) ==
            static_cast<double>(c.both));
    }
  }
}

TEST_CASE("pairs as similar as a threshold was made for pass it") {
  const std::vector<Counts> all = many_counts();
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Counts& limit = all[i - 1];
    const Counts& pair = all[i];
    const float threshold =
        least_similarity(limit.written(2), 2.0 * kBitError, 0.0);
    if (pair.overlap() >= limit.overlap()) {
      CHECK(pair.passes(threshold));
      CHECK(pair.written(-2) >= threshold);
    }
    // And none that is far from it.
    if (pair.overlap() < limit.overlap() - 0x1p-17)
      CHECK_FALSE(pair.passes(threshold));
    CHECK(limit.passes(threshold));
  }
}

TEST_CASE("all pairs within a distance pass its threshold") {
  const SimilarityUnits units = {1.0, kBitError, 0.0};
  const std::vector<Counts> all = many_counts();
  for (const char* name : {"sorensen", "jaccard"}) {
    const MetricEntry& metric = find_metric(name, "signed");
    const DistanceRule rule(metric, 0);
    for (std::size_t i = 1; i < all.size(); ++i) {
      const auto distance = [&](const Counts& c) {
        return rule(static_cast<double>(c.both), static_cast<double>(c.a),
                    static_cast<double>(c.b));
      };
      const double limit = distance(all[i - 1]);
      const float threshold = threshold_of_limit(metric, rule, units, limit);
      if (distance(all[i]) <= limit) CHECK(all[i].passes(threshold));
      if (limit < 0.99 && distance(all[i]) > limit + 0x1p-16)
        CHECK_FALSE(all[i].passes(threshold));
    }
    CHECK(threshold_of_limit(metric, rule, units, -HUGE_VAL) == HUGE_VALF);
    CHECK(threshold_of_limit(metric, rule, units, HUGE_VAL) == -HUGE_VALF);
    CHECK(threshold_of_limit(metric, rule, units, 1.0) == -HUGE_VALF);
  }
}

TEST_CASE("of codes differences are told without rounding") {
  const MetricEntry& metric = find_metric("manhattan", "signed");
  const DistanceRule rule(metric, 0);
  const SimilarityUnits units = {0.5, 0.0, 0.0};
  const std::vector<Counts> all = many_counts();
  const auto similarity = [](const Counts& c) {
    return static_cast<float>(c.both) - c.half_sums();
  };
  const auto distance = [](const Counts& c) {
    return static_cast<double>(c.a + c.b - 2 * c.both);
  };
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Counts &limit = all[i - 1], &pair = all[i];
    CHECK(-2.0 * static_cast<double>(similarity(pair)) == distance(pair));
    const bool counts = distance(pair) <= distance(limit);
    const float listed = least_similarity(similarity(limit), 0.0, 0.0);
    CHECK((similarity(pair) >= listed) == counts);
    const float threshold =
        threshold_of_limit(metric, rule, units, distance(limit));
    if (counts) CHECK(similarity(pair) >= threshold);
    if (distance(pair) > distance(limit) + 1.0)
      CHECK_FALSE(similarity(pair) >= threshold);
    // Above every threshold that there can be.
    CHECK(static_cast<float>(pair.both) -
              (-kWildHalf + 0.5f * static_cast<float>(pair.b)) >
          0.0f);
  }
}

TEST_CASE("a wild row of codes passes every threshold of overlaps") {
  for (const float sum : {0.5f, 1.0f, 3.5f, 1e5f, 0x1p19f})
    for (const float threshold : {1.0f, 1.0f - 0x1p-24f, 0.5f, 0x1p-126f, 0.0f,
                                  -0.0f, -0x1p-20f, -HUGE_VALF})
      CHECK(reaches_overlap(2.0f * sum, 0.0f + sum, threshold));
  CHECK_FALSE(reaches_overlap(2.0f, 1.0f, HUGE_VALF));
}

TEST_CASE("thresholds of bits that are infinite or no number") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const Counts pair = {5, 7, 3}, apart = {5, 7, 0}, same = {4, 4, 4};
  for (const Counts& c : {pair, apart, same}) {
    CHECK(c.passes(-HUGE_VALF));
    CHECK_FALSE(c.passes(HUGE_VALF));
    CHECK_FALSE(c.passes(none));
    CHECK(c.passes(-0.5f));
    CHECK(c.passes(0.0f));
  }
  // Padding's rows: no count, and no sum where both are.
  CHECK(overlap_of(0.0f, 0.0f) == 0.0f);
  CHECK(overlap_of(0.0f, 2.5f) == 0.0f);
  CHECK_FALSE(reaches_overlap(0.0f, 0.0f, none));
  CHECK_FALSE(reaches_overlap(0.0f, 0.0f, -HUGE_VALF));
}
