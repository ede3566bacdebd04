// The bound of the filter by products of bytes, on the host. Tests the effect
// of rotation and rounding, the part of the bound in a row's features, and when
// bytes pay.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "core/rows/prepared.hpp"
#include "cuda/filter/byte_bound.hpp"
#include "cuda/filter/byte_choice.hpp"
#include "cuda/filter/limits.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

namespace {

using Row = std::vector<double>;

ByteRule rule_for(std::int64_t features, double step) {
  const RowsInForm rows(NumberForm::byte, true, features);
  return ByteRule(rows.depth, features,
                  rounding_of_sums(padded_features(features)),
                  static_cast<double>(static_cast<float>(step)));
}

struct Rounded {
  std::vector<int> bytes;
  ByteBounds bounds;
};

Rounded rounded(const ByteRule& rule, const Row& turned) {
  Rounded to;
  ByteTerms terms;
  for (const double y : turned) {
    const double q = byte_of(y, rule.step), lost = y - q * rule.step;
    terms.whole += y * y;
    terms.bytes += q * q;
    terms.rounding += lost * lost;
    to.bytes.push_back(static_cast<int>(q));
  }
  to.bounds = byte_bounds(rule, terms);
  return to;
}

Row turned(const ByteRule& rule, Row row) {
  row.resize(static_cast<std::size_t>(rule.rotation.size), 0.0);
  turn(rule.rotation, row.data(), 0, 1, [] {});
  return row;
}

long double product(const Row& a, const Row& b) {
  long double sum = 0;
  for (std::size_t f = 0; f < a.size(); ++f)
    sum += static_cast<long double>(a[f]) * b[f];
  return sum;
}

std::int64_t product(const std::vector<int>& a, const std::vector<int>& b) {
  std::int64_t sum = 0;
  for (std::size_t f = 0; f < a.size(); ++f) sum += a[f] * b[f];
  return sum;
}

Row of_length_1(Row row) {
  const double length = std::sqrt(static_cast<double>(product(row, row)));
  for (double& x : row) x /= length;
  return row;
}

/// The filter's error relative to its bound.
double part_of_bound(const ByteRule& rule, double similarity, const Rounded& a,
                     const Rounded& b) {
  const double sum = static_cast<double>(product(a.bytes, b.bytes));
  const double off = std::fabs(similarity - sum * rule.step * rule.step);
  return off / ((a.bounds.share + b.bounds.share) * rule.step * rule.step);
}

using Entry =
    std::function<double(std::mt19937_64&, std::int64_t, std::int64_t)>;

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

const std::vector<Entry> kFamilies = {
    [](auto& r, auto, auto) { return normal(r); },
    [](auto& r, auto, auto) { return std::pow(normal(r), 7); },
    [](auto&, auto i, auto f) { return f == i % 7 ? 1.0 : 0.0; },
    [](auto&, auto i, auto f) { return f == i % 7 ? 1.0 : 1e-9; },
    [](auto& r, auto, auto) { return r() % 2 == 0 ? 1.0 : -1.0; },
    [](auto&, auto, auto) { return 1.0; },
    [](auto& r, auto, auto f) { return std::ldexp(normal(r), -40 * (f % 2)); },
    [](auto& r, auto, auto f) {
      return f == 0 ? 1.0 : std::ldexp(normal(r), -1060);
    },
};

}  // namespace

TEST_CASE("a turned row's products are what they were") {
  std::mt19937_64 random(1);
  for (const std::int64_t d : {1, 2, 7, 30, 78, 295, 1000, 5000, 16384}) {
    const ByteRule rule = rule_for(d, 0.01);
    CHECK(rule.rotation.size >= d);
    CHECK(rule.rotation.window <= rule.rotation.size);
    CHECK(rule.rotation.num_windows() * rule.rotation.window >=
          rule.rotation.size);
    for (const Entry& entry : kFamilies) {
      std::vector<Row> rows(3), after;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::int64_t f = 0; f < d; ++f)
          rows[i].push_back(entry(random, static_cast<std::int64_t>(i), f));
        rows[i] = of_length_1(rows[i]);
        if (!(rows[i][0] == rows[i][0])) rows[i].assign(rows[i].size(), 0.0);
        after.push_back(turned(rule, rows[i]));
      }
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < rows.size(); ++j)
          CHECK(std::fabs(static_cast<double>(product(rows[i], rows[j]) -
                                              product(after[i], after[j]))) <=
                2.001 * rotation_error(rule.rotation));
    }
  }
}

TEST_CASE("one feature is spread over many") {
  for (const std::int64_t d : {78, 295, 4096, 16384}) {
    const ByteRule rule = rule_for(d, 0.01);
    for (const std::size_t which : {std::size_t{0}, std::size_t{77}}) {
      Row row(static_cast<std::size_t>(d), 0.0);
      row[which] = 1.0;
      double largest = 0;
      for (const double y : turned(rule, row))
        largest = std::fmax(largest, std::fabs(y));
      CHECK(largest <= 6.5 / std::sqrt(static_cast<double>(d)));
    }
  }
}

TEST_CASE("no pair is off by more than its rows' shares") {
  const MetricEntry& metric = find_metric("pearson", "signed");
  std::mt19937_64 random(2);
  for (const std::int64_t d : {1, 2, 31, 78, 295, 1000})
    for (const double more : {0.5, 2.0, 4.0, 40.0}) {
      const double size = static_cast<double>(rule_for(d, 0.01).rotation.size);
      const ByteRule rule = rule_for(d, more / std::sqrt(size) / 127);
      for (const Entry& entry : kFamilies) {
        std::vector<Row> rows(12);
        std::vector<Rounded> found;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          for (std::int64_t f = 0; f < d; ++f)
            rows[i].push_back(entry(random, static_cast<std::int64_t>(i), f));
          rows[i] = of_length_1(rows[i]);
          if (!(rows[i][0] == rows[i][0])) rows[i].assign(rows[i].size(), 0.0);
          found.push_back(rounded(rule, turned(rule, rows[i])));
        }
        for (std::size_t i = 0; i < rows.size(); ++i)
          for (std::size_t j = 0; j < rows.size(); ++j) {
            const double r =
                clamp_to_one(static_cast<double>(product(rows[i], rows[j])));
            CHECK(part_of_bound(rule, r, found[i], found[j]) <= 1.0);
            const ByteBounds &a = found[i].bounds, &b = found[j].bounds;
            if (a.wild || b.wild) continue;
            // A threshold from this pair's distance lets it pass.
            const double similarity =
                static_cast<double>(product(found[i].bytes, found[j].bytes)) +
                a.share + b.share;
            CHECK(static_cast<float>(similarity) >=
                  threshold_of_limit(metric, DistanceRule(metric, 0),
                                     {1.0 / (rule.step * rule.step), 0.0},
                                     1.0 - r));
          }
      }
    }
}

TEST_CASE("the bound is met where all that is lost points one way") {
  const double size = static_cast<double>(rule_for(295, 0.01).rotation.size);
  const ByteRule rule = rule_for(295, 1 / std::sqrt(size) / 32);
  Row straight(static_cast<std::size_t>(rule.rotation.size)), lost = straight;
  std::mt19937_64 random(3);
  for (std::size_t f = 0; f < straight.size(); ++f) {
    const double sign = random() % 2 == 0 ? 1.0 : -1.0;
    straight[f] = sign * 32 * rule.step;  // is represented exactly
    // Each entry is rounded by half a step, in the same direction.
    lost[f] = (std::rint(normal(random) * 25) + 0.49 * sign) * rule.step;
  }
  REQUIRE(static_cast<double>(product(lost, lost)) < 1.0);
  const double r = static_cast<double>(product(straight, lost));
  const Rounded a = rounded(rule, straight), b = rounded(rule, lost);
  const double part = part_of_bound(rule, r, a, b);
  CHECK(part <= 1.0);
  CHECK(part >= 0.98);
  // The threshold from this distance lets the pair pass, and little less.
  const float reranked =
      threshold_of_limit(find_metric("pearson", "signed"),
                         DistanceRule(find_metric("pearson", "signed"), 0),
                         {1.0 / (rule.step * rule.step), 0.0}, 1.0 - r);
  const double shares = a.bounds.share + b.bounds.share;
  const double sum = static_cast<double>(product(a.bytes, b.bytes));
  CHECK(static_cast<float>(sum + shares) >= reranked);
  CHECK_FALSE(static_cast<float>(sum + 0.95 * shares) >= reranked);
}

TEST_CASE("features hold a row's share, whole") {
  for (const std::int64_t d : {1, 295, 16384}) {
    const ByteRule rule = rule_for(d, 0.01);
    CHECK(rule.parts == error_parts(d));
    for (std::int64_t share = 0; share <= rule.largest_share();
         share += 1 + share / 500) {
      std::int64_t held = 0;
      for (std::int64_t p = 0; p < rule.parts; ++p) {
        CHECK(rule.part(share, p) >= 0);
        CHECK(rule.part(share, p) <= kLargestByte);
        held += rule.part(share, p) * rule.part_unit(p);
      }
      CHECK(held == share);
    }
    std::int64_t held = 0;
    for (std::int64_t p = 0; p < rule.parts; ++p)
      held += rule.part(rule.largest_share(), p) * rule.part_unit(p);
    CHECK(held == rule.largest_share());
  }
}

TEST_CASE("rows that bytes do not hold are wild") {
  const ByteRule rule = rule_for(295, 4 / std::sqrt(302.0) / 127);
  const double infinity = std::numeric_limits<double>::infinity();
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::size_t size = static_cast<std::size_t>(rule.rotation.size);
  for (const double x : {infinity, -infinity, none, 1.0, 1e300}) {
    Row row(size, 0.0);
    row[3] = x;
    const ByteBounds bounds = rounded(rule, row).bounds;
    INFO(x);
    CHECK(bounds.wild);
    CHECK(bounds.slack == HUGE_VALF);
    CHECK(bounds.held() == 0);
  }
  const ByteBounds zeros = rounded(rule, Row(size, 0.0)).bounds;
  CHECK_FALSE(zeros.wild);
  CHECK(zeros.share >= 0);
  CHECK(zeros.share <= 1);
  const ByteBounds tiny = rounded(rule, Row(size, 5e-324)).bounds;
  CHECK_FALSE(tiny.wild);
  CHECK(tiny.share <= 1);
}

TEST_CASE("sums of products of bytes are below 2^31") {
  const std::int64_t largest = std::int64_t{kLargestByte} * kLargestByte;
  CHECK(kMostBytes * largest <= INT32_MAX);
  CHECK((kMostBytes + 1) * largest > INT32_MAX);
  const auto& entry = entry_of(NumberForm::byte);
  CHECK(RowsInForm(NumberForm::byte, true, entry.most_features).depth <=
        kMostBytes);
  for (const double x : {1e300, 127.6, 127.4, -127.6, -1e300})
    CHECK(std::abs(byte_of(x, 1.0)) == 127);
  CHECK(byte_of(std::numeric_limits<double>::quiet_NaN(), 1.0) == 0);
  CHECK(byte_of(2.5, 1.0) == 2);
}

TEST_CASE("bytes are chosen where they save more than they cost") {
  std::mt19937_64 random(4);
  constexpr std::int64_t count = 64;
  const auto products = [&](double spread) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < count * count; ++i)
      all.push_back(spread * normal(random));
    return all;
  };
  const ByteSearch many = {1500000, 20, 320};
  const double step = 4 / std::sqrt(320.0) / 127;
  const auto pays = [&](double spread, const ByteSearch& search) {
    return bytes_pay(expected_candidates(products(spread), count, search,
                                         byte_gap(search, step)),
                     search);
  };
  CHECK(pays(0.15, many));
  // Independent rows: too many pairs are as near as the nearest ones.
  CHECK(expected_candidates(products(0.058), count, many,
                            4 * typical_error(step, 320)) > 100);
  CHECK_FALSE(pays(0.02, many));
  CHECK_FALSE(pays(0.15, {5000, 20, 320}));
  CHECK(expected_candidates(products(0.15), count, many, 0.0) ==
        doctest::Approx(20));
  // Lists that are too long for exact re-ranking have twice the error.
  CHECK(byte_gap({1500000, 20, 320}, step) == 2 * typical_error(step, 320));
  CHECK(byte_gap({1500000, 33, 320}, step) == 4 * typical_error(step, 320));
  CHECK(step_of({}) == 0.0);
  CHECK(step_of({0.0, 0.0}) == 0.0);
  CHECK(step_of({0.2, 0.1, 5.0}) == doctest::Approx(0.2 * 1.4 / 127));
}

TEST_CASE("rows that stand in a crowd are seen in a sample") {
  std::mt19937_64 random(5);
  constexpr std::int64_t rows = kDuplicateSample, points = kDuplicatePoints;
  const ByteSearch many = {1500000, 20, 96};
  const double gap = 0.02;
  // The first rows have near-duplicates, spread evenly from `least` to `most`.
  const auto sample = [&](std::int64_t crowded_rows, std::int64_t crowd,
                          double least, double most) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < points; ++j) {
        const bool in = i < crowded_rows && j >= points - crowd;
        const double part = static_cast<double>(random() >> 11) * 0x1p-53;
        const double r =
            in ? least + (most - least) * part : 0.12 * normal(random);
        all.push_back(i == j ? 1.0 : std::min(r, 1.0));
      }
    return all;
  };
  const auto near_duplicates = [&](const std::vector<double>& all) {
    return duplicate_candidates(all, rows, points, many, gap);
  };
  // The number of points that a sampled point of one row within the gap
  // represents.
  const double each = 1500000.0 / (points - 1) / rows;
  // Few of normal similarities are this near, in few rows.
  const double none = near_duplicates(sample(0, 0, 0, 0));
  CHECK(none <= 5 * each);
  const double one = near_duplicates(sample(1, 20, 0.985, 0.995));
  CHECK(one >= 20 * each * (1 - 1e-9));
  CHECK(one <= 25 * each);
  CHECK_FALSE(bytes_pay(static_cast<double>(many.k) + one, many));
  // Near-duplicates spread far more widely than the gap: about 16 of 400 are
  // within it.
  const double wide = near_duplicates(sample(1, 400, 0.5, 1.0));
  CHECK(wide >= 4 * each);
  CHECK(wide <= 40 * each);
  // Halves do not distinguish copies that differ in the last bit, either.
  CHECK(near_duplicates(sample(64, 100, 1 - 3e-16, 1.0)) <= 5 * each);
  // Rows to which all points are equal; too few points; no neighbours.
  CHECK(near_duplicates(std::vector<double>(rows * points, 0.0)) == 0);
  CHECK(duplicate_candidates({1, 1, 1, 1}, 2, 2, many, gap) == 0);
  CHECK(duplicate_candidates(sample(1, 20, 0.985, 0.995), rows, points,
                             {1500000, 0, 96}, gap) == 0);
}
