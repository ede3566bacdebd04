// Tests triples on a device as far as they need none: their tiles, the memory,
// the bounds of sums of halves, and a search with a test scanner.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/contract/triple_sums.hpp"
#include "cuda/plan/triple_plan.hpp"
#include "cuda/triples/triple_bound.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

namespace {

/// Rounds towards 0, to a number of 16 bits.
double half_below(double x) {
  if (x == 0.0) return x;
  const double step = two_to(std::max(exponent_of(x), -14) - 10);
  return std::floor(x / step) * step;
}

}  // namespace

TEST_CASE("each pair of an apex's others stands in one tile") {
  for (const std::int64_t columns :
       {2, 3, 63, 64, 65, 127, 128, 129, 192, 193, 256, 257, 700}) {
    for (const std::int64_t rows : {columns, columns - 1, std::int64_t{1}}) {
      TripleTiles tiles;
      tiles.columns = columns;
      tiles.rows = rows;
      CAPTURE(columns);
      CAPTURE(rows);
      std::vector<int> met(static_cast<std::size_t>(rows * columns), 0);
      for (std::int64_t t = 0; t < tiles.count(); ++t) {
        const TripleTiles::At at = tiles.at(t);
        for (std::int64_t r = at.row * TripleBlock::rows;
             r < std::min(rows, (at.row + 1) * TripleBlock::rows); ++r)
          for (std::int64_t c = at.column * TripleBlock::columns;
               c < std::min(columns, (at.column + 1) * TripleBlock::columns);
               ++c)
            ++met[static_cast<std::size_t>(r * columns + c)];
      }
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          const int count = met[static_cast<std::size_t>(r * columns + c)];
          // If rows are only some of the columns, this test does not know
          // which.
          if (rows < columns || r < c) REQUIRE(count == 1);
          REQUIRE(count <= 1);
        }
    }
  }
}

TEST_CASE("tiles of very many columns are numbered without a gap") {
  TripleTiles tiles;
  tiles.columns = tiles.rows = 100000000;
  for (std::int64_t t = 0; t < tiles.count();
       t += tiles.count() / 1000003 + 1) {
    const TripleTiles::At at = tiles.at(t);
    REQUIRE(at.column * (at.column + 1) + at.row == t);
    REQUIRE(at.row >= 0);
    REQUIRE(at.row < 2 * (at.column + 1));
  }
}

TEST_CASE("each pair of an apex's others stands in one square") {
  constexpr std::int64_t side = TripleBitBlock::columns;
  for (const std::int64_t columns : {2, 255, 256, 257, 512, 700, 1024})
    for (const std::int64_t rows : {columns, columns - 1, std::int64_t{1}}) {
      TripleSquares squares;
      squares.columns = columns;
      squares.rows = rows;
      CAPTURE(columns);
      CAPTURE(rows);
      std::vector<int> met(static_cast<std::size_t>(rows * columns), 0);
      for (std::int64_t t = 0; t < squares.count(); ++t) {
        const TripleTiles::At at = squares.at(t);
        for (std::int64_t r = at.row * side;
             r < std::min(rows, (at.row + 1) * side); ++r)
          for (std::int64_t c = at.column * side;
               c < std::min(columns, (at.column + 1) * side); ++c)
            ++met[static_cast<std::size_t>(r * columns + c)];
      }
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          const int count = met[static_cast<std::size_t>(r * columns + c)];
          if (rows < columns || r < c) REQUIRE(count == 1);
          REQUIRE(count <= 1);
        }
      for (const bool apart : {false, true}) {
        const std::int64_t pool = bit_pool_rows(columns, rows, apart);
        CHECK(pool % side == 0);
        CHECK(pool >= columns + (rows < columns || apart ? rows : 0));
        CHECK(pool <= bit_pool_rows(columns + 1, columns, apart));
      }
    }
  TripleSquares squares;
  squares.columns = squares.rows = 100000000;
  for (std::int64_t t = 0; t < squares.count();
       t += squares.count() / 1000003 + 1) {
    const TripleTiles::At at = squares.at(t);
    REQUIRE(at.column * (at.column + 1) / 2 + at.row == t);
    REQUIRE(at.row >= 0);
    REQUIRE(at.row <= at.column);
  }
}

TEST_CASE("Hopper alone counts bits of triples, where values are small") {
  GpuFacts gpus;
  gpus.capability = gpus.most_capability = 90;
  gpus.shared_bytes = 232448;
  TripleSizes sizes;
  sizes.num_points = 2880;
  sizes.padded = 20000;
  const auto bits_of = [&](const GpuFacts& facts, std::int32_t largest,
                           double bytes) {
    return TripleForms(20000, facts).sizes(sizes, largest, bytes).bits;
  };
  for (const std::int32_t largest : {1, 2, TripleBitBlock::most_bits}) {
    CHECK(bits_of(gpus, largest, 0) == largest);
    CHECK(bits_of(gpus, largest, 1e11) == largest);
  }
  CHECK(bits_of(gpus, -1, 0) == 0);
  CHECK(bits_of(gpus, 0, 0) == 0);
  CHECK(bits_of(gpus, TripleBitBlock::most_bits + 1, 0) == 0);
  const TripleSizes codes = TripleForms(20000, gpus).sizes(sizes, 2, 0);
  CHECK(codes.depth * 16 >= 40000);
  CHECK(codes.depth % TripleBitBlock::depth == 0);
  // With little memory there may be room only for halves.
  CHECK(bits_of(gpus, 2, 1.9 * least_bytes_of_triples(codes)) == 0);
  CHECK(bits_of(gpus, 2, 2.1 * least_bytes_of_triples(codes)) == 2);
  for (const int other : {80, 89, 100, 120}) {
    GpuFacts facts = gpus;
    facts.most_capability = other > 90 ? other : 90;
    facts.capability = other < 90 ? other : 90;
    CHECK(bits_of(facts, 2, 0) == 0);
  }
  CHECK(TripleForms(TripleBitBlock::most_features + 1, gpus).most_bits == 0);
  // The sums of three rows are whole numbers that fit in 32 bits.
  CHECK(3 * TripleBitBlock::most_features * TripleBitBlock::most_bits <
        std::int64_t{1} << 31);
}

TEST_CASE("tables of alleles have a bit for each choice of three alleles") {
  TripleSizes sizes;
  sizes.num_points = 100;
  sizes.padded = 1000;
  const TripleSizes one = sizes_of_tables(sizes, 1000, 1);
  const TripleSizes two = sizes_of_tables(sizes, 1000, 2);
  CHECK(one.bits == 1);
  CHECK(two.bits == 8);
  CHECK(one.depth == depth_of_triple_bits(1000, 1));
  CHECK(two.depth == depth_of_triple_bits(1000, 8));
  // Rows and columns differ with two alleles.
  CHECK(pool_rows_of(one, 99, 99) == 256);
  CHECK(pool_rows_of(two, 99, 99) == 512);
  CHECK(pool_rows_of(one, 99, 20) == 512);
  CHECK(pool_rows_of(two, 300, 20) == 768);
  // The sums of products of all pairs are on the device.
  sizes.bits = 1;
  sizes.depth = one.depth;
  CHECK(bytes_of_points(one) - bytes_of_points(sizes) == 4.0 * 100 * 100);
}

TEST_CASE("a plan fits, or nothing does") {
  for (const std::int64_t n : {3, 500, 24158, 189625})
    for (const std::int64_t d : {1, 295, 20000})
      for (const int bits : {0, 1, 2, 32}) {
        TripleSizes sizes;
        sizes.num_points = n;
        sizes.padded = padded_features(d);
        sizes.bits = bits;
        sizes.depth =
            bits > 0 ? depth_of_triple_bits(d, bits) : depth_of_triples(d);
        CHECK(sizes.depth * (bits > 0 ? 16 : 1) >= d * (bits > 0 ? bits : 1));
        CHECK(sizes.depth % TripleBlock::depth == 0);
        const double least = least_bytes_of_triples(sizes);
        const TriplePlan all = plan_triples(sizes, 0);
        CHECK(all.lanes == 2);
        CHECK(plan_triples(sizes, least * 0.999).lanes == 0);
        for (const double more : {1.0, 1.1, 1.5, 2.0, 5.0, 100.0, 1e6}) {
          const TriplePlan plan = plan_triples(sizes, least * more);
          CAPTURE(n);
          CAPTURE(d);
          CAPTURE(more);
          REQUIRE(plan.lanes >= 1);
          CHECK(bytes_of_points(sizes) +
                    plan.lanes * bytes_of_lane(sizes, plan) <=
                least * more);
          CHECK(plan.apexes >= 1);
          CHECK(plan.pool_rows >= n);
          CHECK(plan.pool_rows >= pool_rows_of(sizes, n - 1, n - 2));
          CHECK(plan.candidates >= pairs_of_tile(sizes));
          CHECK(plan.apexes <= all.apexes);
          CHECK(plan.pool_rows <= all.pool_rows);
        }
        CHECK(tiles_at_once(sizes) >= 1);
        // One block of threads may count all of them, in 32 bits.
        if (bits > 0)
          CHECK(tiles_at_once(sizes) * TripleBitBlock::pairs / 2 <
                std::int64_t{1} << 32);
      }
}

TEST_CASE("sums of 16 bits are within their bounds, whatever the scale") {
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal;
  for (const TripleForm form : {TripleForm::halves, TripleForm::words})
    for (const int power : {-1000, -300, 0, 300, 900})
      for (const double spread : {0.3, 2.0, 8.0}) {
        constexpr int n = 12, d = 67;
        std::vector<std::vector<double>> rows(n);
        double largest = 0.0, mean = 0.0;
        for (auto& row : rows)
          for (int f = 0; f < d; ++f) {
            row.push_back(
                f % 5 == 4
                    ? 0.0
                    : std::ldexp(std::exp(spread * normal(random)), power));
            largest = std::max(largest, row.back());
            mean += row.back() / (n * d);
          }
        const bool words = form == TripleForm::words;
        const PowerOfTwo scale =
            words ? scale_of_words(largest, mean) : scale_of_halves(largest);
        const std::int64_t depth = depth_of_triples(d);
        const TripleSumBound bound(form, depth, scale);
        if (words) {
          CHECK(bound.scaled(largest) >= 0x1p15);
          CHECK(bound.scaled(mean) >= 0x1p7);
          const bool least =
              bound.scaled(largest) < 0x1p16 || bound.scaled(mean) < 0x1p8;
          CHECK(least);
        } else {
          CHECK(bound.scaled(largest) >= 0x1p14);
          CHECK(bound.scaled(largest) < 0x1p15);
        }
        const auto below = [&](double x) {
          return words ? std::min(65535.0, std::floor(bound.scaled(x)))
                       : half_below(bound.scaled(x));
        };
        for (int i = 0; i < n; ++i)
          for (int j = i + 1; j < n; ++j)
            for (int k = j + 1; k < n; ++k) {
              double sum = 0.0, of_numbers = 0.0;
              for (std::size_t f = 0; f < d; ++f) {
                const double a = rows[static_cast<std::size_t>(i)][f];
                const double b = rows[static_cast<std::size_t>(j)][f];
                const double c = rows[static_cast<std::size_t>(k)][f];
                sum += std::max(a, std::max(b, c));
                of_numbers += std::max(below(a), std::max(below(b), below(c)));
              }
              // The error is that of tensor cores, or of a float's rounding.
              const double off =
                  (words ? 0x1p-24 : error_of_triple_sums(depth)) * of_numbers;
              for (const double found : {of_numbers - off, of_numbers + off}) {
                REQUIRE(found <= bound.most_of(sum));
                REQUIRE(found <= static_cast<double>(bound.float_most_of(sum)));
                REQUIRE(bound.low() * found <= bound.scaled(sum));
                REQUIRE(bound.high() * found + bound.lost() >=
                        bound.scaled(sum));
              }
            }
      }
}

TEST_CASE("a row that is nearly empty passes every test") {
  for (const TripleForm form : {TripleForm::halves, TripleForm::words}) {
    const TripleSumBound bound(form, 32, scale_of_halves(1e300));
    CHECK(bound.most_of(0x1p-1030) == HUGE_VAL);
    CHECK(bound.float_most_of(0x1p-1030) == static_cast<float>(HUGE_VAL));
    CHECK(bound.float_most_of(0x1p-1010) > 0.0f);
  }
}

TEST_CASE("words serve where nearly all rows lose little of them") {
  const PowerOfTwo scale = scale_of_words(65535.0, 100.0);
  CHECK(TripleSumBound(TripleForm::words, 10, scale).scaled(1.0) == 2.0);
  // A thousand features lose at most 1,000, a 64th of 64,000.
  std::vector<double> sums(32, 32000.0), cut(32, 0.0);
  const auto serve = [&](std::int64_t num_features) {
    return words_serve(sums.data(), cut.data(), 32, num_features, scale);
  };
  CHECK(serve(1000));
  CHECK(!serve(1001));
  sums[0] = 0.0;
  cut[31] = 1.0;
  CHECK(serve(1000));
  cut[30] = HUGE_VAL;
  CHECK(!serve(1000));
  sums.assign(32, 1e9);
  cut.assign(32, 0.0);
  CHECK(serve(65536));
  CHECK(!serve(65537));
}
