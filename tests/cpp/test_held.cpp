// One set of points that is searched many times: each answer equals the
// definition, and the points are read once.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "answers.hpp"
#include "core/contract/weights.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/held.hpp"
#include "cpu/search/outside.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

/// Counts the rows that are read from it.
class Counted final : public RowSource {
 public:
  explicit Counted(const Matrix& m) : rows_(m.source()) {}
  std::int64_t num_points() const override { return rows_.num_points(); }
  std::int64_t num_features() const override { return rows_.num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    read_ += count;
    rows_.read(first, count, out, stride);
  }
  std::int64_t rows_read() const { return read_; }

 private:
  MatrixSource<double> rows_;
  mutable std::atomic<std::int64_t> read_{0};
};

bool nearest_agree(cpu::HeldPoints& held, const Request& r,
                   const RowSource& points, const RowSource* queries) {
  const std::int64_t rows =
      (queries != nullptr ? *queries : points).num_points();
  Answer expected(rows, r.k), found(rows, r.k);
  brute_force(r, points, queries, expected.view);
  held.find_neighbours(r, queries, found.view, nullptr, nullptr);
  return found == expected;
}

bool within_agree(cpu::HeldPoints& held, const Request& r, double distance,
                  const RowSource& points, const RowSource* queries) {
  Within within;
  within.limits = {distance};
  Pairs expected, found;
  brute_within(r, within, points, queries, expected);
  held.find_within(r, within, queries, found, nullptr, nullptr);
  return found == expected;
}

Matrix times(Matrix m, double by) {
  for (double& x : m.values) x *= by;
  return m;
}

}  // namespace

TEST_CASE("held points answer every search as if it were the only one") {
  for (const Matrix& any : {normal("normal", 150, 13, 5), ties(150, 6, 3, 2),
                            near_ties(150, 9, 1e-12, 4),
                            times(normal("tiny", 150, 7, 9), 1e-250)}) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, any);
      Request r;
      r.metric = &metric;
      r.num_threads = 2;
      r.skip = unfit(metric, m);
      const auto points = m.source();
      cpu::HeldPoints held(r, points);
      CAPTURE(std::string(metric.name) + " " + sign_name(metric.sign) + ", " +
              m.name);
      for (const std::int64_t k : {3, 11, 4}) {
        r.k = k;
        r.chunk_size = k == 11 ? 48 : 0;
        // In the order of keys, which are kept, and then without them.
        r.instruction_set = k == 11 ? "auto/sorted" : "auto";
        CHECK(nearest_agree(held, r, points, nullptr));
        // Queries near the points, beyond the scale, far beyond it, few, and
        // near again.
        const Matrix near = fit(metric, normal("queries", 40, m.d, 30));
        const Matrix few = fit(metric, normal("queries", 4, m.d, 31));
        for (const Matrix& q :
             {times(near, 1e-9), near, times(near, 1.7), times(near, 1e30),
              times(near, 1e250), few, near}) {
          const Matrix asked = fit(metric, q);
          const auto queries = asked.source();
          CHECK(nearest_agree(held, r, points, &queries));
          CHECK(within_agree(held, r, 1.3, points, &queries));
        }
        CHECK(within_agree(held, r, 0.7, points, nullptr));
        CHECK(nearest_agree(held, r, points, nullptr));
      }
    }
  }
}

TEST_CASE("few queries are filtered once the points are packed") {
  const Matrix any = normal("normal", 150, 13, 5);
  const Matrix few_values = normal("queries", 4, 13, 31);
  for (const MetricEntry& metric : metrics_of_numbers()) {
    const Matrix m = fit(metric, any), few = fit(metric, few_values);
    const Matrix far = times(few, 1e9);
    const auto points = m.source(), queries = few.source(),
               far_queries = far.source();
    Request r;
    r.metric = &metric;
    r.k = 6;
    CAPTURE(std::string(metric.name) + " " + sign_name(metric.sign));
    cpu::HeldPoints held(r, points);
    const auto pairs_of = [&](const RowSource& asked) {
      Answer expected(4, r.k), found(4, r.k);
      brute_force(r, points, &asked, expected.view);
      Stats stats;
      held.find_neighbours(r, &asked, found.view, nullptr, &stats);
      CHECK(found == expected);
      return stats.pairs_filtered;
    };
    CHECK(pairs_of(queries) == 0);
    CHECK(nearest_agree(held, r, points, nullptr));
    const double filtered = metric.filter == FilterKind::none ? 0 : 600;
    CHECK(pairs_of(queries) == filtered);
    // The filter of lists stays while others are searched for.
    CHECK(within_agree(held, r, 0.7, points, nullptr));
    const double bytes = held.bytes();
    CHECK(bytes > 8.0 * 150 * 13);
    for (const std::int64_t k : {6, 2}) {
      r.k = k;
      CHECK(pairs_of(queries) == filtered);
      CHECK(within_agree(held, r, 0.7, points, &queries));
      CHECK(pairs_of(queries) == filtered);
      CHECK(held.bytes() == bytes);
    }
    // Few queries beyond the scale do not pack the points again.
    const double of_far = pairs_of(far_queries);
    if (metric.filter == FilterKind::difference ||
        metric.filter == FilterKind::largest) {
      CHECK(of_far == 0);
      CHECK(pairs_of(queries) == filtered);
      CHECK(held.bytes() == bytes);
    }
  }
}

TEST_CASE("queries that round worse than the points widen the slack") {
  // The points are whole numbers; the queries are not.
  Matrix m = make("axes", 600, 6);
  for (std::int64_t i = 0; i < m.n; ++i)
    m.at(i, i % 6) = i % 12 < 6 ? 1.0 : -1.0;
  const Matrix q = normal("queries", 40, 6, 3);
  const auto points = m.source();
  const auto queries = q.source();
  for (const char* name : {"cosine", "euclidean"}) {
    Request r;
    r.metric = &find_metric(name, "signed");
    r.k = 20;
    r.chunk_size = 48;
    cpu::HeldPoints held(r, points);
    CAPTURE(name);
    CHECK(nearest_agree(held, r, points, nullptr));
    CHECK(nearest_agree(held, r, points, &queries));
    CHECK(nearest_agree(held, r, points, nullptr));
  }
}

TEST_CASE("held points are read once") {
  const Matrix m = normal("normal", 300, 20, 1);
  for (const MetricEntry& metric : metrics_of_numbers()) {
    const Matrix fitting = fit(metric, m);
    const Matrix q = times(fit(metric, normal("queries", 60, 20, 2)), 0.5);
    const Counted points(fitting);
    const auto queries = q.source();
    Request r;
    r.metric = &metric;
    r.k = 4;
    cpu::HeldPoints held(r, points);
    CHECK(points.rows_read() == 0);
    Answer graph(m.n, 4), asked(q.n, 4);
    held.find_neighbours(r, nullptr, graph.view, nullptr, nullptr);
    // The points may be read once more to find their largest entry.
    const std::int64_t first = points.rows_read();
    CHECK(first <= 2 * m.n);
    for (int time = 0; time < 3; ++time) {
      held.find_neighbours(r, &queries, asked.view, nullptr, nullptr);
      held.find_neighbours(r, nullptr, graph.view, nullptr, nullptr);
      Within within;
      within.limits = {0.5};
      Pairs pairs;
      held.find_within(r, within, &queries, pairs, nullptr, nullptr);
    }
    CAPTURE(std::string(metric.name));
    CHECK(points.rows_read() == first);
  }
}

TEST_CASE("other weights are other points of the same source") {
  const Matrix m = normal("normal", 200, 12, 1);
  const auto points = m.source();
  const MetricEntry& metric = find_metric("pearson", "signed");
  std::vector<double> weight(12, 1.0);
  std::vector<std::unique_ptr<cpu::HeldPoints>> held;
  std::vector<Request> requests;
  for (int heavy = 0; heavy < 4; ++heavy) {
    weight.assign(12, 1.0);
    weight[static_cast<std::size_t>(heavy)] = 7.0;
    Request r;
    r.metric = &metric;
    r.k = 5;
    r.weights = std::make_shared<SampleWeights>(weight);
    requests.push_back(r);
    held.emplace_back(new cpu::HeldPoints(r, points));
  }
  for (int time = 0; time < 2; ++time)
    for (std::size_t h = 0; h < held.size(); ++h)
      CHECK(nearest_agree(*held[h], requests[h], points, nullptr));
  Answer found(m.n, 5);
  CHECK_THROWS_AS(held[0]->find_neighbours(requests[1], nullptr, found.view,
                                           nullptr, nullptr),
                  std::invalid_argument);
}

TEST_CASE("features are chosen for each search, in any order, any often") {
  const std::vector<std::vector<std::int32_t>> choices = {
      {0, 2, 3, 7, 11},
      {},
      {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
      {4, 4, 4, 1, 0, 1, 4, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 2},
      {}};
  const Matrix any = times(normal("normal", 150, 12, 5), 1e-3);
  for (const MetricEntry& metric : metrics_of_numbers()) {
    Matrix m = fit(metric, any);
    // The largest entry is in a feature that is seldom chosen.
    m.at(7, 6) = 1e6;
    const Matrix q = fit(metric, normal("queries", 40, m.d, 30));
    const auto points = m.source();
    const auto queries = q.source();
    Request r;
    r.metric = &metric;
    r.k = 5;
    r.chunk_size = 48;
    cpu::HeldPoints held(r, points);
    for (const std::vector<std::int32_t>& numbers : choices) {
      held.choose_features(numbers);
      CAPTURE(std::string(metric.name) + " " + sign_name(metric.sign));
      CAPTURE(numbers.size());
      if (numbers.empty()) {
        CHECK(nearest_agree(held, r, points, &queries));
        continue;
      }
      const FeatureSubset some(points, numbers), of_queries(queries, numbers);
      for (int time = 0; time < 2; ++time) {
        CHECK(nearest_agree(held, r, some, nullptr));
        CHECK(nearest_agree(held, r, some, &of_queries));
        CHECK(within_agree(held, r, 0.9, some, nullptr));
        held.choose_features(numbers);
      }
    }
  }
}

TEST_CASE("the same features are read once, and others must be there") {
  const Matrix m = normal("normal", 300, 20, 1);
  const Counted points(m);
  Request r;
  r.metric = &find_metric("pearson", "signed");
  r.k = 4;
  cpu::HeldPoints held(r, points);
  Answer found(m.n, 4);
  for (int time = 0; time < 3; ++time) {
    held.choose_features({1, 5, 6, 7, 9, 5});
    held.find_neighbours(r, nullptr, found.view, nullptr, nullptr);
  }
  CHECK(points.rows_read() == m.n);
  CHECK_THROWS_AS(held.choose_features({3, 20}), std::invalid_argument);
  CHECK_THROWS_AS(held.choose_features({-1}), std::invalid_argument);
}

TEST_CASE("some features of rows are read as they are") {
  const Matrix m = normal("normal", 150, 7, 1);
  const auto all = m.source();
  const std::vector<std::int32_t> numbers = {6, 0, 0, 3};
  const FeatureSubset some(all, numbers);
  REQUIRE(some.num_features() == 4);
  std::vector<double> rows(150 * 5, -1.0);
  some.read(3, 140, rows.data(), 5);
  for (std::int64_t i = 0; i < 140; ++i) {
    const double* const row = rows.data() + i * 5;
    for (std::size_t f = 0; f < 4; ++f)
      CHECK(row[f] ==
            m.values[static_cast<std::size_t>(numbers[f] * m.n + i + 3)]);
    CHECK(row[4] == -1.0);
  }
}

namespace {

/// Rows that are generated when they are read.
class Generated final : public RowSource {
 public:
  Generated(std::int64_t n, std::int64_t d, bool made)
      : n_(n), d_(d), made_(made) {}
  std::int64_t num_points() const override { return n_; }
  std::int64_t num_features() const override { return d_; }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    for (std::int64_t r = 0; r < count; ++r) {
      std::uint64_t state =
          static_cast<std::uint64_t>(first + r + 1) * 0x9e3779b97f4a7c15u;
      for (std::int64_t f = 0; f < d_; ++f) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out[r * stride + f] = static_cast<double>(state >> 40) * 0x1p-24 + 0.01;
      }
    }
  }
  bool made_when_read() const override { return made_; }

 private:
  std::int64_t n_, d_;
  bool made_;
};

}  // namespace

TEST_CASE("rows that are made when read are the same rows on every path") {
  const std::int64_t n = 260, d = 18;
  const Generated held(n, d, false), made(n, d, true);
  const Generated queries(45, d, true), few(6, d, true);
  const RowRange made_on_disk(made, 0, n, true);
  for (const MetricEntry& metric : metrics_of_numbers()) {
    CAPTURE(std::string(metric.name) + " " + sign_name(metric.sign));
    Request r;
    r.metric = &metric;
    r.k = 6;
    r.num_threads = 2;
    r.chunk_size = 48;
    r.max_memory = 90e3;
    for (const RowSource* asked :
         std::initializer_list<const RowSource*>{nullptr, &queries, &few}) {
      const std::int64_t rows = asked != nullptr ? asked->num_points() : n;
      std::vector<double> by_definition(static_cast<std::size_t>(rows * 6), 0),
          correlation(by_definition);
      Answer expected(rows, 6);
      if (metric.is_unit_dot())
        expected.view.correlation = by_definition.data();
      brute_force(r, held, asked, expected.view);
      for (const RowSource* points :
           std::initializer_list<const RowSource*>{&made, &made_on_disk}) {
        Answer found(rows, 6);
        correlation.assign(correlation.size(), 0);
        if (metric.is_unit_dot()) found.view.correlation = correlation.data();
        cpu::find_neighbours(r, *points, asked, found.view, nullptr, nullptr);
        CHECK(found == expected);
        CHECK(correlation == by_definition);
      }
    }
    const cpu::ExactPoints exact(r, held, nullptr);
    const cpu::ExactPoints exact_made(r, made, nullptr);
    CHECK_FALSE(exact_made.points.held());
    std::vector<std::int32_t> members;
    for (std::int32_t i = 0; i < n; i += 2) members.push_back(i);
    for (std::int32_t i = 1; i < 20; ++i) {
      const TreeEdge edge = edge_between(0.5, i, i + 40);
      CHECK(exact.is_near(i, edge, 3, members) ==
            exact_made.is_near(i, edge, 3, members));
      if (metric.is_unit_dot())
        CHECK(exact.correlation(edge) == exact_made.correlation(edge));
    }
  }
}

namespace {

/// The peak memory of the process, as the kernel reports it.
double peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return 1024.0 * std::stod(line.substr(6));
  return -1;
}

/// Resets the peak.
bool forget_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5";
  clear.flush();
  return clear.good();
}

}  // namespace

TEST_CASE("of rows that are made when read the filter's form alone is kept") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // sanitizers hold memory of their own
#endif
  if (!forget_peak() || peak_bytes() < 0) return;  // not available
  const std::int64_t n = 800, d = 8000;
  const double bytes = 8.0 * static_cast<double>(n * d);
  const Generated made(n, d, true);
  const Generated queries(100, d, true);
  const MetricEntry& metric = find_metric("pearson", "signed");
  Request r;
  r.metric = &metric;
  r.k = 3;
  r.num_threads = 1;
  r.chunk_size = 48;
  const auto most_of = [&](auto search) {
    forget_peak();
    const double before = peak_bytes();
    search();
    return peak_bytes() - before;
  };
  Answer graph(n, 3), asked(100, 3);
  CHECK(most_of([&] {
          cpu::find_neighbours(r, made, nullptr, graph.view, nullptr, nullptr);
        }) < 0.45 * bytes);
  CHECK(most_of([&] {
          cpu::find_neighbours(r, made, &queries, asked.view, nullptr, nullptr);
        }) < 0.45 * bytes);
  Within within;
  within.limits = {0.5};
  CHECK(most_of([&] {
          Pairs pairs;
          cpu::find_within(r, within, made, nullptr, pairs, nullptr, nullptr);
        }) < 0.45 * bytes);
  CHECK(most_of([&] {
          const cpu::ExactPoints exact(r, made, nullptr);
          cpu::OutsideSearch outside(exact, r, nullptr);
          std::vector<std::int32_t> component(static_cast<std::size_t>(n), 0);
          component[0] = 1;
          std::vector<char> search(static_cast<std::size_t>(n), 0);
          search[0] = 1;
          std::vector<TreeEdge> best(2);
          outside.lower(component, search, best);
          CHECK(best[1].low == 0);
        }) < 0.7 * bytes);
}
