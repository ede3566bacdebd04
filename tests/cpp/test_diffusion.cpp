// The joined neighbours and the walk of a diffusion map, against their
// definitions on small graphs. test-diffusion-map.R compares the map with dense
// matrices.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include "core/base/errors.hpp"
#include "core/graph/diffusion.hpp"
#include "core/graph/joined.hpp"

using namespace fsknn;

namespace {

struct Near {
  std::int32_t point;
  double distance;
};

NearLists lists_of(const std::vector<std::vector<Near>>& rows) {
  NearLists lists;
  lists.start.push_back(0);
  for (const auto& row : rows)
    lists.start.push_back(lists.start.back() +
                          static_cast<std::int64_t>(row.size()));
  lists.index = Buffer<std::int32_t>(lists.start.back());
  lists.distance = Buffer<double>(lists.start.back());
  std::int64_t at = 0;
  for (const auto& row : rows) {
    for (const Near& near : row) {
      lists.index[at] = near.point;
      lists.distance[at++] = near.distance;
    }
  }
  return lists;
}

double entry(const JoinedGraph& graph, std::int64_t i, std::int64_t j) {
  for (std::int64_t e = graph.row(i); e < graph.row(i + 1); ++e)
    if (graph.index[e] == j) return graph.length[e];
  return -1.0;
}

/// Points on a ring with different gaps, each with the next three.
NearLists ring(std::int32_t n) {
  std::vector<std::vector<Near>> rows;
  for (std::int32_t i = 0; i < n; ++i) {
    std::vector<Near> row;
    for (std::int32_t step = 3; step >= 1; --step)
      row.push_back({(i + step) % n, 0.3 * step + 0.001 * ((i * 7) % 13)});
    rows.push_back(row);
  }
  return lists_of(rows);
}

JoinedGraph squared_ring(std::int32_t n) {
  JoinedGraph graph = join_directions(ring(n), JoinKind::either, 2, nullptr);
  square_lengths(graph, LengthKind::distance, 0, {}, 2);
  return graph;
}

}  // namespace

TEST_CASE("both directions are joined, the shorter one counts") {
  const NearLists lists = lists_of(
      {{{2, 3.0}, {1, 1.0}}, {{0, 0.5}}, {{3, 2.0}}, {{2, 2.0}, {0, 4.0}}, {}});
  const JoinedGraph either =
      join_directions(lists, JoinKind::either, 1, nullptr);
  CHECK(either.start == std::vector<std::int64_t>{0, 3, 4, 6, 8, 8});
  CHECK(either.index[0] == 1);
  CHECK(either.index[1] == 2);
  CHECK(either.index[2] == 3);
  CHECK(entry(either, 0, 1) == 0.5);
  CHECK(entry(either, 1, 0) == 0.5);
  CHECK(entry(either, 2, 0) == 3.0);
  CHECK(entry(either, 0, 3) == 4.0);
  const JoinedGraph both = join_directions(lists, JoinKind::both, 1, nullptr);
  CHECK(both.start == std::vector<std::int64_t>{0, 1, 2, 3, 4, 4});
  CHECK(entry(both, 0, 1) == 0.5);
  CHECK(entry(both, 2, 3) == 2.0);
}

TEST_CASE("a neighbour that is there twice is told of, the first") {
  const NearLists twice =
      lists_of({{{1, 1.0}}, {{2, 1.0}, {0, 1.0}, {2, 1.0}}, {{2, 0.0}}});
  for (int threads : {1, 2}) {
    try {
      join_directions(twice, JoinKind::either, threads, nullptr);
      CHECK(false);
    } catch (const RepeatedNeighbour& e) {
      CHECK(e.point == 1);
    }
  }
}

TEST_CASE("scales are above 0 where points are the same") {
  // 0 and 1 are equal, and 2 differs. 3 has only equal neighbours; 4 has none.
  const NearLists lists = lists_of({{{1, 0.0}, {2, 2.0}},
                                    {{0, 0.0}, {3, 0.0}},
                                    {{1, 3.0}, {0, 2.0}},
                                    {{1, 0.0}},
                                    {}});
  const JoinedGraph graph =
      join_directions(lists, JoinKind::either, 1, nullptr);
  CHECK(local_scales(lists, graph, 1, 1) ==
        std::vector<double>{2.0, 2.0, 2.0, 2.0, 2.0});
  CHECK(local_scales(lists, graph, 2, 1) ==
        std::vector<double>{2.0, 2.0, 3.0, 2.0, 2.0});
  const NearLists same = lists_of({{{1, 0.0}}, {{0, 0.0}}});
  CHECK(local_scales(same, join_directions(same, JoinKind::either, 1, nullptr),
                     1, 1) == std::vector<double>{1.0, 1.0});
}

TEST_CASE("lengths are squared, or 2 (1 - r), and refused beyond a double") {
  const NearLists lists = lists_of({{{1, 3.0}}, {{0, 3.0}}});
  const auto squared = [&](LengthKind kind, const std::vector<double>& scales) {
    JoinedGraph graph = join_directions(lists, JoinKind::either, 1, nullptr);
    square_lengths(graph, kind, 0, scales, 1);
    return entry(graph, 0, 1);
  };
  CHECK(squared(LengthKind::distance, {}) == 9.0);
  CHECK(squared(LengthKind::correlation, {}) == 6.0);
  CHECK(squared(LengthKind::distance, {2.0, 4.5}) == 1.0);
}

TEST_CASE("squares have a unit only where they would leave double's range") {
  CHECK(unit_of_lengths(1e-17, 1e120) == 0);
  CHECK(unit_of_lengths(0x1p-450, 0x1p449) == 0);
  for (const int e : {-1074, -1000, -500, 500, 1000, 1022}) {
    const int unit = unit_of_lengths(std::ldexp(1.0, e), std::ldexp(3.0, e));
    CHECK(std::abs(unit - e) <= 1);
    JoinedGraph graph =
        join_directions(lists_of({{{1, std::ldexp(3.0, e)}}, {}}),
                        JoinKind::either, 1, nullptr);
    square_lengths(graph, LengthKind::distance, e, {}, 1);
    CHECK(entry(graph, 0, 1) == 9.0);
  }
  JoinedGraph far = join_directions(lists_of({{{1, 1e200}}, {}}),
                                    JoinKind::either, 1, nullptr);
  square_lengths(far, LengthKind::distance, 0, {}, 1);
  CHECK(entry(far, 0, 1) == HUGE_VAL);
}

TEST_CASE("sums of the kernel are those of a loop") {
  const JoinedGraph graph = squared_ring(50);
  const std::vector<KernelSum> sums =
      kernel_sums(graph, {0.1, 1e-9, 2.0}, 2, nullptr);
  for (std::size_t at : {0u, 2u}) {
    const double epsilon = at == 0 ? 0.1 : 2.0;
    double kernel = 0.0, moment = 0.0;
    for (std::int64_t e = 0; e < graph.index.size(); ++e) {
      const double u = graph.length[e] / epsilon;
      kernel += std::exp(-u);
      moment += u * std::exp(-u);
    }
    CHECK(sums[at].kernel == doctest::Approx(kernel));
    CHECK(sums[at].moment == doctest::Approx(moment));
  }
  CHECK(sums[1].kernel == 0.0);
  CHECK(sums[1].moment == 0.0);
}

TEST_CASE("the walk's matrix is its definition, in parts") {
  const std::int32_t n = 30;
  const double epsilon = 0.4, alpha = 0.7;
  const JoinedGraph graph = squared_ring(n);
  const Walk walk(squared_ring(n), epsilon, alpha, 1);
  REQUIRE(walk.first_rows() == std::vector<std::int64_t>{0, n});
  const auto weight = [&](std::int32_t i, std::int32_t j) {
    const double u = entry(graph, i, j);
    return u < 0.0 ? 0.0 : std::exp(-u / epsilon);
  };
  std::vector<double> q, d;
  for (std::int32_t i = 0; i < n; ++i) {
    q.push_back(1.0);
    for (std::int32_t j = 0; j < n; ++j)
      q[static_cast<std::size_t>(i)] += weight(i, j);
  }
  const auto normed = [&](std::int32_t i, std::int32_t j) {
    return weight(i, j) / std::pow(q[static_cast<std::size_t>(i)] *
                                       q[static_cast<std::size_t>(j)],
                                   alpha);
  };
  for (std::int32_t i = 0; i < n; ++i) {
    d.push_back(0.0);
    for (std::int32_t j = 0; j < n; ++j)
      d[static_cast<std::size_t>(i)] += normed(i, j);
    CHECK(walk.density()[static_cast<std::size_t>(i)] ==
          doctest::Approx(q[static_cast<std::size_t>(i)]));
    CHECK(walk.degree()[static_cast<std::size_t>(i)] ==
          doctest::Approx(d[static_cast<std::size_t>(i)]));
  }
  const std::vector<double> all = walk.dense(0);
  for (std::size_t a = 0; a < static_cast<std::size_t>(n); ++a) {
    for (std::size_t b = 0; b < static_cast<std::size_t>(n); ++b) {
      const std::int32_t i = walk.order()[a], j = walk.order()[b];
      CHECK(all[a * static_cast<std::size_t>(n) + b] ==
            doctest::Approx(normed(i, j) /
                            std::sqrt(d[static_cast<std::size_t>(i)] *
                                      d[static_cast<std::size_t>(j)])));
    }
  }
  // Two components and an isolated point.
  const Walk parts(
      join_directions(
          lists_of({{{2, 1.0}}, {}, {}, {{4, 1.0}, {5, 1.0}}, {{3, 2.0}}, {}}),
          JoinKind::either, 1, nullptr),
      1.0, 1.0, 1);
  CHECK(parts.order() == std::vector<std::int32_t>{0, 2, 1, 3, 4, 5});
  CHECK(parts.first_rows() == std::vector<std::int64_t>{0, 2, 3, 6});
}

TEST_CASE("products are those of the matrix, and of its polynomials") {
  const std::int32_t n = 9000;  // several blocks
  const Walk walk(squared_ring(n), 0.4, 1.0, 2);
  const std::size_t size = static_cast<std::size_t>(n);
  std::vector<double> constant(size), x(size), out(size), again(size);
  double sum = 0.0;
  for (const double d : walk.degree()) sum += d;
  for (std::size_t row = 0; row < size; ++row) {
    constant[row] = std::sqrt(
        walk.degree()[static_cast<std::size_t>(walk.order()[row])] / sum);
    x[row] = std::sin(static_cast<double>(row * row % 101));
  }
  // The constant vector has the value -2.
  walk.apply(0, {}, constant.data(), out.data(), 2, nullptr);
  double worst = 0.0;
  for (std::size_t row = 0; row < size; ++row)
    worst = std::max(worst, std::fabs(out[row] + 2.0 * constant[row]));
  CHECK(worst < 1e-13);
  double share = 0.0;
  for (std::size_t row = 0; row < size; ++row) share += x[row] * constant[row];
  for (std::size_t row = 0; row < size; ++row) x[row] -= share * constant[row];
  // T_3(y) = 4 y^3 - 3 y with y = (S - c) / e.
  const double low = -1.0, high = 0.5, c = -0.25, e = 0.75;
  const auto step = [&](const std::vector<double>& of) {
    std::vector<double> to(size);
    walk.apply(0, {}, of.data(), to.data(), 1, nullptr);
    for (std::size_t row = 0; row < size; ++row)
      to[row] = (to[row] - c * of[row]) / e;
    return to;
  };
  const std::vector<double> one = step(x), three = step(step(one));
  walk.apply(0, {3, low, high}, x.data(), out.data(), 1, nullptr);
  worst = 0.0;
  for (std::size_t row = 0; row < size; ++row)
    worst = std::max(worst,
                     std::fabs(out[row] - (4.0 * three[row] - 3.0 * one[row])));
  CHECK(worst < 1e-11);
  walk.apply(0, {3, low, high}, x.data(), again.data(), 2, nullptr);
  CHECK(out == again);
}

TEST_CASE("a step of Lanczos' method is that of loops, by any threads") {
  // Enough entries that two threads are started.
  const std::size_t size = 500000;
  std::vector<double> product(size), now(size), before(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double at = static_cast<double>(i);
    product[i] = std::sin(at);
    now[i] = std::cos(0.3 * at) / 500.0;
    before[i] = std::sin(0.7 * at) / 500.0;
  }
  long double own = 0.0L, squared = 0.0L;
  for (std::size_t i = 0; i < size; ++i)
    own += static_cast<long double>(product[i]) * now[i];
  std::vector<double> expected(size);
  for (std::size_t i = 0; i < size; ++i) {
    expected[i] =
        product[i] - static_cast<double>(own) * now[i] - 0.5 * before[i];
    squared += static_cast<long double>(expected[i]) * expected[i];
  }
  const double beside = static_cast<double>(std::sqrt(squared));
  const std::int64_t count = static_cast<std::int64_t>(size);
  std::vector<double> one = product, two = product;
  const LanczosStep step =
      lanczos_step(one.data(), now.data(), before.data(), 0.5, count, 1);
  const LanczosStep again =
      lanczos_step(two.data(), now.data(), before.data(), 0.5, count, 2);
  CHECK(step.own == doctest::Approx(static_cast<double>(own)).epsilon(1e-10));
  CHECK(step.beside == doctest::Approx(beside).epsilon(1e-12));
  double worst = 0.0;
  for (std::size_t i = 0; i < size; ++i)
    worst = std::max(worst, std::fabs(one[i] - expected[i] / beside));
  CHECK(worst < 1e-13);
  CHECK(again.own == step.own);
  CHECK(again.beside == step.beside);
  CHECK(one == two);
}
