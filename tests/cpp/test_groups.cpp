// Neighbours by groups of the points: each list has the nearest of that group
// in the order of all others, bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/base/errors.hpp"
#include "core/contract/groups.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/held.hpp"

using namespace fsknn;
using Lists = PointGroups::Lists;

namespace {

constexpr Lists kAllLists[] = {Lists::each, Lists::others, Lists::together};

Request ask(const std::string& metric, std::int64_t k) {
  Request request;
  request.metric = &find_metric(metric, "signed");
  request.k = k;
  request.num_threads = 2;
  request.chunk_size = 48;
  return request;
}

std::shared_ptr<const PointGroups> groups(
    Lists lists, std::int32_t count, std::vector<std::int32_t> of,
    std::vector<std::int32_t> of_row = {}) {
  return std::make_shared<PointGroups>(lists, count, std::move(of),
                                       std::move(of_row));
}

/// Groups of different sizes, with their points scattered.
std::vector<std::int32_t> scattered(std::int64_t n, std::int32_t count) {
  std::vector<std::int32_t> of;
  for (std::int64_t i = 0; i < n; ++i)
    of.push_back(static_cast<std::int32_t>((i * i + i / 3) % (2 * count)) %
                 count);
  return of;
}

/// From the rows' lists of all other points, by the definition.
Answer expected(const Request& asked, const RowSource& points,
                const std::vector<std::int32_t>& rows) {
  const PointGroups& by = *asked.groups;
  Request all = asked;
  all.groups = nullptr;
  all.skip.clear();
  all.k = points.num_points() - 1;
  Answer order(points.num_points(), all.k);
  brute_force(all, points, nullptr, order.view);
  const auto skipped = [&](std::int32_t i) {
    return std::binary_search(asked.skip.begin(), asked.skip.end(), i);
  };
  Answer answer(static_cast<std::int64_t>(rows.size()),
                asked.k * by.num_lists());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int32_t own = by.of()[static_cast<std::size_t>(rows[r])];
    std::int64_t to = 0;
    const auto put = [&](auto wanted) {
      std::int64_t found = 0;
      for (std::int64_t rank = 0; rank < all.k && found < asked.k; ++rank) {
        const std::int64_t from = order.view.at(AnswerRow{rows[r]}, Rank{rank});
        const std::int32_t j = order.index[static_cast<std::size_t>(from)] - 1;
        if (skipped(j) || !wanted(by.of()[static_cast<std::size_t>(j)]))
          continue;
        const std::int64_t at = answer.view.at(
            AnswerRow::of(static_cast<std::int64_t>(r)), Rank{to + found++});
        answer.view.index[at] = skipped(rows[r]) ? -1 : j + 1;
        answer.view.distance[at] =
            skipped(rows[r]) ? -1.0 : order.view.distance[from];
        answer.view.correlation[at] =
            skipped(rows[r]) ? -1.0 : order.view.correlation[from];
      }
      REQUIRE(found == asked.k);
      to += asked.k;
    };
    if (by.lists() == Lists::together) {
      put([&](std::int32_t g) { return g != own; });
      continue;
    }
    for (std::int32_t group = 0; group < by.count(); ++group)
      if (by.lists() == Lists::each || group != own)
        put([&](std::int32_t g) { return g == group; });
  }
  return answer;
}

std::vector<std::int32_t> all_rows(const RowSource& points) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(points.num_points()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Answer engine(const Request& request, const RowSource& points,
              const RowSource* queries, std::int64_t rows,
              Stats* stats = nullptr) {
  Answer answer(rows, request.k * request.groups->num_lists());
  cpu::find_neighbours(request, points, queries, answer.view, nullptr, stats);
  return answer;
}

}  // namespace

TEST_CASE("lists by groups are those of the whole order") {
  std::vector<Matrix> cases;
  cases.push_back(normal("normal", 203, 9, 31));
  cases.push_back(ties(150, 5, 3, 32));
  cases.push_back(near_ties(120, 11, 1e-12, 33));
  for (const char* metric :
       {"pearson", "euclidean", "manhattan", "canberra", "spearman"})
    for (const Matrix& m : cases)
      for (const Lists lists : kAllLists)
        for (const std::int32_t count : {2, 5, 20}) {
          CAPTURE(metric);
          CAPTURE(m.name);
          CAPTURE(count);
          const auto source = m.source();
          Request request = ask(metric, 4);
          request.groups = groups(lists, count, scattered(m.n, count));
          // There are too few points for lists in each of many groups.
          if (count == 20 && lists != Lists::together) continue;
          // Skips rows for which the metric has no value.
          for (std::int64_t i = 0; i < m.n; ++i) {
            double low = m.values[static_cast<std::size_t>(i)], high = low;
            for (std::int64_t f = 0; f < m.d; ++f) {
              low = std::min(low,
                             m.values[static_cast<std::size_t>(f * m.n + i)]);
              high = std::max(high,
                              m.values[static_cast<std::size_t>(f * m.n + i)]);
            }
            if (low == high || i == 17) request.skip.push_back(i);
          }
          Request valid = request;
          if (m.name == "ties" && request.metric->is_unit_dot()) continue;
          const Answer wanted = expected(valid, source, all_rows(source));
          Stats stats;
          CHECK(engine(request, source, nullptr, m.n, &stats) == wanted);
          Answer brute(m.n, request.k * request.groups->num_lists());
          brute_force(request, source, nullptr, brute.view);
          CHECK(brute == wanted);
        }
}

TEST_CASE("lists by groups are the same in the order of trees") {
  std::vector<Matrix> cases;
  double pruned = 0;
  cases.push_back(ties(300, 5, 3, 41));
  Matrix clusters = normal("clusters", 400, 7, 42);
  for (std::int64_t i = 0; i < clusters.n; ++i)
    for (std::int64_t f = 0; f < clusters.d; ++f)
      clusters.at(i, f) +=
          static_cast<double>(20 * ((i * i + i / 5) % 11 * (f + 3) % 5));
  cases.push_back(clusters);
  for (const std::int32_t count : {2, 4, 20}) {
    // Each group has a place of its own, so that the lists of a point in its
    // own group and in the others have different limits.
    Matrix apart = clusters;
    const std::vector<std::int32_t> of = scattered(apart.n, count);
    for (std::int64_t i = 0; i < apart.n; ++i)
      apart.at(i, 0) += 500.0 * of[static_cast<std::size_t>(i)];
    apart.name = "groups apart";
    std::vector<Matrix> all = cases;
    all.push_back(apart);
    for (const double scale : {1e-310, 1e150}) {
      all.push_back(clusters);
      for (double& x : all.back().values) x *= scale;
    }
    all.push_back(clusters);
    for (double& x : all.back().values) x = 1e9 + 1e-3 * x;
    for (const Matrix& m : all)
      for (const char* metric :
           {"euclidean", "manhattan", "chebyshev", "pearson", "cosine"})
        for (const Lists lists : kAllLists) {
          // There are too few points for lists in each of many groups.
          if (count == 20 && lists != Lists::together) continue;
          // The definition has no value for rows of 0.
          if (m.name == "ties" && find_metric(metric, "signed").is_unit_dot())
            continue;
          INFO(std::string(metric));
          CAPTURE(m.name);
          CAPTURE(static_cast<int>(lists));
          CAPTURE(count);
          const auto source = m.source();
          Request request = ask(metric, 3);
          request.groups = groups(lists, count, of);
          request.skip = {17, 200};
          Request by_tree = request;
          by_tree.instruction_set = "auto/tree";
          request.instruction_set = "auto/scattered";
          Stats stats;
          const Answer found = engine(by_tree, source, nullptr, m.n, &stats);
          CHECK(found == engine(request, source, nullptr, m.n));
          if (m.name == "groups apart" || m.name == "ties")
            CHECK(found == expected(request, source, all_rows(source)));
          pruned += stats.pairs_pruned;
        }
  }
  CHECK(pruned > 0);
}

TEST_CASE("long lists by groups are those of the whole order") {
  for (const char* metric : {"euclidean", "canberra"})
    for (const Matrix& m : {normal("normal", 420, 7, 35), ties(420, 7, 2, 36)})
      for (const Lists lists : kAllLists)
        for (const std::int32_t count : {2, 3}) {
          CAPTURE(metric);
          CAPTURE(m.name);
          CAPTURE(count);
          const auto source = m.source();
          Request request = ask(metric, 70);
          request.groups = groups(lists, count, scattered(m.n, count));
          CHECK(engine(request, source, nullptr, m.n) ==
                expected(request, source, all_rows(source)));
        }
}

TEST_CASE("each two points of a graph in groups meet once") {
  const Matrix m = normal("normal", 480, 12, 34);
  const auto source = m.source();
  Request request = ask("pearson", 3);
  request.groups = groups(Lists::each, 3, scattered(m.n, 3));
  Stats stats;
  engine(request, source, nullptr, m.n, &stats);
  CHECK(stats.pairs_filtered <= 1.02 * 480.0 * 480.0 / 2);
}

TEST_CASE("some rows by groups are those of the whole graph") {
  const Matrix m = ties(160, 12, 4, 35);
  const auto source = m.source();
  const std::vector<std::int32_t> rows = {3, 159, 3, 40, 17, 80};
  for (const Lists lists : kAllLists) {
    const std::vector<std::int32_t> of = scattered(m.n, 3);
    std::vector<std::int32_t> of_row;
    for (const std::int32_t i : rows)
      of_row.push_back(of[static_cast<std::size_t>(i)]);
    Request request = ask("euclidean", 5);
    request.groups = groups(lists, 3, of);
    const Answer wanted = expected(request, source, rows);
    request.groups = groups(lists, 3, of, of_row);
    request.query_self = rows;
    const RowSubset queries(source, rows);
    CHECK(engine(request, source, &queries,
                 static_cast<std::int64_t>(rows.size())) == wanted);
  }
}

TEST_CASE("points that are held are searched by groups") {
  const Matrix m = normal("normal", 100, 7, 36);
  const auto source = m.source();
  Request request = ask("euclidean", 2);
  cpu::HeldPoints held(request, source);
  request.groups = groups(Lists::others, 4, scattered(m.n, 4));
  Answer answer(m.n, 2 * 3);
  held.find_neighbours(request, nullptr, answer.view, nullptr, nullptr);
  CHECK(answer == expected(request, source, all_rows(source)));
  CHECK_THROWS_AS(
      held.find_neighbours(request, &source, answer.view, nullptr, nullptr),
      std::invalid_argument);
}

TEST_CASE("groups of one point, and points in no group") {
  const Matrix m = normal("normal", 20, 6, 37);
  const auto source = m.source();
  std::vector<std::int32_t> of(20);
  std::iota(of.begin(), of.end(), 0);
  Request request = ask("pearson", 1);
  request.groups = groups(Lists::others, 20, of);
  CHECK(engine(request, source, nullptr, m.n) ==
        expected(request, source, all_rows(source)));
  CHECK_THROWS_AS(groups(Lists::each, 2, {0, 1, 2}), std::invalid_argument);
  CHECK_THROWS_AS(groups(Lists::each, 2, {0, -1}), std::invalid_argument);
}
