// Inner products: distances of either sign, whose scale is the square of the
// matrix's, and rows of any length in one filter.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/base/errors.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "cuda/filter/half_bound.hpp"
#include "halves.hpp"

using namespace fsknn;

namespace {

const MetricEntry& inner() { return find_metric("inner_product", "signed"); }

Request request_for(std::int64_t k) {
  Request r;
  r.k = k;
  r.metric = &inner();
  r.num_threads = 2;
  return r;
}

enum class Way { definition, engine };

Answer find(Way way, const Request& r, const RowSource& points,
            const RowSource* queries = nullptr, Stats* stats = nullptr) {
  Answer found((queries != nullptr ? *queries : points).num_points(), r.k);
  if (way == Way::definition)
    brute_force(r, points, queries, found.view);
  else
    cpu::find_neighbours(r, points, queries, found.view, nullptr, stats);
  return found;
}

/// Rows whose lengths differ by up to `decades` powers of ten in both
/// directions, at a level where all products stay in the range of a double.
Matrix rows_of_many_lengths(std::int64_t n, std::int64_t d, int decades,
                            double level, unsigned seed) {
  Matrix m = normal("lengths over " + std::to_string(decades) + " decades", n,
                    d, seed);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) *=
          level * std::pow(10.0, static_cast<double>(
                                     (i * 37) % (2 * decades + 1) - decades));
  return m;
}

std::vector<Matrix> wide_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all;
  for (const double level : {0x1p-480, 1.0, 0x1p450})
    for (const int decades : {1, 3, 9, 12}) {
      all.push_back(rows_of_many_lengths(n, d, decades, level, 51));
      // Zero rows, and two equal rows.
      for (std::int64_t f = 0; f < d; ++f) {
        all.back().at(3, f) = all.back().at(n - 1, f) = 0.0;
        all.back().at(5, f) = all.back().at(4, f);
      }
    }
  // The filter treats some of them as zeros.
  all.push_back(rows_of_many_lengths(n, d, 17, 1.0, 61));
  Matrix m = normal("2^480, 1, 2^-480 and 2^-900", n, d, 52);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) *= std::ldexp(1.0, i % 4 == 0   ? 480
                                    : i % 4 == 1 ? -480
                                    : i % 4 == 2 ? -900
                                                 : 0);
  all.push_back(m);
  // Long rows that are nearly all opposite, so that short rows are the nearest.
  m = normal("all apart", n, d, 53);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = (i % 2 == 0 ? 1.0 : -1.0) * (1.0 + 1e-9 * m.at(i, f)) *
                   std::pow(2.0, static_cast<double>(i % 40));
  all.push_back(m);
  // Products that cancel down to the last bits.
  m = normal("cancelling", n, d, 54);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = (f % 2 == i % 2 ? 1.0 : -1.0) * (1.0 + 1e-12 * m.at(i, f));
  all.push_back(m);
  m = normal("entries of one size each a row", n, d, 55);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = f == i % d ? 1e3 : 1e-3 * m.at(i, f);
  all.push_back(m);
  return all;
}

}  // namespace

TEST_CASE("inner products of rows of all lengths are those of the definition") {
  for (const std::int64_t d : {1, 7, 40}) {
    for (const Matrix& m : wide_cases(230, d)) {
      const auto points = m.source();
      for (const std::int64_t k : {1, 6, 229}) {
        Request r = request_for(k);
        CAPTURE(m.name);
        CAPTURE(d);
        CAPTURE(k);
        const Answer expected = find(Way::definition, r, points);
        for (const cpu::Kernels* kernels : cpu::available_kernels()) {
          r.instruction_set = kernels->name;
          for (const std::int64_t chunk : {0, 48}) {
            r.chunk_size = chunk;
            CHECK(find(Way::engine, r, points) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("the filter of inner products drops pairs of rows of any length") {
  for (const int decades : {0, 1, 3}) {
    const Matrix m = rows_of_many_lengths(3000, 60, decades, 1e100, 56);
    Stats stats;
    const Request r = request_for(10);
    const auto points = m.source();
    find(Way::engine, r, points, nullptr, &stats);
    CAPTURE(m.name);
    CHECK(stats.pairs_filtered == doctest::Approx(3000.0 * 3000.0 / 2));
    CHECK(stats.pairs_exact < 150.0 * 3000);
  }
}

TEST_CASE("a power of two multiplies inner products by its square") {
  Matrix m = normal("normal", 120, 9, 57);
  const Request r = request_for(5);
  const Answer expected = find(Way::engine, r, m.source());
  for (const int e : {-400, 1, 487}) {
    Matrix other = m;
    for (double& x : other.values) x = std::ldexp(x, e);
    const auto points = other.source();
    const Answer found = find(Way::engine, r, points);
    CHECK(found.index == expected.index);
    for (std::size_t i = 0; i < found.distance.size(); ++i)
      CHECK(found.distance[i] == std::ldexp(expected.distance[i], 2 * e));
  }
}

TEST_CASE("products beyond a double are an error, tiny ones are 0 and not -0") {
  Matrix m = normal("normal", 60, 5, 58);
  for (const double sign : {1.0, -1.0}) {
    Matrix huge = m;
    for (std::int64_t f = 0; f < m.d; ++f) {
      huge.at(1, f) = 1e200 * (1.0 + static_cast<double>(f));
      huge.at(2, f) = sign * huge.at(1, f);
    }
    const auto points = huge.source();
    for (const std::int64_t k : {1, 59}) {
      const Request r = request_for(k);
      // Opposite rows are the farthest, which does not matter for one
      // neighbour.
      const bool is_there = sign > 0 || k == 59;
      for (const Way way : {Way::definition, Way::engine}) {
        if (is_there)
          CHECK_THROWS_AS(find(way, r, points), RangeFailure);
        else
          CHECK_NOTHROW(find(way, r, points));
      }
    }
    const RowSubset few(points, {1, 5});
    Request r = request_for(59);
    r.query_self = {1, 5};
    CHECK_THROWS_AS(find(Way::engine, r, points, &few), RangeFailure);
  }
  for (const double level : {1e-170, 1e-320}) {
    Matrix tiny = m;
    for (double& x : tiny.values) x *= level;
    const auto points = tiny.source();
    const Request r = request_for(7);
    const Answer found = find(Way::engine, r, points);
    CHECK(found == find(Way::definition, r, points));
    for (const double distance : found.distance) {
      CHECK(distance == 0.0);
      CHECK_FALSE(std::signbit(distance));
    }
  }
  // In between, the result is rounded once.
  Matrix small = normal("at 1e-160", 60, 5, 59);
  for (double& x : small.values) x *= 1e-160;
  const auto points = small.source();
  const Answer found = find(Way::engine, request_for(3), points);
  CHECK(found == find(Way::definition, request_for(3), points));
  for (std::int64_t i = 0; i < small.n; ++i) {
    long double sum = 0.0L;
    for (std::int64_t f = 0; f < small.d; ++f)
      sum -= static_cast<long double>(small.at(i, f)) *
             small.at(found.index[static_cast<std::size_t>(i)] - 1, f);
    CHECK(found.distance[static_cast<std::size_t>(i)] ==
          static_cast<double>(sum));
  }
}

TEST_CASE("limits of unscaled distances hold for either sign") {
  std::mt19937_64 random(60);
  std::uniform_real_distribution<double> mantissa(-2.0, 2.0);
  std::uniform_int_distribution<int> exponent(-1000, 500), power(-1022, 543);
  for (int trial = 0; trial < 200000; ++trial) {
    const int e = trial % 3 == 0 ? 0 : power(random);
    const DistanceRule rule(inner(), e);
    const double f = std::ldexp(mantissa(random), exponent(random));
    // finish() changes the sign.
    const double returned = rule(-f, 0.0, 0.0);
    if (!is_in_range(returned)) continue;
    const bool holds =
        f <= rule.before_scaling(returned) && returned <= rule.after_scaling(f);
    if (holds) continue;
    CAPTURE(f);
    CAPTURE(e);
    CHECK(holds);
  }
}

TEST_CASE("distances below 0 are counted, and tell what would fit") {
  DistanceTally tally;
  for (int i = -500; i < 500; ++i) tally.add(static_cast<double>(i) / 7.0);
  CHECK(tally.total() == 1000);
  for (const int most : {1, 30, 499, 501, 777, 999}) {
    const double fits = tally.reach(most);
    int count = 0;
    for (int i = -500; i < 500; ++i) count += i / 7.0 <= fits;
    CAPTURE(most);
    CHECK(count <= most);
    CHECK(count >= most - 10);
  }
  CHECK(tally.reach(0) < -500.0 / 7.0);
  CHECK(tally.reach(1000) == std::numeric_limits<double>::infinity());
  DistanceTally far;
  far.add(-1e300);
  CHECK(far.reach(0) < -1e300);
  CHECK(far.reach(0) > -1.02e300);
  far.add(-std::numeric_limits<double>::max());
  CHECK(far.reach(0) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("distances of any magnitude are counted, and tell what would fit") {
  for (const double sign : {1.0, -1.0}) {
    for (int e = -1074; e < 1024; ++e) {
      DistanceTally tally;
      std::vector<double> all;
      for (int i = 0; i < 100; ++i) {
        const double distance =
            std::ldexp(sign * (1.0 + i / 100.0), e < -1060 ? e + 14 : e);
        all.push_back(distance);
        tally.add(distance);
      }
      std::sort(all.begin(), all.end());
      for (const std::size_t most : {std::size_t{1}, std::size_t{50}}) {
        const double fits = tally.reach(static_cast<double>(most));
        CAPTURE(all[0]);
        CHECK(fits < all[most]);
        CHECK(std::fabs(fits - all[most]) <= 0.011 * std::fabs(all[most]));
      }
    }
    DistanceTally least;
    least.add(sign * 0x1p-1074);
    least.add(sign * 0x1p-1074);
    CHECK(least.reach(1) < sign * 0x1p-1074);
    CHECK(least.total() == 2);
  }
  DistanceTally zeros;
  zeros.add(0.0);
  zeros.add(-0.0);
  zeros.add(0x1p-1074);
  CHECK(zeros.reach(1) < 0.0);
  CHECK(zeros.reach(2) == 0.0);
}

TEST_CASE("pairs within a distance below 0 are found") {
  for (const Matrix& m : wide_cases(150, 12)) {
    const auto points = m.source();
    const Answer all = find(Way::definition, request_for(149), points);
    std::vector<double> sorted = all.distance;
    std::sort(sorted.begin(), sorted.end());
    for (const std::size_t at : {std::size_t{0}, sorted.size() / 20,
                                 sorted.size() / 3, sorted.size() / 2}) {
      Within within;
      within.limits = {sorted[at]};
      Pairs expected, found;
      const Request r = request_for(1);
      brute_within(r, within, points, nullptr, expected);
      cpu::find_within(r, within, points, nullptr, found, nullptr, nullptr);
      CAPTURE(m.name);
      CAPTURE(sorted[at]);
      CHECK(found == expected);
      CHECK(static_cast<std::size_t>(
                std::count_if(sorted.begin(), sorted.end(), [&](double x) {
                  return x <= sorted[at];
                })) == expected.index.size());
    }
  }
}

namespace {

struct HalfRow {
  std::vector<double> x;
  cuda::RawBounds bounds;
  double factor = 1.0;
};

}  // namespace

TEST_CASE("the filter by halves bounds products from above and from below") {
  // With any error that a tensor core may have within the bound.
  double nearest = HUGE_VAL;
  for (const std::int64_t d : {1, 8, 70}) {
    std::vector<Matrix> all = wide_cases(64, d);
    for (const Matrix& hard : hard_cases(64, d)) all.push_back(hard);
    for (const Matrix& m : all) {
      const auto source = m.source();
      Request r = request_for(1);
      const int exponent = common_exponent(r, source, nullptr, 1);
      const DistanceRule rule(inner(), exponent);
      const PreparedPoints points =
          prepare_points(source, recipe_of(r, exponent), {}, false,
                         &prepare_row<ScalarLanes>, 1);
      std::vector<double> lengths;
      for (std::int64_t i = 0; i < m.n; ++i) {
        double square = 0.0;
        for (std::int64_t f = 0; f < points.padded; ++f)
          square += points.row(Place{i})[f] * points.row(Place{i})[f];
        if (square > 0.0) lengths.push_back(std::sqrt(square));
      }
      if (lengths.empty()) continue;
      std::sort(lengths.begin(), lengths.end());
      cuda::RawRule raw;
      raw.sum = cuda::RawSum::product;
      raw.padded = points.padded;
      raw.depth = (d + cuda::kNormFeatures + 63) / 64 * 64;
      raw.contract = rounding_of_sums(points.padded) * 2 + 0x1p-47;
      raw.gap = 0x1p-1072 / rule.undo().scale.first / rule.undo().scale.second;
      const double scale = std::ldexp(
          1.0, std::max(-cuda::kMostScale,
                        std::min(cuda::kTypicalExponent -
                                     exponent_of(lengths[lengths.size() / 2]),
                                 cuda::kMostScale)));
      std::vector<HalfRow> rows;
      for (std::int64_t i = 0; i < m.n; ++i) {
        HalfRow row;
        cuda::RawTerms terms;
        double largest = 0.0;
        for (std::int64_t f = 0; f < points.padded; ++f)
          largest = std::max(largest, std::fabs(points.row(Place{i})[f]));
        const int e = cuda::factor_exponent(scale, largest);
        row.factor = std::ldexp(1.0, e);
        raw.scale = two_to(exponent_of(scale) - e);
        for (std::int64_t f = 0; f < points.padded; ++f) {
          const double c = points.row(Place{i})[f] * raw.scale;
          row.x.push_back(to_half(c));
          const double lost = c - row.x.back();
          terms.whole = std::fma(c, c, terms.whole);
          terms.halves = std::fma(row.x.back(), row.x.back(), terms.halves);
          terms.rounding = std::fma(lost, lost, terms.rounding);
        }
        row.bounds = cuda::raw_bounds(raw, terms);
        if (row.bounds.wild) std::fill(row.x.begin(), row.x.end(), 0.0);
        rows.push_back(std::move(row));
      }
      const double tau = cuda::sums_error(raw.depth);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < m.n; ++i) {
        for (std::int64_t j = 0; j < m.n; ++j) {
          const HalfRow &a = rows[static_cast<std::size_t>(i)],
                        &b = rows[static_cast<std::size_t>(j)];
          long double sum = 0.0L, size = 0.0L;
          for (std::size_t f = 0; f < a.x.size(); ++f) {
            sum += static_cast<long double>(a.x[f]) * b.x[f];
            size += std::fabs(static_cast<long double>(a.x[f]) * b.x[f]);
          }
          for (int p = 0; p < cuda::kNormParts; ++p)
            for (const HalfRow* row : {&a, &b}) {
              const long double part =
                  static_cast<long double>(row->bounds.norm.part[p]) *
                  cuda::part_unit(p);
              sum -= part;
              size += std::fabs(part);
            }
          const double returned =
              rule(scalar_sum(Accumulation::dot, points.row(Place{i}),
                              points.row(Place{j}), points.padded),
                   0.0, 0.0);
          if (!is_in_range(returned)) continue;
          // In units of the scale's square.
          const long double similarity =
              -static_cast<long double>(returned) / rule.undo().scale.first /
              rule.undo().scale.second * scale * scale;
          const long double factor = a.factor * b.factor;
          const long double low = (sum - tau * size) * factor;
          const long double high = (sum + tau * size) * factor;
          const long double slack = (static_cast<long double>(a.bounds.slack) +
                                     static_cast<long double>(b.bounds.slack)) *
                                    factor;
          // A wild row's factor is infinite: its sums must be above 0.
          if (a.bounds.wild || b.bounds.wild) {
            wrong += !(low > 0.0L) || !std::isinf(slack);
            continue;
          }
          // The rounding of floats is far smaller.
          const long double left = factor * 0x1p-50L;
          wrong += !(similarity <= low + left) ||
                   !(high <= similarity + slack + left) ||
                   !(std::fabs(low) < 0x1p127L) || !(factor >= 0x1p-96L);
          if (slack > 0.0L)
            nearest = std::min(nearest,
                               static_cast<double>((low - similarity) / slack));
        }
      }
      CAPTURE(m.name);
      CAPTURE(d);
      CHECK(wrong == 0);
    }
  }
  // A bound that is far too loose would pass the other checks.
  CHECK(nearest < 0.3);
}
