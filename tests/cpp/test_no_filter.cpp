// A metric whose entry declares no filter is exact over all pairs, on every
// path of the CPU engine, without further settings. Entries that are in no list
// are rejected.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "answers.hpp"
#include "core/graph/spanning.hpp"
#include "core/rows/scan.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/outside.hpp"
#include "masked_cases.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

/// The same rows, generated whenever they are read.
class Made final : public RowSource {
 public:
  explicit Made(const Matrix& m) : of_(m), source_(of_.source()) {}
  std::int64_t num_points() const override { return of_.n; }
  std::int64_t num_features() const override { return of_.d; }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    source_.read(first, count, out, stride);
  }
  bool made_when_read() const override { return true; }

 private:
  const Matrix& of_;
  MatrixSource<double> source_;
};

std::vector<MetricEntry> without_filters() {
  std::vector<MetricEntry> all = all_metrics();
  for (MetricEntry& metric : all) metric.filter = FilterKind::none;
  return all;
}

Request request_for(const MetricEntry& metric, std::int64_t k) {
  Request r;
  r.k = k;
  r.metric = &metric;
  r.num_threads = 2;
  return r;
}

Answer defined(const Request& r, const RowSource& points,
               const RowSource* queries) {
  Answer a((queries != nullptr ? *queries : points).num_points(), r.k);
  if (!r.metric->is_unit_dot()) a.view.correlation = nullptr;
  brute_force(r, points, queries, a.view);
  return a;
}

void check_neighbours(const Request& r, const RowSource& points,
                      const RowSource* queries, const Answer& expected) {
  Answer found((queries != nullptr ? *queries : points).num_points(), r.k);
  if (!r.metric->is_unit_dot()) found.view.correlation = nullptr;
  Stats stats;
  cpu::find_neighbours(r, points, queries, found.view, nullptr, &stats);
  CHECK(found == expected);
  CHECK(stats.pairs_filtered == 0);
  CHECK(stats.filter == FilterNumbers::none);
}

std::vector<Matrix> matrices() {
  return {normal("normal", 230, 19, 5), ties(230, 6, 3, 2),
          near_ties(230, 11, 1e-12, 4)};
}

}  // namespace

TEST_CASE("without a filter the neighbours are those of the definition") {
  for (const Matrix& any : matrices()) {
    for (const MetricEntry& metric : without_filters()) {
      const Matrix m = fit(metric, any);
      Matrix q = fit(metric, normal("queries", 53, m.d, 30));
      Matrix few = make("few queries", 5, m.d);
      for (std::int64_t i = 0; i < few.n; ++i)
        for (std::int64_t f = 0; f < m.d; ++f) few.at(i, f) = q.at(i, f);
      CAPTURE(label(metric, m));
      Request r = request_for(metric, 7);
      r.skip = unfit(metric, m);
      const auto points = m.source();
      const auto queries = q.source(), few_queries = few.source();
      const Made made(m);
      for (const RowSource* asked : std::initializer_list<const RowSource*>{
               nullptr, &queries, &few_queries}) {
        const Answer expected = defined(r, points, asked);
        for (const std::int64_t chunk : {0, 48}) {
          r.chunk_size = chunk;
          check_neighbours(r, points, asked, expected);
          check_neighbours(r, made, asked, expected);
          const RowRange on_disk(points, 0, m.n, true);
          r.max_memory = 60e3;
          check_neighbours(r, on_disk, asked, expected);
          r.max_memory = 0;
        }
        r.chunk_size = 0;
      }
    }
  }
}

TEST_CASE("without a filter the pairs within are those of the definition") {
  for (const Matrix& any : matrices()) {
    for (const MetricEntry& metric : without_filters()) {
      const Matrix m = fit(metric, any);
      Matrix q = fit(metric, normal("queries", 53, m.d, 30));
      CAPTURE(label(metric, m));
      Request r = request_for(metric, 1);
      r.skip = unfit(metric, m);
      const auto points = m.source();
      const auto queries = q.source();
      const Answer nearest = defined(r, points, nullptr);
      Within within;
      within.limits = {
          *std::max_element(nearest.distance.begin(), nearest.distance.end())};
      for (const RowSource* asked :
           std::initializer_list<const RowSource*>{nullptr, &queries}) {
        Pairs expected, found, of_made;
        brute_within(r, within, points, asked, expected);
        Stats stats;
        cpu::find_within(r, within, points, asked, found, nullptr, &stats);
        cpu::find_within(r, within, Made(m), asked, of_made, nullptr, nullptr);
        CHECK(found == expected);
        CHECK(of_made == expected);
        CHECK(stats.pairs_filtered == 0);
        CHECK(stats.filter == FilterNumbers::none);
      }
    }
  }
}

TEST_CASE("without a filter the spanning tree is that of all pairs") {
  for (const Matrix& any : matrices()) {
    for (const MetricEntry& metric : without_filters()) {
      const Matrix m = fit(metric, any);
      CAPTURE(label(metric, m));
      Request r = request_for(metric, m.n - 1);
      if (!unfit(metric, m).empty()) continue;
      r.chunk_size = 48;
      const auto points = m.source();
      const Answer all = defined(r, points, nullptr);
      std::vector<TreeEdge> edges;
      NearLists lists;
      constexpr std::int64_t kept = 2;
      lists.index = Buffer<std::int32_t>(m.n * kept);
      lists.distance = Buffer<double>(m.n * kept);
      lists.start.push_back(0);
      for (std::int64_t i = 0; i < m.n; ++i) {
        for (std::int64_t rank = 0; rank < r.k; ++rank) {
          const std::size_t at = static_cast<std::size_t>(rank * m.n + i);
          edges.push_back(edge_between(all.distance[at],
                                       static_cast<std::int32_t>(i),
                                       all.index[at] - 1));
          if (rank >= kept) continue;
          lists.index[i * kept + rank] = all.index[at] - 1;
          lists.distance[i * kept + rank] = all.distance[at];
        }
        lists.start.push_back((i + 1) * kept);
      }
      std::sort(edges.begin(), edges.end(), shorter);
      std::vector<TreeEdge> expected;
      Components components(m.n);
      for (const TreeEdge& e : edges)
        if (components.join(e.low, e.high)) expected.push_back(e);
      for (const bool is_made : {false, true}) {
        const Made made(m);
        const RowSource& source =
            is_made ? static_cast<const RowSource&>(made) : points;
        const cpu::ExactPoints exact(r, source, nullptr);
        cpu::OutsideSearch outside(exact, r, nullptr);
        const std::vector<TreeEdge> tree = spanning_tree(lists, outside);
        REQUIRE(tree.size() == expected.size());
        for (std::size_t e = 0; e < tree.size(); ++e) {
          CHECK(tree[e].distance == expected[e].distance);
          CHECK(tree[e].low == expected[e].low);
          CHECK(tree[e].high == expected[e].high);
        }
      }
    }
  }
}

TEST_CASE("without a filter pairs with missing values are all looked at") {
  for (const MetricEntry& metric : without_filters()) {
    if (!metric.is_unit_dot() || metric.row_form == RowForm::biweight_unit ||
        metric.row_form == RowForm::unit)
      continue;
    for (const Matrix& m : masked_cases(120, 14)) {
      CAPTURE(label(metric, m));
      Request r = request_for(metric, 4);
      r.na_pairwise = true;
      r.chunk_size = 48;
      const auto points = m.source();
      Answer expected(m.n, r.k), found(m.n, r.k);
      brute_force(r, points, nullptr, expected.view);
      Stats stats;
      cpu::find_neighbours(r, points, nullptr, found.view, nullptr, &stats);
      CHECK(found == expected);
      CHECK(stats.pairs_filtered == 0);
      Within within;
      within.limits = {0.5};
      Pairs expected_pairs, found_pairs;
      brute_within(r, within, points, nullptr, expected_pairs);
      cpu::find_within(r, within, points, nullptr, found_pairs, nullptr,
                       &stats);
      CHECK(found_pairs == expected_pairs);
      CHECK(stats.pairs_filtered == 0);
    }
  }
}

TEST_CASE("a filter or an accumulation that nobody knows is refused") {
  const Matrix m = normal("normal", 100, 9, 5), q = normal("queries", 40, 9, 6);
  const auto points = m.source();
  const auto queries = q.source();
  MetricEntry no_filter = find_metric("manhattan", "signed");
  no_filter.filter = static_cast<FilterKind>(99);
  MetricEntry no_sum = find_metric("manhattan", "signed");
  no_sum.accumulation = static_cast<Accumulation>(99);
  MetricEntry neither = no_sum;
  neither.filter = FilterKind::none;
  for (const MetricEntry& metric : {no_filter, no_sum, neither}) {
    const Request r = request_for(metric, 3);
    Answer found(m.n, r.k), asked(q.n, r.k);
    found.view.correlation = asked.view.correlation = nullptr;
    CHECK_THROWS_AS(
        cpu::find_neighbours(r, points, nullptr, found.view, nullptr, nullptr),
        std::logic_error);
    CHECK_THROWS_AS(
        cpu::find_neighbours(r, points, &queries, asked.view, nullptr, nullptr),
        std::logic_error);
    const RowRange on_disk(points, 0, m.n, true);
    CHECK_THROWS_AS(
        cpu::find_neighbours(r, on_disk, nullptr, found.view, nullptr, nullptr),
        std::logic_error);
    Within within;
    within.limits = {1.0};
    Pairs pairs;
    CHECK_THROWS_AS(
        cpu::find_within(r, within, points, nullptr, pairs, nullptr, nullptr),
        std::logic_error);
    CHECK_THROWS_AS(
        {
          const cpu::ExactPoints exact(r, points, nullptr);
          cpu::OutsideSearch outside(exact, r, nullptr);
          std::vector<std::int32_t> component(100, 0);
          for (std::size_t i = 50; i < 100; ++i) component[i] = 1;
          std::vector<TreeEdge> best(2);
          outside.lower(component, std::vector<char>(100, 1), best);
        },
        std::logic_error);
  }
}
