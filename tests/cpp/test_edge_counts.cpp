// Edges counted over many graphs, against a map of all edges; and the points
// that become constant for some features, against a scan.

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "core/graph/edge_counts.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/subset.hpp"
#include "core/rows/vanishing.hpp"

using namespace fsknn;

namespace {

using Edge = std::pair<std::int32_t, std::int32_t>;

/// k different points for each row. Low numbers repeat often, and some entries
/// are empty.
std::vector<std::int32_t> random_graph(std::int64_t rows, std::int64_t k,
                                       std::int32_t points,
                                       std::mt19937& random) {
  std::vector<std::int32_t> index(static_cast<std::size_t>(rows * k), 0);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::vector<std::int32_t> taken;
    const std::int64_t filled = i % 7 == 0 ? k / 2 : k;
    while (static_cast<std::int64_t>(taken.size()) < filled) {
      const std::int32_t among =
          random() % 3 == 0 ? points : static_cast<std::int32_t>(2 * k);
      const std::int32_t to =
          static_cast<std::int32_t>(random() % static_cast<unsigned>(among));
      if (std::find(taken.begin(), taken.end(), to) == taken.end())
        taken.push_back(to);
    }
    for (std::size_t r = 0; r < taken.size(); ++r)
      index[r * static_cast<std::size_t>(rows) + static_cast<std::size_t>(i)] =
          taken[r] + 1;
  }
  return index;
}

}  // namespace

TEST_CASE("edge counts are those of a map, others from `least` on") {
  constexpr std::int64_t rows = 300, k = 5;
  constexpr std::int32_t points = 2000;
  for (const std::int64_t graphs : {1, 15, 16, 40})
    for (const std::int64_t least :
         {std::int64_t{1}, graphs / 2 + 1, graphs, graphs + 1})
      for (const int threads : {1, 3}) {
        std::mt19937 random(7);
        EdgeCounts counts(rows, k, graphs, least);
        std::map<Edge, std::int64_t> all;
        std::vector<Edge> watched;
        for (std::int32_t i = 0; i < rows; i += 2)
          for (const std::int32_t to : {i % 10, points - 1 - i}) {
            watched.push_back({i, to});
            counts.watch(AnswerRow{i}, PointId{to});
          }
        for (std::int64_t g = 0; g < graphs; ++g) {
          const std::vector<std::int32_t> index =
              random_graph(rows, k, points, random);
          std::copy(index.begin(), index.end(), counts.next());
          counts.take(threads);
          for (std::int64_t e = 0; e < rows * k; ++e)
            if (index[static_cast<std::size_t>(e)] > 0)
              ++all[{static_cast<std::int32_t>(e % rows),
                     index[static_cast<std::size_t>(e)] - 1}];
        }
        counts.finish(threads);
        for (const Edge& e : watched) {
          const auto found = all.find(e);
          CHECK(counts.count(AnswerRow{e.first}, PointId{e.second}) ==
                (found == all.end() ? 0 : found->second));
        }
        std::vector<Edge> expected;
        std::vector<std::int64_t> times;
        for (const auto& [edge, count] : all)
          if (count >= least && std::find(watched.begin(), watched.end(),
                                          edge) == watched.end()) {
            expected.push_back(edge);
            times.push_back(count);
          }
        const EdgeCounts::Others others = counts.others(threads);
        REQUIRE(others.row.size() == expected.size());
        for (std::size_t e = 0; e < expected.size(); ++e) {
          CHECK(Edge{others.row[e], others.to[e]} == expected[e]);
          CHECK(others.count[e] == times[e]);
        }
      }
}

TEST_CASE("some of the graphs tell of all edges that may be in enough") {
  std::mt19937 random(8);
  // 10 of 16 graphs are counted elsewhere: one count may become 11.
  for (const std::int64_t least : {11, 12, 13}) {
    EdgeCounts counts(50, 4, 16, least);
    std::map<Edge, std::int64_t> all;
    for (int g = 0; g < 6; ++g) {
      const std::vector<std::int32_t> index = random_graph(50, 4, 60, random);
      std::copy(index.begin(), index.end(), counts.next());
      counts.take(1);
      for (std::int32_t e = 0; e < 200; ++e)
        if (index[static_cast<std::size_t>(e)] > 0)
          ++all[{e % 50, index[static_cast<std::size_t>(e)] - 1}];
    }
    counts.finish(1);
    const std::int64_t may =
        std::count_if(all.begin(), all.end(),
                      [&](const auto& e) { return e.second + 10 >= least; });
    CHECK(static_cast<std::int64_t>(counts.others(2).row.size()) == may);
  }
}

TEST_CASE("points that vanish by some features are those a scan finds") {
  std::mt19937 random(9);
  Matrix m = ties(300, 12, 2, 5);
  // Rows that seldom vary, a constant row, and rows with many values.
  for (std::int64_t i = 0; i < 100; ++i)
    for (std::int64_t f = 0; f < 12; ++f)
      if (random() % 5 != 0) m.at(i, f) = i % 2 == 0 ? 0.0 : 3.0;
  for (std::int64_t f = 0; f < 12; ++f) m.at(17, f) = 3.0;
  for (std::int64_t i = 200; i < 300; ++i)
    for (std::int64_t f = 0; f < 12; ++f)
      m.at(i, f) = static_cast<double>(random() % 5);
  const MatrixSource<double> source = m.source();
  for (const int threads : {1, 3})
    // The numbers at which the code tests for two values, or sorts rows.
    for (const std::size_t fewest : {3, 4, 5, 6, 9}) {
      const auto by = [&](Vanishing::Rule rule) {
        return Vanishing(source, rule, static_cast<std::int64_t>(fewest),
                         threads, nullptr);
      };
      const Vanishing constant = by(Vanishing::Rule::constant);
      const Vanishing zero = by(Vanishing::Rule::zero);
      const Vanishing none = by(Vanishing::Rule::none);
      for (int time = 0; time < 30; ++time) {
        std::vector<std::int32_t> features(12);
        std::iota(features.begin(), features.end(), 0);
        std::shuffle(features.begin(), features.end(), random);
        features.resize(fewest + random() % 2);
        features.push_back(features[0]);
        const MatrixFacts facts =
            scan(FeatureSubset(source, features), threads);
        CHECK(constant.by(features, threads, nullptr) == facts.constant);
        CHECK(zero.by(features, threads, nullptr) == facts.zero);
        CHECK(none.by(features, threads, nullptr).empty());
      }
    }
}

TEST_CASE("a missing value is like all others") {
  Matrix m = normal("missing", 3, 6, 4);
  const double missing = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t f = 0; f < 4; ++f) m.at(1, f) = f == 2 ? missing : 5.0;
  for (std::int64_t f = 0; f < 6; ++f) m.at(2, f) = missing;
  const MatrixSource<double> source = m.source();
  const Vanishing constant(source, Vanishing::Rule::constant, 3, 1, nullptr);
  CHECK(constant.by({0, 1, 2, 3}, 1, nullptr) ==
        std::vector<std::int64_t>{1, 2});
  CHECK(constant.by({2, 3, 4}, 1, nullptr) == std::vector<std::int64_t>{2});
}
