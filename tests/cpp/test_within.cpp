// All pairs within a distance, against the definition, bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "answers.hpp"
#include "core/contract/metrics.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/search/engine.hpp"
#include "masked_cases.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

/// Those of all pairs, ascending.
std::vector<double> all_distances(const Request& r, const Matrix& m) {
  Within all;
  all.limits = {std::numeric_limits<double>::max()};
  Pairs rows;
  brute_within(r, all, m.source(), nullptr, rows);
  std::sort(rows.distance.begin(), rows.distance.end());
  return rows.distance;
}

/// A distance that some pairs have, to test equality.
double at_share(const std::vector<double>& distances, double share) {
  if (distances.empty()) return 0.0;
  return distances[static_cast<std::size_t>(
      share * static_cast<double>(distances.size() - 1))];
}

void check_same(const Request& asked, const Within& asked_within,
                const RowSource& points, const RowSource* queries) {
  Pairs defined;
  brute_within(asked, asked_within, points, queries, defined);
  Request r = asked;
  Within within = asked_within;
  for (const int threads : {1, 3}) {
    for (const std::int64_t kept : {std::int64_t{0}, std::int64_t{1} << 24}) {
      r.num_threads = threads;
      r.chunk_size = threads == 1 ? 0 : 48;
      within.most_kept = kept;
      Pairs found;
      cpu::find_within(r, within, points, queries, found, nullptr, nullptr);
      CHECK(found == defined);
    }
  }
}

}  // namespace

TEST_CASE("pairs within a distance are those of the definition") {
  std::vector<Matrix> matrices = hard_cases(110, 11);
  matrices.push_back(normal("normal", 301, 20, 80));
  for (const Matrix& hard : matrices) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, hard);
      Request r;
      r.k = 1;
      r.metric = &metric;
      r.skip = unfit(metric, m);
      CAPTURE(metric.name);
      CAPTURE(m.name);
      std::vector<double> distances;
      try {
        distances = all_distances(r, m);
      } catch (const RangeFailure&) {
        continue;
      }
      for (const double share : {0.0, 0.1, 0.7}) {
        Within within;
        within.limits = {at_share(distances, share)};
        for (const bool once : {false, true}) {
          within.once = once;
          check_same(r, within, m.source(), nullptr);
        }
      }
    }
  }
}

TEST_CASE("each row has its own distance, and queries too") {
  for (const MetricEntry& metric : all_metrics()) {
    const Matrix m = fit(metric, ties(130, 9, 3, 5));
    Request r;
    r.k = 1;
    r.metric = &metric;
    r.skip = unfit(metric, m);
    CAPTURE(metric.name);
    Within within;
    const std::vector<double> distances = all_distances(r, m);
    for (int i = 0; i < 130; ++i)
      within.limits.push_back(at_share(distances, 0.01 * (i % 40)));
    const auto points = m.source();
    check_same(r, within, points, nullptr);
    std::vector<std::int32_t> numbers = {5, 5, 129, 0, 64, 63, 62};
    for (std::int32_t i = 20; i < 60; ++i) numbers.push_back(i);
    const RowSubset queries(points, numbers);
    within.limits.resize(numbers.size());
    for (const bool is_point : {false, true}) {
      if (is_point) r.query_self = numbers;
      r.query_skip = positions_in(numbers, r.skip);
      check_same(r, within, points, &queries);
    }
  }
}

TEST_CASE("every pair is within any distance") {
  const Matrix m = normal("normal", 60, 5, 9);
  for (const MetricEntry& metric : all_metrics()) {
    const Matrix fitted = fit(metric, m);
    Request r;
    r.k = 1;
    r.metric = &metric;
    Within within;
    within.limits = {std::numeric_limits<double>::infinity()};
    Pairs rows;
    cpu::find_within(r, within, fitted.source(), nullptr, rows, nullptr,
                     nullptr);
    CHECK(rows.index.size() == 60 * 59);
    check_same(r, within, fitted.source(), nullptr);
  }
}

TEST_CASE("too many pairs are refused with a distance that fits") {
  const Matrix m = normal("normal", 400, 30, 10);
  for (const MetricEntry& metric : all_metrics()) {
    if (metric.is_table()) continue;  // many pairs at the same distance
    const Matrix fitted = fit(metric, m);
    Request r;
    r.k = 1;
    r.metric = &metric;
    CAPTURE(metric.name);
    const double limit = at_share(all_distances(r, fitted), 0.5);
    // Exactly, and from a sample, which contains all 400 points.
    for (const double most : {60000.0, 5000.0}) {
      Within within;
      within.limits = {limit};
      within.most = most;
      Pairs none;
      try {
        cpu::find_within(r, within, fitted.source(), nullptr, none, nullptr,
                         nullptr);
        FAIL("not refused");
      } catch (const TooManyPairs& e) {
        CHECK(e.estimated == (most < 10000));
        CHECK(e.pairs == doctest::Approx(400 * 399 / 2).epsilon(0.01));
        CHECK(e.most == most);
        CHECK(e.fits < limit);
        within.limits = {e.fits};
        Pairs rows;
        cpu::find_within(r, within, fitted.source(), nullptr, rows, nullptr,
                         nullptr);
        CHECK(rows.index.size() <= most);
        CHECK(rows.index.size() > 0.5 * most);
      }
    }
  }
}

TEST_CASE("pairs within a distance, over the samples that both have") {
  for (const std::int64_t d : {5, 33})
    for (const Matrix& m : masked_cases(90, d))
      for (const char* name : {"pearson", "spearman"})
        for (const char* sign : {"signed", "absolute", "negative"}) {
          INFO(m.name, " ", name, " ", sign, " ", d);
          Request r;
          r.metric = &find_metric(name, sign);
          r.na_pairwise = true;
          r.min_pairs = 2 + m.name.size() % 3;
          r.skip = {4, 50};
          const std::vector<double> distances = all_distances(r, m);
          for (const double share : {0.03, 0.4}) {
            Within within;
            within.limits = {at_share(distances, share)};
            check_same(r, within, m.source(), nullptr);
            within.once = true;
            check_same(r, within, m.source(), nullptr);
          }
        }
}

TEST_CASE("over common samples each point may have its own distance") {
  const Matrix m = with_holes(normal("points", 300, 20, 60), 0.2, 61);
  const Matrix q = with_holes(normal("queries", 70, 20, 62), 0.1, 63);
  Request r;
  r.metric = &find_metric("pearson", "absolute");
  r.na_pairwise = true;
  Within within;
  for (std::int64_t i = 0; i < m.n; ++i)
    within.limits.push_back(i % 9 == 0 ? 1e300
                                       : static_cast<double>(i) / 500.0);
  check_same(r, within, m.source(), nullptr);
  within.limits.resize(static_cast<std::size_t>(q.n));
  r.query_skip = {0, 69};
  const auto queries = q.source();
  check_same(r, within, m.source(), &queries);
  r.query_self.assign(static_cast<std::size_t>(q.n), -1);
  r.query_self[30] = 2;
  check_same(r, within, m.source(), &queries);
}

TEST_CASE("too many pairs over common samples are refused from a sample") {
  const Matrix m = with_holes(normal("points", 400, 20, 64), 0.2, 65);
  Request r;
  r.metric = &find_metric("pearson", "signed");
  r.na_pairwise = true;
  Within within;
  within.limits = {2.0};
  within.most = 1000;
  Pairs rows;
  try {
    cpu::find_within(r, within, m.source(), nullptr, rows, nullptr, nullptr);
    FAIL("nothing was thrown");
  } catch (const TooManyPairs& e) {
    CHECK(e.estimated);
    CHECK(e.pairs == doctest::Approx(400 * 399).epsilon(0.01));
    within.limits = {e.fits};
    cpu::find_within(r, within, m.source(), nullptr, rows, nullptr, nullptr);
    CHECK(rows.index.size() <= 1000);
    CHECK(rows.index.size() > 300);
  }
}
