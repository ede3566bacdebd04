// Rows of latent factors, which are generated when they are read.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "answers.hpp"
#include "core/rows/latent.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "cpu/search/engine.hpp"

using namespace fsknn;

namespace {

LatentRule rule_of(std::int64_t features, std::int32_t factors,
                   std::int32_t noise, std::uint64_t seed) {
  LatentRule rule;
  rule.num_features = features;
  rule.num_factors = factors;
  rule.noise = noise;
  rule.seed = seed;
  return rule;
}

}  // namespace

TEST_CASE("counters give the numbers that come one after the other") {
  for (const std::uint64_t seed : {0ull, 1234567ull, ~0ull}) {
    SplitMix numbers(seed);
    for (std::uint64_t i = 0; i < 1000; ++i)
      CHECK(numbers.next() == mixed_number(seed, i));
  }
  // The values that its author publishes.
  CHECK(mixed_number(1234567, 0) == 6457827717110365317ull);
  CHECK(mixed_number(1234567, 1) == 3203168211198807973ull);
}

TEST_CASE("a latent value is a whole number times a power of two") {
  // Even the largest sum is a whole number that a double represents.
  const double most =
      LatentRule::kMostFactors * 131070.0 * 131070.0 + 2147483647.0 * 131070.0;
  CHECK(most < 0x1p53);
  const std::int64_t largest = (std::int64_t{1} << 53) - 1;
  CHECK(LatentRule::value(largest) == std::ldexp(0x1p53 - 1, -32));
  CHECK(LatentRule::value(-largest) == -std::ldexp(0x1p53 - 1, -32));
}

TEST_CASE("latent rows are the sums that are told, wherever a read begins") {
  for (const std::int64_t features : {1, 17, 4100}) {
    const LatentRule rule = rule_of(features, 5, 70000, 9);
    const LatentSource source(rule, 30);
    const std::int64_t stride = features + 3;
    for (const std::int64_t block : {1, 7, 30}) {
      std::vector<double> out(static_cast<std::size_t>(block * stride), -1.0);
      for (std::int64_t first = 0; first < 30; first += block) {
        const std::int64_t count = std::min<std::int64_t>(block, 30 - first);
        source.read(first, count, out.data(), stride);
        for (std::int64_t r = 0; r < count; ++r) {
          for (std::int64_t f = 0; f < features; ++f) {
            // Doubles represent all of these numbers exactly.
            double sum = static_cast<double>(rule.noise_at(first + r, f));
            for (std::int32_t j = 0; j < 5; ++j)
              sum += static_cast<double>(rule.score(first + r, j)) *
                     static_cast<double>(rule.loading(j, f));
            CHECK(out[static_cast<std::size_t>(r * stride + f)] ==
                  sum / 4294967296.0);
          }
          CHECK(out[static_cast<std::size_t>(r * stride + features)] == -1.0);
        }
      }
    }
  }
}

TEST_CASE("near-normal numbers have the moments that are told") {
  double sum = 0, squares = 0, cubes = 0;
  const int count = 200000;
  for (int i = 0; i < count; ++i) {
    const double x = near_normal(3, static_cast<std::uint64_t>(i)) / 37837.2;
    CHECK(std::fabs(x) <= 131070 / 37837.2);
    sum += x;
    squares += x * x;
    cubes += x * x * x;
  }
  CHECK(std::fabs(sum / count) < 0.01);
  CHECK(std::fabs(squares / count - 1.0) < 0.01);
  CHECK(std::fabs(cubes / count) < 0.03);
}

TEST_CASE("a device is told what latent rows are made from, some of them too") {
  const LatentSource all(rule_of(11, 3, 10, 1), 50);
  CHECK(all.made_when_read());
  CHECK(all.made_from().source == &all);
  CHECK(bytes_made_from(all) == 3 * 11 * 4);
  CHECK(numbers_made(all.made_from(), 50).empty());
  const RowSubset some(all, {40, 3, 3});
  CHECK(bytes_made_from(some) == 3 * 11 * 4 + 3 * 4);
  CHECK(numbers_made(some.made_from(), 3) ==
        std::vector<std::int32_t>({40, 3, 3}));
}

TEST_CASE("latent rows have the neighbours of the same rows held") {
  const LatentSource source(rule_of(19, 3, 50000, 7), 300);
  std::vector<double> columns(300 * 19), row(19);
  for (std::int64_t i = 0; i < 300; ++i) {
    source.read(i, 1, row.data(), 19);
    for (std::size_t f = 0; f < 19; ++f)
      columns[f * 300 + static_cast<std::size_t>(i)] = row[f];
  }
  const MatrixSource<double> held(columns.data(), 300, 19);
  for (const char* const name : {"pearson", "euclidean", "manhattan"}) {
    Request r;
    r.metric = &find_metric(name, "signed");
    r.k = 6;
    Answer expected(300, r.k);
    brute_force(r, held, nullptr, expected.view);
    for (const std::int64_t chunk : {0, 64}) {
      r.chunk_size = chunk;
      Answer found(300, r.k);
      cpu::find_neighbours(r, source, nullptr, found.view, nullptr, nullptr);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("latent rows that cannot be are refused") {
  CHECK_THROWS_AS(LatentSource(rule_of(0, 1, 1, 1), 5), std::invalid_argument);
  CHECK_THROWS_AS(LatentSource(rule_of(3, 0, 1, 1), 5), std::invalid_argument);
  CHECK_THROWS_AS(LatentSource(rule_of(3, 257, 1, 1), 5),
                  std::invalid_argument);
  CHECK_THROWS_AS(LatentSource(rule_of(3, 1, -1, 1), 5), std::invalid_argument);
  CHECK_THROWS_AS(LatentSource(rule_of(3, 1, 1, 1), -1), std::invalid_argument);
}
