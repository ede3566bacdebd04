// Spearman's r is computed from whole numbers: values that are equal in theory
// are equal in bits, for any order of the samples.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/contract/prepare.hpp"
#include "core/contract/weights.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"

using namespace fsknn;

namespace {

/// The samples of m in another order.
Matrix reordered(Matrix m, unsigned seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(m.d));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  Matrix to = make("reordered", m.n, m.d);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      to.at(i, f) = m.at(i, order[static_cast<std::size_t>(f)]);
  return to;
}

/// Twice a row's ranks less d + 1: the number of values below each value, less
/// the number above.
std::vector<std::int64_t> ranks_of(Matrix& m, std::int64_t i) {
  std::vector<std::int64_t> c(static_cast<std::size_t>(m.d), 0);
  for (std::int64_t f = 0; f < m.d; ++f)
    for (std::int64_t g = 0; g < m.d; ++g)
      c[static_cast<std::size_t>(f)] +=
          (m.at(i, g) < m.at(i, f)) - (m.at(i, g) > m.at(i, f));
  return c;
}

double product(const std::vector<std::int64_t>& a,
               const std::vector<std::int64_t>& b) {
  return static_cast<double>(
      std::inner_product(a.begin(), a.end(), b.begin(), std::int64_t{0}));
}

/// Rows that are constant except for one or two samples.
Matrix nearly_constant(std::int64_t n, std::int64_t d) {
  Matrix m = make("nearly constant", n, d);
  for (std::int64_t i = 0; i < n; ++i) {
    m.at(i, i % d) = i % 3 == 0 ? -1.0 : 1.0;
    if (i % 2 == 0) m.at(i, (i / 2 + 1) % d) += 2.0;
  }
  return m;
}

std::vector<Matrix> ranked_cases(std::int64_t n, std::int64_t d) {
  return {normal("normal", n, d, 31), ties(n, d, 2, 32), ties(n, d, 3, 33),
          nearly_constant(n, d)};
}

Request request_of(const char* sign, const Matrix& m) {
  Request r;
  r.metric = &find_metric("spearman", sign);
  r.k = 5;
  r.skip = scan(m.source(), 1).constant;
  return r;
}

template <class Find>
Answer find(Find find_neighbours, const Request& r, const Matrix& m) {
  Answer a(m.n, r.k);
  find_neighbours(r, m.source(), nullptr, a.view);
  return a;
}

const auto engine = [](const Request& r, const RowSource& points,
                       const RowSource* queries, const Neighbours& out) {
  cpu::find_neighbours(r, points, queries, out, nullptr, nullptr);
};

constexpr const char* kSigns[] = {"signed", "absolute", "negative"};

}  // namespace

TEST_CASE("r of ranks is a quotient of whole numbers") {
  for (const std::int64_t d : {2, 3, 6, 20})
    for (Matrix m : ranked_cases(60, d))
      for (const char* const sign : kSigns) {
        const Request r = request_of(sign, m);
        if (m.n - static_cast<std::int64_t>(r.skip.size()) <= r.k) continue;
        const Answer a = find(brute_force, r, m);
        bool same = true;
        for (std::int64_t i = 0; i < m.n; ++i) {
          if (std::binary_search(r.skip.begin(), r.skip.end(), i)) continue;
          const std::vector<std::int64_t> own = ranks_of(m, i);
          struct Neighbour {
            double distance;
            std::int32_t index;
            double r;
          };
          std::vector<Neighbour> all;
          for (std::int64_t j = 0; j < m.n; ++j) {
            if (i == j || std::binary_search(r.skip.begin(), r.skip.end(), j))
              continue;
            const std::vector<std::int64_t> c = ranks_of(m, j);
            const double q =
                product(own, c) / std::sqrt(product(own, own) * product(c, c));
            CHECK(std::fabs(q) <= 1.0);
            all.push_back({r.metric->finish(q, 0.0, 0.0),
                           static_cast<std::int32_t>(j + 1), q});
          }
          std::sort(all.begin(), all.end(),
                    [](const Neighbour& a, const Neighbour& b) {
                      return a.distance != b.distance ? a.distance < b.distance
                                                      : a.index < b.index;
                    });
          for (std::int64_t rank = 0; rank < r.k; ++rank) {
            const std::size_t at = static_cast<std::size_t>(i + rank * m.n);
            const Neighbour& expected = all[static_cast<std::size_t>(rank)];
            same = same && a.index[at] == expected.index &&
                   a.distance[at] == expected.distance &&
                   a.correlation[at] == expected.r;
          }
        }
        CAPTURE(m.name + ", " + sign + ", d = " + std::to_string(d));
        CHECK(same);
      }
}

TEST_CASE("the order of the samples changes no bit, by any instruction set") {
  for (const std::int64_t d : {2, 3, 6, 37})
    for (const Matrix& m : ranked_cases(130, d))
      for (const char* const sign : kSigns) {
        Request r = request_of(sign, m);
        if (m.n - static_cast<std::int64_t>(r.skip.size()) <= r.k) continue;
        r.chunk_size = 48;
        const Answer expected = find(brute_force, r, m);
        const Matrix other = reordered(m, 7);
        for (const cpu::Kernels* kernels : cpu::available_kernels())
          for (const char* const bits : {"", "/8", "/16"}) {
            r.instruction_set = std::string(kernels->name) + bits;
            CAPTURE(m.name + ", " + sign + ", d = " + std::to_string(d) + ", " +
                    r.instruction_set);
            CHECK(find(engine, r, m) == expected);
            CHECK(find(engine, r, other) == expected);
          }
      }
}

TEST_CASE("the same over common samples") {
  for (const std::int64_t d : {6, 37})
    for (Matrix m : {normal("normal", 110, d, 31), ties(110, d, 4, 33)}) {
      std::mt19937 random(5);
      for (double& x : m.values)
        if (random() % 6 == 0) x = std::nan("");
      for (const char* const sign : kSigns) {
        Request r;
        r.metric = &find_metric("spearman", sign);
        r.k = 4;
        r.na_pairwise = true;
        r.min_pairs = 3;
        const Answer expected = find(brute_force, r, m);
        const Matrix other = reordered(m, 7);
        CAPTURE(m.name + ", " + sign + ", d = " + std::to_string(d));
        CHECK(find(engine, r, other) == expected);
        CHECK(find(brute_force, r, other) == expected);
      }
    }
}

TEST_CASE("sums of ranks are exact up to many samples") {
  // Equal rows have r = 1, opposite ones -1. Where two adjacent ranks are
  // swapped, the sum of products is 4 less than that of squares.
  const std::int64_t d = 250001;
  Matrix m = make("long", 4, d);
  for (std::int64_t f = 0; f < d; ++f) {
    const double x = static_cast<double>(f * 7919 % d);
    m.at(0, f) = m.at(1, f) = m.at(3, f) = x;
    m.at(2, f) = -x;
  }
  const auto at = [&](double value) {
    for (std::int64_t f = 0; f < d; ++f)
      if (m.at(3, f) == value) return f;
    return std::int64_t{0};
  };
  const std::int64_t low = at(100.0), high = at(101.0);
  std::swap(m.at(3, low), m.at(3, high));
  Request r = request_of("signed", m);
  r.k = 3;
  const Answer a = find(engine, r, m);
  CHECK(a.index[0] == 2);
  CHECK(a.correlation[0] == 1.0);
  CHECK(a.distance[0] == 0.0);
  const double q = static_cast<double>(d * (d * d - 1) / 3);
  CHECK(a.index[4] == 4);
  CHECK(a.correlation[4] == (q - 4.0) / q);
  CHECK(a.correlation[8] == -1.0);
}

TEST_CASE("ranks with weights or covariates have length 1") {
  const Matrix m = normal("normal", 9, 12, 3);
  Request r = request_of("signed", m);
  CHECK(recipe_of(r, 0).whole_ranks);
  r.weights = std::make_shared<SampleWeights>(std::vector<double>(12, 2.0));
  const RowRecipe recipe = recipe_of(r, 0);
  CHECK(!recipe.whole_ranks);
  const auto source = m.source();
  const PreparedPoints p =
      prepare_points(source, recipe, {}, false, &prepare_row<ScalarLanes>, 1);
  for (std::int64_t i = 0; i < m.n; ++i) {
    CHECK(p.sums[i] == 0.0);
    CHECK(std::fabs(sum_of_squares<ScalarLanes>(p.row(Place{i}), p.padded) -
                    1.0) < 1e-14);
  }
}
