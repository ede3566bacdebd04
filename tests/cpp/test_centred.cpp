// The filter centres rows that are nearly the same, and lets few pairs pass.
// test_filter.cpp tests that it drops no neighbour.

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "cases.hpp"
#include "core/contract/centred.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/scan.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/filter/thresholds.hpp"

using namespace fsknn;
using namespace fsknn::cpu;

namespace {

Matrix shifted(std::int64_t n, std::int64_t d, double level, double spread) {
  Matrix m = normal("shifted", n, d, 50);
  for (double& x : m.values) x = level + spread * x;
  return m;
}

struct Filtered {
  PreparedPoints points;
  FilterScale scale;
  FilterRows rows;
  int exponent = 0;
};

Filtered filtered(const MetricEntry& metric, const Matrix& m, int bits) {
  Filtered p;
  const auto source = m.source();
  p.exponent = matrix_exponent(metric, scan(source, 1).largest);
  Request request;
  request.metric = &metric;
  p.points = prepare_points(source, recipe_of(request, p.exponent), {}, true,
                            kBaselineKernels.prepare_row, 1);
  p.scale = choose_scale(metric, DistanceRule(metric, p.exponent),
                         kBaselineKernels, p.points, nullptr, 1, {1, bits});
  p.rows = pack(p.scale, p.points, 1);
  set_slack(p.scale, p.rows.error, p.points.padded);
  complete(p.scale, p.rows);
  return p;
}

/// The number of pairs that pass at final limits, divided by the number among
/// the k nearest of either row. The rows fill whole panels.
double times_as_many(const MetricEntry& metric, const Filtered& p,
                     std::int64_t k) {
  const std::int64_t n = p.points.size();
  const DistanceRule rule(metric, p.exponent);
  const Thresholds thresholds(p.scale, metric, rule);
  std::vector<double> distance(static_cast<std::size_t>(n * n), HUGE_VAL);
  std::vector<double> limit;
  std::vector<std::int32_t> held;
  for (std::int64_t i = 0; i < n; ++i) {
    double* own = distance.data() + i * n;
    for (std::int64_t j = 0; j < n; ++j)
      if (i != j)
        own[j] = rule(scalar_sum(metric.accumulation, p.points.row(Place{i}),
                                 p.points.row(Place{j}), p.points.padded),
                      p.points.sums[i], p.points.sums[j]);
    std::vector<double> sorted(own, own + n);
    std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end());
    limit.push_back(sorted[static_cast<std::size_t>(k - 1)]);
    held.push_back(thresholds.keep_up_to(limit.back()));
  }
  double pass = 0.0, near = 0.0;
  for (std::int64_t i = 0; i < n; i += Tile::rows)
    for (std::int64_t j = 0; j < n; j += Tile::panel) {
      alignas(64) std::int32_t sums[Tile::rows * Tile::columns];
      std::uint64_t keep[Tile::rows];
      kBaselineKernels.accumulate(p.scale.form->product, p.rows.row(i),
                                  p.rows.panel(j), 1, p.rows.steps, sums);
      kBaselineKernels.test(p.scale.form->test, sums, 1,
                            p.rows.side(held.data() + i, i),
                            p.rows.side(held.data() + j, j), keep);
      for (std::int64_t r = i; r < i + Tile::rows; ++r)
        for (std::int64_t c = j; c < j + Tile::panel; ++c) {
          const double apart = distance[static_cast<std::size_t>(r * n + c)];
          if (r == c) continue;
          pass += static_cast<double>(keep[r - i] >> (c - j) & 1);
          near += apart <= limit[static_cast<std::size_t>(r)] ||
                  apart <= limit[static_cast<std::size_t>(c)];
        }
    }
  return pass / near;
}

bool is_centred(const FilterScale& scale) {
  return scale.form == &kCentredSimilarity ||
         scale.form == &kCentredByteSimilarity ||
         scale.form == &kCentredNegativeSimilarity ||
         scale.form == &kCentredByteNegativeSimilarity;
}

/// Rows that are a common profile plus some noise, with correlations near 1.
Matrix profiles(std::int64_t n, std::int64_t d, double noise) {
  Matrix m = normal("profiles", n, d, 53);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = std::cos(3.0 * static_cast<double>(f)) + noise * m.at(i, f);
  return m;
}

/// Tests the filters in 16 and in 8 bits.
void check_few_pass(const MetricEntry& metric, const Matrix& m, double most_16,
                    double most_8) {
  const Filtered wide = filtered(metric, m, 16);
  CHECK(is_centred(wide.scale));
  CHECK(times_as_many(metric, wide, 5) < most_16);
  const Filtered bytes = filtered(metric, m, 8);
  CHECK(is_centred(bytes.scale));
  CHECK(times_as_many(metric, bytes, 5) < most_8);
}

}  // namespace

TEST_CASE("few pairs of shifted rows pass") {
  const MetricEntry& metric = find_metric("cosine", "signed");
  for (const double level : {30.0, 1e3, 1e5, -1e6}) {
    CAPTURE(level);
    // Beyond this level the contract's own rounding shows.
    const bool last = std::fabs(level) > 1e5;
    check_few_pass(metric, shifted(320, 130, level, 1.0), last ? 1.5 : 1.02,
                   last ? 2.2 : 2.0);
  }
}

TEST_CASE("few pairs of rows that differ by little more than rounding pass") {
  const MetricEntry& metric = find_metric("cosine", "signed");
  check_few_pass(metric, shifted(320, 63, 1e4, 1e-3), 3.0, 4.0);
}

TEST_CASE("few pairs of rows of one profile pass") {
  for (const bool opposite : {false, true}) {
    const MetricEntry& metric =
        find_metric("pearson", opposite ? "negative" : "signed");
    for (const double noise : {0.1, 1e-3, 1e-5}) {
      CAPTURE(opposite);
      CAPTURE(noise);
      check_few_pass(metric, profiles(320, 130, noise), 1.02, 2.0);
    }
  }
}

TEST_CASE("few pairs of rows of nearly the same ranks pass") {
  for (const char* const sign : {"signed", "negative"})
    for (const double noise : {0.1, 0.03, 0.01}) {
      CAPTURE(sign);
      CAPTURE(noise);
      check_few_pass(find_metric("spearman", sign), profiles(320, 130, noise),
                     1.05, 2.0);
    }
}

TEST_CASE("the rounding of ranks bounds their distances") {
  const MetricEntry& metric = find_metric("spearman", "signed");
  double largest = 0.0;
  for (const std::int64_t d : {2, 7, 8, 63, 130, 1000})
    for (const double noise : {0.0, 1e-4, 0.01, 0.1, 1.0}) {
      Matrix m = profiles(40, d, noise);
      // Includes opposite rows and ties.
      for (std::int64_t f = 0; f < d; ++f) m.at(7, f) = -m.at(8, f);
      for (std::int64_t f = 1; f < d / 2; ++f) m.at(9, f) = m.at(9, 0);
      const PreparedPoints points = filtered(metric, m, 16).points;
      REQUIRE(points.whole_ranks);
      const std::int64_t padded = points.padded;
      const UnitRounding own = rounding_of_ranks(padded);
      const double part = rounding_of_near_rows(padded);
      std::vector<std::vector<double>> unit;
      FilterReader reader(points);
      for (std::int64_t i = 0; i < 40; ++i) {
        const double* const z = reader(Place{i});
        unit.emplace_back(z, z + padded);
      }
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < 40; ++i)
        for (std::size_t j = 0; j < 40; ++j) {
          long double square = 0.0L, squares = 0.0L;
          for (std::size_t f = 0; f < unit[i].size(); ++f) {
            const long double a = unit[i][f], b = unit[j][f], c = unit[0][f];
            square += (a - b) * (a - b);
            squares += (a - c) * (a - c) + (b - c) * (b - c);
          }
          const Place p = {static_cast<std::int64_t>(i)};
          const Place q = {static_cast<std::int64_t>(j)};
          const double distance =
              metric.finish(scalar_sum(metric.accumulation, points.row(p),
                                       points.row(q), padded),
                            points.sums[p.value], points.sums[q.value]);
          const long double off = std::fabs(
              static_cast<long double>(distance) -
              (square / 2 + 2 * static_cast<long double>(own.short_of_one)));
          const double contract = 2.0 * own.contract;
          wrong += !(off <= contract + part * squares + 1e-18L);
          largest = std::max(largest, static_cast<double>(off) / contract);
        }
      CAPTURE(d);
      CAPTURE(noise);
      CHECK(wrong == 0);
    }
  CHECK(largest > 0.01);
}

// If all entries are equal, the rounding errors of the sums have one sign. At a
// million features more than 2^-80 remains.
TEST_CASE("what is short of length 1 is right at any number of features") {
  double most = 0.0;
  for (const std::int64_t d : {8, 1000, 8192, 100000, 1048579, 3000000})
    for (const double other : {1.0, 1.7}) {
      const std::int64_t padded = padded_features(d);
      std::vector<double> z(static_cast<std::size_t>(padded), 0.0);
      for (std::int64_t f = 0; f < d; ++f)
        z[static_cast<std::size_t>(f)] = f < d / 2 ? 1.0 : other;
      scale_to_length_one<ScalarLanes>(z.data(), padded);
      // The sum is in two doubles, of which the second stays small.
      double sum = -1.0, rest = 0.0;
      for (const double x : z) {
        const double square = x * x, all = sum + square, there = all - sum;
        rest += ((sum - (all - there)) + (square - there)) +
                std::fma(x, x, -square);
        sum = all + rest;
        rest -= sum - all;
      }
      const UnitRounding own = unit_rounding(z.data(), padded);
      const double off = std::fabs((-sum / 2 - own.short_of_one) - rest / 2);
      CAPTURE(d);
      CAPTURE(other);
      CHECK(off <= unit_rounding_left(padded));
      // It is negligible compared with the contract's rounding.
      CHECK(unit_rounding_left(padded) < 1e-6 * own.contract);
      most = std::max(most, off);
    }
  CHECK(most > 0x1p-80);
}

TEST_CASE("a near row's own rounding bounds its distances") {
  const MetricEntry& metric = find_metric("cosine", "signed");
  double largest = 0.0;
  for (const std::int64_t d : {1, 7, 8, 63, 130, 1000})
    for (const double spread : {0.0, 1e-8, 1e-4, 1.0, 1e4, 1e7}) {
      Matrix m = shifted(40, d, 1e4, spread);
      for (std::int64_t f = 0; f < d; ++f) m.at(7, f) = -m.at(8, f);
      const PreparedPoints points = filtered(metric, m, 16).points;
      const std::int64_t padded = points.padded;
      const double part = rounding_of_near_rows(padded);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < 40; ++i)
        for (std::int64_t j = 0; j < 40; ++j) {
          const double* a = points.row(Place{i});
          const double* b = points.row(Place{j});
          const UnitRounding own = unit_rounding(a, padded);
          const UnitRounding other = unit_rounding(b, padded);
          // Any centre is valid: this one is the first row.
          long double square = 0.0L, squares = 0.0L;
          for (std::int64_t f = 0; f < padded; ++f) {
            const long double centre = points.row(Place{0})[f];
            square += (a[f] - static_cast<long double>(b[f])) *
                      (a[f] - static_cast<long double>(b[f]));
            squares += (a[f] - centre) * (a[f] - centre) +
                       (b[f] - centre) * (b[f] - centre);
          }
          const long double expected =
              square / 2 + own.short_of_one + other.short_of_one;
          const double distance = metric.finish(
              scalar_sum(metric.accumulation, a, b, padded), 0.0, 0.0);
          const double contract = own.contract + other.contract;
          // The contract returns 0 for values below 0.
          const long double off =
              distance == 0.0 && expected < 0.0L
                  ? 0.0L
                  : std::fabs(static_cast<long double>(distance) - expected);
          wrong += !(off <= contract + part * squares + 1e-18L);
          wrong += !(contract < 0.25 * rounding_once_centred(padded));
          largest = std::max(largest, static_cast<double>(off) / contract);
        }
      CAPTURE(d);
      CAPTURE(spread);
      CHECK(wrong == 0);
    }
  CHECK(largest > 0.1);
}

TEST_CASE("some rows that are like no others do not widen the bound") {
  const MetricEntry& metric = find_metric("cosine", "signed");
  Matrix m = shifted(320, 130, 1e4, 1.0);
  for (std::int64_t i = 0; i < 320; i += 40)
    for (std::int64_t f = 0; f < 130; ++f)
      m.at(i, f) = f == i % 130 ? 1e9 : m.at(i, f) - 1e4;
  for (const int bits : {8, 16}) {
    const Filtered p = filtered(metric, m, bits);
    CAPTURE(bits);
    CHECK(is_centred(p.scale));
    CHECK(times_as_many(metric, p, 5) < 4.0);
  }
}

TEST_CASE("rows are centred where that helps") {
  const auto centred = [](const char* metric, const char* sign,
                          const Matrix& m) {
    return is_centred(filtered(find_metric(metric, sign), m, 16).scale);
  };
  const Matrix plain = normal("plain", 320, 40, 51);
  CHECK(!centred("cosine", "signed", plain));
  CHECK(!centred("pearson", "signed", plain));
  const Matrix far = shifted(320, 40, 100.0, 1.0);
  CHECK(centred("cosine", "signed", far));
  // Rows are not centred for magnitudes.
  const Matrix alike = profiles(320, 40, 0.01);
  CHECK(centred("pearson", "signed", alike));
  CHECK(centred("pearson", "negative", alike));
  CHECK(!centred("pearson", "absolute", alike));
  // These rows are centred already, along the features.
  CHECK(!centred("pearson", "signed", far));
  // Fewer than two points have no centre.
  const Matrix one = shifted(1, 40, 100.0, 1.0);
  CHECK(!centred("cosine", "signed", one));
  // A histogram's table needs products.
  Filtered p = filtered(find_metric("cosine", "signed"), far, 16);
  const MetricEntry& metric = find_metric("cosine", "signed");
  CHECK(!is_centred(choose_scale(metric, DistanceRule(metric, 0),
                                 kBaselineKernels, p.points, nullptr, 1,
                                 {0, 0, 1.0, false})));
}

TEST_CASE("huge entries do not widen the bound of distances") {
  const MetricEntry& metric = find_metric("euclidean", "signed");
  const Matrix plain = normal("plain", 320, 130, 52);
  const double usual = times_as_many(metric, filtered(metric, plain, 16), 5);
  for (const double huge : {1e8, 1e12, 1e13, 1e30, 1e48}) {
    Matrix m = plain;
    m.at(7, 3) = huge;
    CAPTURE(huge);
    // All pairs of the one row pass.
    CHECK(times_as_many(metric, filtered(metric, m, 16), 5) <
          usual * 1.05 + 2.0 * 320 / (320 * 5));
  }
}
