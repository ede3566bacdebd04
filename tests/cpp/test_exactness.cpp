// The CPU engine against the definition, bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/errors.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

struct Answer {
  Answer(std::int64_t rows, std::int64_t k, bool with_correlation = false)
      : index(static_cast<std::size_t>(rows * k), -7),
        distance(static_cast<std::size_t>(rows * k), -7.0),
        correlation(with_correlation ? static_cast<std::size_t>(rows * k) : 0,
                    -7.0) {
    view.rows = rows;
    view.index = index.data();
    view.distance = distance.data();
    view.correlation = with_correlation ? correlation.data() : nullptr;
    view.missing_index = -1;
    view.missing_value = -1.0;
  }
  std::vector<std::int32_t> index;
  std::vector<double> distance, correlation;
  Neighbours view;
  bool in_range = true;
};

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.empty() ? b.empty()
                   : a.size() == b.size() &&
                         std::memcmp(a.data(), b.data(), 8 * a.size()) == 0;
}
bool same(const Answer& a, const Answer& b) {
  if (!a.in_range || !b.in_range) return a.in_range == b.in_range;
  return a.index == b.index && same(a.distance, b.distance) &&
         same(a.correlation, b.correlation);
}

Answer by_definition(const Request& r, const Matrix& m, const Matrix* q,
                     bool with_correlation) {
  Answer a(q != nullptr ? q->n : m.n, r.k, with_correlation);
  const auto points = m.source();
  const auto queries = q != nullptr ? q->source() : points;
  try {
    brute_force(r, points, q != nullptr ? &queries : nullptr, a.view);
  } catch (const RangeFailure&) {
    a.in_range = false;
  }
  return a;
}

Answer by_engine(const Request& r, const Matrix& m, const Matrix* q,
                 bool with_correlation, Stats* stats = nullptr) {
  Answer a(q != nullptr ? q->n : m.n, r.k, with_correlation);
  const auto points = m.source();
  const auto queries = q != nullptr ? q->source() : points;
  try {
    cpu::find_neighbours(r, points, q != nullptr ? &queries : nullptr, a.view,
                         nullptr, stats);
  } catch (const RangeFailure&) {
    a.in_range = false;
  }
  return a;
}

Request request_for(const MetricEntry& metric, std::int64_t k) {
  Request r;
  r.k = k;
  r.metric = &metric;
  return r;
}

/// The requests for the bits in which the metric has filters.
std::vector<const char*> bits_for(const MetricEntry& metric) {
  return metric.is_unit_dot() || metric.filter == FilterKind::difference ||
                 metric.filter == FilterKind::overlap
             ? std::vector<const char*>{"/16", "/8"}
             : std::vector<const char*>{""};
}

}  // namespace

TEST_CASE("the engine equals the definition on hard matrices") {
  for (const std::int64_t d : {1, 2, 19, 64}) {
    for (const Matrix& hard : hard_cases(110, d)) {
      for (const MetricEntry& metric : all_metrics()) {
        const Matrix m = fit(metric, hard);
        Request r = request_for(metric, 5);
        r.skip = unfit(metric, m);
        const std::int64_t left =
            m.n - static_cast<std::int64_t>(r.skip.size()) - 1;
        if (left < 1) continue;
        r.k = std::min<std::int64_t>(r.k, left);
        const bool r_too = metric.is_unit_dot();
        const Answer expected = by_definition(r, m, nullptr, r_too);
        r.num_threads = 2;
        r.chunk_size = 48;
        CAPTURE(label(metric, m));
        for (const cpu::Kernels* kernels : cpu::available_kernels()) {
          for (const char* const bits : bits_for(metric)) {
            r.instruction_set = std::string(kernels->name) + bits;
            CAPTURE(r.instruction_set);
            CHECK(same(by_engine(r, m, nullptr, r_too), expected));
          }
        }
      }
    }
  }
}

TEST_CASE("hard matrices large enough for seeds give the same") {
  for (const Matrix& hard : hard_cases(250, 8)) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, hard);
      Request r = request_for(metric, 3);
      r.skip = unfit(metric, m);
      const Answer expected = by_definition(r, m, nullptr, false);
      r.chunk_size = 48;
      CAPTURE(label(metric, m));
      for (const char* const bits : bits_for(metric)) {
        r.instruction_set = std::string("auto") + bits;
        CAPTURE(r.instruction_set);
        CHECK(same(by_engine(r, m, nullptr, false), expected));
      }
    }
  }
}

TEST_CASE("any chunk size, thread count and k gives the same") {
  for (const MetricEntry& metric : all_metrics()) {
    const Matrix m = fit(metric, normal("normal", 401, 21, 20));
    for (const std::int64_t k : {1, 20, 130, 400}) {
      Request r = request_for(metric, k);
      const Answer expected = by_definition(r, m, nullptr, false);
      for (const std::int64_t chunk : {0, 1, 96, 200, 100000}) {
        for (const int threads : {1, 2, 5}) {
          r.chunk_size = chunk;
          r.num_threads = threads;
          CAPTURE(label(metric, m));
          CAPTURE(k);
          CAPTURE(chunk);
          CAPTURE(threads);
          CHECK(same(by_engine(r, m, nullptr, false), expected));
        }
      }
    }
  }
}

TEST_CASE("queries, and points left out, give the same") {
  for (const Matrix& hard : hard_cases(100, 11)) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, hard);
      const Matrix q = fit(metric, normal("queries", 53, 11, 30));
      Request r = request_for(metric, 9);
      r.skip = unfit(metric, m);
      for (const std::int64_t extra : {3, 77})
        if (std::find(r.skip.begin(), r.skip.end(), extra) == r.skip.end())
          r.skip.push_back(extra);
      std::sort(r.skip.begin(), r.skip.end());
      r.query_skip = {0, 52};
      r.k = std::min<std::int64_t>(
          r.k, m.n - static_cast<std::int64_t>(r.skip.size()));
      if (r.k < 1) continue;
      const Answer expected = by_definition(r, m, &q, metric.is_unit_dot());
      r.num_threads = 2;
      CAPTURE(label(metric, m));
      for (const char* const bits : bits_for(metric)) {
        r.instruction_set = std::string("auto") + bits;
        CAPTURE(r.instruction_set);
        CHECK(same(by_engine(r, m, &q, metric.is_unit_dot()), expected));
      }
    }
  }
}

TEST_CASE("queries that are points are not their own neighbours") {
  // Rows are equal, so that a point's own place among them matters.
  for (const Matrix& hard :
       {ties(230, 6, 2, 2), normal("normal", 230, 9, 71)}) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, hard);
      Request r = request_for(metric, 4);
      r.skip = unfit(metric, m);
      const Answer whole = by_definition(r, m, nullptr, false);
      std::vector<std::int32_t> few = {229, 3, 3, 0}, many;
      for (std::int32_t i = 0; i < 230; i += 1 + i % 3) many.push_back(229 - i);
      for (const std::vector<std::int32_t>& numbers : {few, many}) {
        const auto points = m.source();
        const RowSubset queries(points, numbers);
        r.query_self = numbers;
        r.query_skip = positions_in(numbers, r.skip);
        CAPTURE(label(metric, m));
        Answer rows(queries.num_points(), r.k);
        for (std::size_t p = 0; p < numbers.size(); ++p)
          for (std::int64_t rank = 0; rank < r.k; ++rank) {
            const std::size_t to =
                static_cast<std::size_t>(rank * queries.num_points()) + p;
            const std::size_t from =
                static_cast<std::size_t>(rank * m.n + numbers[p]);
            rows.index[to] = whole.index[from];
            rows.distance[to] = whole.distance[from];
          }
        Answer defined(queries.num_points(), r.k);
        brute_force(r, points, &queries, defined.view);
        CHECK(same(defined, rows));
        for (const std::int64_t chunk : {0, 48}) {
          r.chunk_size = chunk;
          Answer found(queries.num_points(), r.k);
          cpu::find_neighbours(r, points, &queries, found.view, nullptr,
                               nullptr);
          CHECK(same(found, rows));
        }
        r.chunk_size = 0;
      }
      r.query_self.clear();
      r.query_skip.clear();
    }
  }
}

TEST_CASE("few points and few features") {
  for (const MetricEntry& metric : all_metrics()) {
    for (const std::int64_t n : {2, 3, 17}) {
      for (const std::int64_t d : {1, 2, 8, 9}) {
        const Matrix m = fit(metric, normal("normal", n, d, 40));
        Request r = request_for(metric, 1);
        r.skip = unfit(metric, m);
        if (static_cast<std::int64_t>(r.skip.size()) > n - 2) continue;
        for (r.k = 1; r.k <= n - 1 - static_cast<std::int64_t>(r.skip.size());
             ++r.k) {
          CAPTURE(label(metric, m));
          CAPTURE(r.k);
          CHECK(same(by_engine(r, m, nullptr, false),
                     by_definition(r, m, nullptr, false)));
        }
      }
    }
  }
}

TEST_CASE("the filter drops almost every pair") {
  // This tests the work, not the answer: it reveals a bound that is far too
  // loose.
  for (const MetricEntry& metric : all_metrics()) {
    if (metric.filter == FilterKind::none) continue;
    const Matrix m = fit(metric, normal("normal", 4000, 60, 50));
    Request r = request_for(metric, 10);
    r.num_threads = 2;
    Stats stats;
    by_engine(r, m, nullptr, false, &stats);
    CAPTURE(label(metric, m));
    CHECK(stats.pairs_filtered == doctest::Approx(4000.0 * 4000.0 / 2));
    CHECK(stats.pairs_exact < 100.0 * 4000);
  }
}

TEST_CASE("the user's wish to stop is heard") {
  struct Stop final : Progress {
    bool report(double) override { return false; }
  } stop;
  const Matrix m = normal("normal", 20000, 200, 60);
  Request r = request_for(all_metrics()[0], 10);
  r.num_threads = 2;
  Answer a(m.n, r.k);
  const auto points = m.source();
  CHECK_THROWS_AS(
      cpu::find_neighbours(r, points, nullptr, a.view, &stop, nullptr),
      Interrupted);
}
