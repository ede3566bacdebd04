// Repeats the arithmetic of bit_bound.hpp on the host: the value written for a
// pair, the pairs that pass a threshold, and the count for the exact step.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "core/contract/metrics.hpp"
#include "core/rows/prepared.hpp"
#include "cuda/exact/list_rules.hpp"
#include "cuda/filter/bit_bound.hpp"
#include "cuda/filter/limits.hpp"
#include "cuda/plan/number_forms.hpp"

namespace {

using namespace fsknn;
using namespace fsknn::cuda;

/// Two rows' counts, and the number of features that both have.
struct Counts {
  std::int64_t a, b, both;
  float sums() const {
    return as_count(static_cast<int>(a)) + as_count(static_cast<int>(b));
  }
  float common() const { return as_count(static_cast<int>(both)); }
  double overlap() const {
    return 2.0 * static_cast<double>(both) / static_cast<double>(a + b);
  }
  /// The value that a device may write: its division has an error of up to 2
  /// units in the last place, here `ulp`.
  float written(int ulp = 0) const {
    float s = overlap_of(common(), sums());
    for (int i = 0; i < std::abs(ulp) && both > 0; ++i)
      s = std::nextafter(s, ulp < 0 ? -HUGE_VALF : HUGE_VALF);
    return s;
  }
  bool passes(float threshold) const {
    return reaches_overlap(common(), sums(), threshold);
  }
};

/// Counts up to the most that rows of bits or codes may have, including the
/// extremes.
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
    CHECK(c.sums() == as_count(static_cast<int>(c.a + c.b)));
    CHECK(static_cast<double>(c.sums()) ==
          static_cast<double>(c.a + c.b) * 0x1p-149);
    for (const int ulp : {-2, -1, 0, 1, 2}) {
      const float s = c.written(ulp);
      CHECK(std::fabs(static_cast<double>(s) - c.overlap()) <= 0x1p-22);
      CHECK(given_sum(s, static_cast<double>(c.a), static_cast<double>(c.b)) ==
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
    // Pairs that are much farther do not pass.
    if (pair.overlap() < limit.overlap() - 0x1p-17)
      CHECK_FALSE(pair.passes(threshold));
    CHECK(limit.passes(threshold));
    // The threshold is not lower than needed, by whole numbers.
    const float exact = static_cast<float>(limit.overlap());
    const double bound =
        0.5 * static_cast<double>(exact) * static_cast<double>(pair.a + pair.b);
    CHECK(pair.passes(exact) == (static_cast<double>(pair.both) >= bound));
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
    return closeness_of(c.common(), c.sums());
  };
  const auto passes = [](const Counts& c, float threshold) {
    return reaches_closeness(c.common(), c.sums(), threshold);
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
    CHECK(passes(pair, listed) == counts);
    const float threshold =
        threshold_of_limit(metric, rule, units, distance(limit));
    if (counts) CHECK(similarity(pair) >= threshold);
    if (counts) CHECK(passes(pair, threshold));
    if (distance(pair) > distance(limit) + 1.0) {
      CHECK_FALSE(similarity(pair) >= threshold);
      CHECK_FALSE(passes(pair, threshold));
    }
    // A wild row exceeds every possible threshold.
    const float wild = kWildCount + as_count(static_cast<int>(pair.b));
    CHECK(closeness_of(pair.common(), wild) == 0x1p100f);
    for (const float any : {0.0f, 1e6f, 0x1p99f, -1e6f, -HUGE_VALF})
      CHECK(reaches_closeness(pair.common(), wild, any));
    for (const float none : {HUGE_VALF, std::nanf("")}) {
      CHECK_FALSE(reaches_closeness(pair.common(), wild, none));
      CHECK_FALSE(passes(pair, none));
    }
    CHECK(passes(pair, -HUGE_VALF));
    // Padding is below every possible threshold.
    const float padding = kPaddingCount + as_count(static_cast<int>(pair.b));
    CHECK(closeness_of(0.0f, padding) == -0x1p100f);
    CHECK_FALSE(reaches_closeness(0.0f, padding, -0x1p99f));
  }
}

TEST_CASE("of 0 and 1 Euclidean distances are told by their squares") {
  const MetricEntry& metric = find_metric("euclidean", "signed");
  CHECK(has_squares(metric));
  const DistanceRule rule(metric, 0);
  const SimilarityUnits units = {1.0, 0.0, 0.0};
  const std::vector<Counts> all = many_counts();
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto apart = [](const Counts& c) {
      return static_cast<double>(c.a + c.b - 2 * c.both);
    };
    const Counts &limit = all[i - 1], &pair = all[i];
    CHECK(rule(-2.0 * static_cast<double>(
                          closeness_of(pair.common(), pair.sums())),
               0.0, 0.0) == std::sqrt(apart(pair)));
    const float threshold =
        threshold_of_limit(metric, rule, units, std::sqrt(apart(limit)));
    if (apart(pair) <= apart(limit))
      CHECK(reaches_closeness(pair.common(), pair.sums(), threshold));
    if (apart(pair) > apart(limit) + 1.0)
      CHECK_FALSE(reaches_closeness(pair.common(), pair.sums(), threshold));
  }
}

namespace {

/// Rows with some ones among D features, as the contract prepares them.
std::vector<double> unit_row(const std::vector<double>& bits, bool centred) {
  const double d = static_cast<double>(bits.size());
  double sum = 0.0, length = 0.0;
  for (const double x : bits) sum += x;
  std::vector<double> z(bits.size());
  for (std::size_t f = 0; f < z.size(); ++f) {
    z[f] = bits[f] - (centred ? sum / d : 0.0);
    length += z[f] * z[f];
  }
  for (double& x : z) x /= std::sqrt(length);
  return z;
}

}  // namespace

TEST_CASE("products of rows of two values are known within their error") {
  std::mt19937_64 random(3);
  for (const int features : {2, 7, 64, 1000, 4097}) {
    for (int turn = 0; turn < 60; ++turn) {
      const bool centred = turn % 3 != 0;
      std::vector<double> bits[2];
      double p[2];
      for (int side = 0; side < 2; ++side) {
        // The number of set bits goes from one to all but one; some pairs are
        // equal.
        const double share = std::uniform_real_distribution<double>()(random);
        bits[side].assign(static_cast<std::size_t>(features), 0.0);
        for (double& x : bits[side])
          x = std::uniform_real_distribution<double>()(random) < share * share;
        if (turn % 7 == 1) std::fill(bits[side].begin(), bits[side].end(), 1.0);
        if (side == 1 && turn % 5 == 0) bits[1] = bits[0];
        bits[side].front() = 1.0;
        if (centred) bits[side].back() = 0.0;
        p[side] = 0.0;
        for (const double x : bits[side]) p[side] += x;
      }
      double largest = 0.0, sum = 0.0;
      int both = 0;
      TwoValues kept[2];
      std::vector<double> z[2];
      for (int side = 0; side < 2; ++side) {
        z[side] = unit_row(bits[side], centred);
        const auto ends = std::minmax_element(z[side].begin(), z[side].end());
        const double difference =
            centred ? *ends.second - *ends.first : *ends.second;
        kept[side] = two_values(difference, centred, p[side],
                                static_cast<double>(features));
        if (centred)
          largest = std::max(largest, p[side] / (features - p[side]));
      }
      for (std::size_t f = 0; f < z[0].size(); ++f) {
        sum += z[0][f] * z[1][f];
        both += bits[0][f] == 1.0 && bits[1][f] == 1.0;
      }
      const double e = product_error(largest);
      for (const int one : {0, 1}) {
        const double s = static_cast<double>(
            product_of(kept[one], kept[1 - one], as_count(both)));
        CHECK(std::fabs(s - sum) <= e);
      }
    }
  }
  // Padding: rows of zeros reach no threshold above 0.
  CHECK(product_of({}, two_values(1.0, true, 3.0, 8.0), 0.0f) == 0.0f);
}

TEST_CASE("a wild row of codes passes every threshold of overlaps") {
  for (const int sum : {1, 2, 7, 200000, 1 << 20})
    for (const float threshold : {1.0f, 1.0f - 0x1p-24f, 0.5f, 0x1p-126f, 0.0f,
                                  -0.0f, -0x1p-20f, -HUGE_VALF})
      CHECK(reaches_overlap(as_count(sum), 0.0f + as_count(sum), threshold));
  CHECK_FALSE(reaches_overlap(as_count(2), as_count(2), HUGE_VALF));
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
  // Padding rows have no count, and no sum if both are padding.
  CHECK(overlap_of(0.0f, 0.0f) == 0.0f);
  CHECK(overlap_of(0.0f, as_count(5)) == 0.0f);
  CHECK_FALSE(reaches_overlap(0.0f, 0.0f, none));
  CHECK_FALSE(reaches_overlap(0.0f, 0.0f, -HUGE_VALF));
}
