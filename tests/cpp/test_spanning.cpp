// The spanning tree and its cut on graphs with obvious answers.
// test-graph-mst_knn.R compares the whole with its definition.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include "core/base/errors.hpp"
#include "core/graph/cut.hpp"
#include "core/graph/spanning.hpp"

using namespace fsknn;

namespace {

/// Points on a line.
struct Line : Outside, Ranks {
  explicit Line(std::vector<double> places) : at(std::move(places)) {}

  double distance(std::size_t i, std::size_t j) const {
    return std::fabs(at[i] - at[j]);
  }
  NearLists lists(std::size_t k) const {
    NearLists lists;
    const std::int64_t size = static_cast<std::int64_t>(at.size() * k);
    lists.index = Buffer<std::int32_t>(size);
    lists.distance = Buffer<double>(size);
    lists.start.push_back(0);
    for (std::size_t i = 0; i < at.size(); ++i) {
      std::vector<std::size_t> others;
      for (std::size_t j = 0; j < at.size(); ++j)
        if (j != i) others.push_back(j);
      std::stable_sort(others.begin(), others.end(),
                       [&](std::size_t a, std::size_t b) {
                         return distance(i, a) < distance(i, b);
                       });
      for (std::size_t r = 0; r < k; ++r) {
        const std::int64_t to =
            lists.start.back() + static_cast<std::int64_t>(r);
        lists.index[to] = static_cast<std::int32_t>(others[r]);
        lists.distance[to] = distance(i, others[r]);
      }
      lists.start.push_back(lists.start.back() + static_cast<std::int64_t>(k));
    }
    return lists;
  }
  void lower(const std::vector<std::int32_t>& component,
             const std::vector<char>& search,
             std::vector<TreeEdge>& best) override {
    ++searches;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (!search[i]) continue;
      ++searched;
      for (std::size_t j = 0; j < at.size(); ++j) {
        if (component[i] == component[j]) continue;
        const TreeEdge e =
            edge_between(distance(i, j), static_cast<std::int32_t>(i),
                         static_cast<std::int32_t>(j));
        TreeEdge& b = best[static_cast<std::size_t>(component[i])];
        if (shorter(e, b)) b = e;
      }
    }
  }
  bool is_near(std::int32_t i, const TreeEdge& edge, std::int64_t k,
               const std::vector<std::int32_t>& members) const override {
    ++asked;
    for (const std::int32_t j : members)
      if (j != i && shorter(edge_between(distance(static_cast<std::size_t>(i),
                                                  static_cast<std::size_t>(j)),
                                         i, j),
                            edge))
        --k;
    return k > 0;
  }

  std::vector<double> at;
  int searches = 0, searched = 0;
  mutable int asked = 0;
};

double length(const std::vector<TreeEdge>& tree) {
  double sum = 0.0;
  for (const TreeEdge& e : tree) sum += e.distance;
  return sum;
}

}  // namespace

TEST_CASE("edges have a total order that agrees with the lists'") {
  CHECK(shorter(edge_between(1, 5, 2), edge_between(2, 0, 1)));
  CHECK(shorter(edge_between(1, 5, 2), edge_between(1, 3, 4)));
  CHECK(shorter(edge_between(1, 3, 2), edge_between(1, 2, 4)));
  CHECK_FALSE(shorter(edge_between(1, 2, 4), edge_between(1, 4, 2)));
  CHECK(shorter(edge_between(INFINITY, 1, 2), TreeEdge()));
  for (std::int32_t i = 0; i < 6; ++i)
    for (std::int32_t a = 0; a < 6; ++a)
      for (std::int32_t b = a + 1; b < 6; ++b)
        if (a != i && b != i)
          CHECK(shorter(edge_between(1, i, a), edge_between(1, i, b)));
}

TEST_CASE("lists that tell the tree are not searched beyond") {
  Line line({0, 1, 2.5, 4.5, 7, 10});
  const std::vector<TreeEdge> tree = spanning_tree(line.lists(3), line);
  CHECK(tree.size() == 5);
  CHECK(length(tree) == 10);
  CHECK(line.searches == 0);
}

TEST_CASE("points equally far need no search: ties go to the lower") {
  Line line(std::vector<double>(40, 3.0));
  const std::vector<TreeEdge> tree = spanning_tree(line.lists(2), line);
  REQUIRE(tree.size() == 39);
  for (std::size_t e = 0; e < tree.size(); ++e) {
    CHECK(tree[e].low == 0);
    CHECK(tree[e].high == static_cast<std::int32_t>(e) + 1);
  }
  CHECK(line.searches == 0);
}

TEST_CASE("groups that no list leaves are searched, but for the largest") {
  Line line({0, 1, 2, 3, 4, 100, 101, 102, 103, 300, 301, 302});
  const std::vector<TreeEdge> tree = spanning_tree(line.lists(2), line);
  CHECK(tree.size() == 11);
  CHECK(length(tree) == 302);
  CHECK(tree.back().low == 8);
  CHECK(tree.back().high == 9);
  CHECK(line.searches == 1);
  CHECK(line.searched <= 7);
}

TEST_CASE("an edge of infinite length is a failure") {
  Line line({1e308, 1.1e308, 1.2e308, -1e308, -1.1e308, -1.2e308});
  CHECK_THROWS_AS(spanning_tree(line.lists(2), line), RangeFailure);
}

TEST_CASE("floor(ln n), at least 1, at most what is asked for") {
  CHECK(near_ranks(1, 99) == 1);
  CHECK(near_ranks(7, 99) == 1);
  CHECK(near_ranks(8, 99) == 2);
  CHECK(near_ranks(20, 99) == 2);
  CHECK(near_ranks(21, 99) == 3);
  CHECK(near_ranks(24158, 99) == 10);
  CHECK(near_ranks(24158, 4) == 4);
}

TEST_CASE("a tree is cut where neither end is near the other by rank") {
  // Two dense groups, far from each other.
  Line line({0, 1, 2.1, 3.3, 4.6, 50, 51, 52.1, 53.3, 54.6});
  for (const std::size_t k : {1, 2, 9}) {
    const NearLists lists = line.lists(k);
    const std::vector<TreeEdge> tree = spanning_tree(lists, line);
    const Cut cut = cut_forest(tree, lists, 99, &line, 2, nullptr);
    CHECK(cut.kept == std::vector<char>({1, 1, 1, 1, 1, 1, 1, 1, 0}));
    CHECK(cut.cluster ==
          std::vector<std::int32_t>({0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
  }
}

TEST_CASE("points in no edge are clusters of their own, the last") {
  NearLists lists;
  lists.start.assign(6, 0);
  const std::vector<TreeEdge> forest = {edge_between(1, 1, 4)};
  const Cut cut = cut_forest(forest, lists, 99, nullptr, 1, nullptr);
  CHECK(cut.cluster == std::vector<std::int32_t>({1, 0, 2, 3, 0}));
  CHECK(cut.kept == std::vector<char>({1}));
}
