// Keys prune only pairs that are far enough, and searches in their order give
// the answers of the definition, bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "answers.hpp"
#include "core/base/errors.hpp"
#include "core/rows/scan.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/keys.hpp"
#include "cpu/search/keys_pay.hpp"
#include "metric_cases.hpp"

using namespace fsknn;
using namespace fsknn::cpu;

namespace {

std::vector<const MetricEntry*> keyed_metrics() {
  std::vector<const MetricEntry*> keyed;
  for (const MetricEntry& metric : all_metrics())
    if (key_kind(metric) != KeyKind::none) keyed.push_back(&metric);
  return keyed;
}

std::vector<int> bits_for(const MetricEntry& metric) {
  return key_kind(metric) == KeyKind::norm ? std::vector<int>{16}
                                           : std::vector<int>{16, 8};
}

/// Multiples of one row, some of them of another magnitude: the keys of a pair
/// are as far from each other as its points.
Matrix one_direction(std::int64_t n, std::int64_t d) {
  Matrix m = make("multiples of one row", n, d);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = static_cast<double>(f % 5 + 1) *
                   static_cast<double>(i % 37) * (i % 11 == 0 ? 1e-9 : 1.0);
  return m;
}

/// Rows with different offsets, some of them equal.
Matrix levels(std::int64_t n, std::int64_t d, double spread, unsigned seed) {
  Matrix m = normal("levels", n, d, seed);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = 20.0 + static_cast<double>(i * 7 % n) / 9.0 +
                   spread * m.at(i % 13 == 0 ? 0 : i, f);
  return m;
}

std::vector<Matrix> key_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all = hard_cases(n, d);
  all.push_back(one_direction(n, d));
  all.push_back(levels(n, d, 0.1, 3));
  for (const double level : {1e6, 1e150, 1e300})
    all.push_back(near_empty(n, d, level, 10));
  return all;
}

struct Prepared {
  PreparedPoints points;
  FilterScale scale;
  int exponent = 0;
};

Prepared prepare(const MetricEntry& metric, const Matrix& m, int bits) {
  Prepared p;
  const auto source = m.source();
  p.exponent = matrix_exponent(metric, scan(source, 1).largest);
  Request request;
  request.metric = &metric;
  p.points =
      prepare_points(source, recipe_of(request, p.exponent), unfit(metric, m),
                     true, kBaselineKernels.prepare_row, 1);
  p.scale = choose_scale(metric, DistanceRule(metric, p.exponent),
                         kBaselineKernels, p.points, nullptr, 1, {1, bits});
  set_slack(p.scale, pack(p.scale, p.points, 1).error, p.points.padded);
  return p;
}

/// Counts the pruned pairs, and all pairs, at thresholds that `of_distance`
/// computes from each pair's distance.
template <class OfDistance>
std::pair<std::int64_t, std::int64_t> told_apart(const MetricEntry& metric,
                                                 const Prepared& p,
                                                 OfDistance of_distance) {
  const DistanceRule rule(metric, p.exponent);
  const Thresholds thresholds(p.scale, metric, rule);
  const KeyKind kind = key_kind(metric);
  const PointKeys keys = keys_of(kind, p.points, 1, nullptr);
  std::int64_t apart_pairs = 0, pairs = 0;
  for (std::int64_t i = 0; i < p.points.size(); ++i)
    for (std::int64_t j = 0; j < p.points.size(); ++j) {
      if (i == j) continue;
      const double distance =
          rule(scalar_sum(metric.accumulation, p.points.row(Place{i}),
                          p.points.row(Place{j}), p.points.padded),
               p.points.sums[i], p.points.sums[j]);
      if (!(distance < HUGE_VAL)) continue;
      const double reach = p.scale.form->reach(
          p.scale, thresholds.keep_up_to(of_distance(distance)));
      apart_pairs += apart(kind, keys[static_cast<std::size_t>(i)],
                           keys[static_cast<std::size_t>(j)], reach);
      ++pairs;
    }
  return {apart_pairs, pairs};
}

}  // namespace

TEST_CASE("keys tell no pair apart at its own distance") {
  for (const std::int64_t d : {1, 2, 13, 64})
    for (const Matrix& hard : key_cases(96, d))
      for (const MetricEntry* metric : keyed_metrics())
        for (const int bits : bits_for(*metric)) {
          const Matrix m = fit(*metric, hard);
          try {
            const Prepared p = prepare(*metric, m, bits);
            if (p.points.size() < 2 || p.scale.form->reach == nullptr) continue;
            CAPTURE(label(*metric, m));
            CAPTURE(bits);
            CHECK(told_apart(*metric, p, [](double x) { return x; }).first ==
                  0);
          } catch (const RangeFailure&) {
            continue;  // 1e300 and 1e-318 in one matrix have no proportion
          }
        }
}

TEST_CASE(
    "where all of a pair's distance is between its keys, a bit less does") {
  const Matrix m = one_direction(37, 24);
  for (const MetricEntry* metric : keyed_metrics())
    for (const int bits : bits_for(*metric)) {
      const Prepared p = prepare(*metric, m, bits);
      const auto found =
          told_apart(*metric, p, [](double x) { return 0.99 * x; });
      CAPTURE(metric->name);
      CAPTURE(bits);
      CHECK(static_cast<double>(found.first) >
            0.9 * static_cast<double>(found.second));
    }
}

TEST_CASE("rows of next to nothing have no key, and rows of 0 one") {
  Matrix m = make("small", 4, 3);
  m.at(0, 1) = 1.0;
  m.at(1, 1) = 1e-300;
  m.at(2, 1) = 1e-310;
  Request request;
  for (const MetricEntry* metric : keyed_metrics()) {
    request.metric = metric;
    const auto source = m.source();
    const PreparedPoints points =
        prepare_points(source, recipe_of(request, 0), unfit(*metric, m), true,
                       kBaselineKernels.prepare_row, 1);
    const PointKeys keys = keys_of(key_kind(*metric), points, 1, nullptr);
    const auto key = [&](std::int64_t i) {
      return keys[static_cast<std::size_t>(
          points.order.place_of(PointId{static_cast<std::int32_t>(i)}).value)];
    };
    CHECK(key(0).low <= 1.0);
    CHECK(key(0).low > 0.999);
    CHECK(key(0).high >= 1.0);
    for (const std::int64_t i : {1, 2}) {
      CHECK(key(i).low == -HUGE_VAL);
      CHECK(key(i).high == HUGE_VAL);
    }
    if (metric->least_overlap != nullptr) continue;  // the row is skipped
    CHECK(key(3).low == 0.0);
    CHECK(key(3).high == 0.0);
  }
}

TEST_CASE("what has no key, or no number, is never apart") {
  const KeyRange one = {1.0, 1.0}, two = {2.0, 2.5}, none;
  for (const KeyKind kind : {KeyKind::sum, KeyKind::share, KeyKind::norm}) {
    CHECK(apart(kind, one, two, 0.3));
    CHECK(apart(kind, two, one, 0.3));
    CHECK_FALSE(apart(kind, one, two, 1.0));
    CHECK_FALSE(apart(kind, one, two, HUGE_VAL));
    for (const double reach : {0.0, 0.3, HUGE_VAL, std::nan("")}) {
      CHECK_FALSE(apart(kind, one, none, reach));
      CHECK_FALSE(apart(kind, none, two, reach));
      CHECK_FALSE(apart(kind, none, none, reach));
    }
    CHECK_FALSE(apart(kind, one, {std::nan(""), std::nan("")}, 0.1));
  }
  // (2 - 1) / (2 + 1)
  CHECK(apart(KeyKind::share, one, two, 0.333));
  CHECK_FALSE(apart(KeyKind::share, one, two, 0.334));
}

TEST_CASE("outward each comes once, the nearest first") {
  for (const std::int64_t count : {1, 2, 5, 8})
    for (std::int64_t start = 0; start < count; ++start) {
      std::vector<int> seen(static_cast<std::size_t>(count), 0);
      std::int64_t last = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = outward(start, count, i);
        REQUIRE(at >= 0);
        REQUIRE(at < count);
        ++seen[static_cast<std::size_t>(at)];
        CHECK(std::abs(at - start) >= last);
        last = std::abs(at - start);
      }
      CHECK(*std::min_element(seen.begin(), seen.end()) == 1);
    }
}

namespace {

/// Compares the nearest of the definition with those of an engine that must use
/// keys.
void check_nearest(Request r, const Matrix& m, const Matrix* q,
                   const std::vector<std::string>& sets) {
  const auto points = m.source();
  const auto queries = q != nullptr ? q->source() : points;
  const std::int64_t rows = q != nullptr ? q->n : m.n;
  Answer defined(rows, r.k);
  defined.view.correlation = nullptr;
  bool in_range = true;
  try {
    brute_force(r, points, q != nullptr ? &queries : nullptr, defined.view);
  } catch (const RangeFailure&) {
    in_range = false;
  }
  for (const std::string& set : sets) {
    r.instruction_set = set + "/sorted";
    Answer found(rows, r.k);
    found.view.correlation = nullptr;
    CAPTURE(r.instruction_set);
    CAPTURE(label(*r.metric, m));
    try {
      cpu::find_neighbours(r, points, q != nullptr ? &queries : nullptr,
                           found.view, nullptr, nullptr);
      CHECK(in_range);
      CHECK(found == defined);
    } catch (const RangeFailure&) {
      CHECK_FALSE(in_range);
    }
  }
}

std::vector<std::string> all_sets(const MetricEntry& metric) {
  std::vector<std::string> sets;
  for (const Kernels* kernels : available_kernels())
    for (const int bits : bits_for(metric))
      sets.push_back(std::string(kernels->name) + (bits == 8 ? "/8" : "/16"));
  return sets;
}

}  // namespace

TEST_CASE("in order of keys the engine equals the definition") {
  for (const std::int64_t d : {1, 8, 19})
    for (const Matrix& hard : key_cases(250, d))
      for (const MetricEntry* metric : keyed_metrics()) {
        const Matrix m = fit(*metric, hard);
        Request r;
        r.metric = metric;
        r.skip = unfit(*metric, m);
        r.k = 5;
        r.num_threads = 2;
        r.chunk_size = 48;
        check_nearest(r, m, nullptr, all_sets(*metric));
      }
}

TEST_CASE(
    "in order of keys any chunk size, thread count and k gives the same") {
  for (const MetricEntry* metric : keyed_metrics()) {
    const Matrix m = levels(401, 21, 0.5, 20);
    for (const std::int64_t k : {1, 20, 130, 400})
      for (const std::int64_t chunk : {0, 1, 96, 200, 100000})
        for (const int threads : {1, 3}) {
          Request r;
          r.metric = metric;
          r.k = k;
          r.chunk_size = chunk;
          r.num_threads = threads;
          check_nearest(r, m, nullptr, {"auto", "auto/8"});
        }
  }
}

TEST_CASE("queries in order of keys, some of them points, give the same") {
  for (const MetricEntry* metric : keyed_metrics()) {
    const Matrix m = fit(*metric, levels(501, 19, 0.2, 21));
    Matrix q = fit(*metric, normal("queries", 170, 19, 22));
    for (std::int64_t i = 0; i < q.n; ++i)
      for (std::int64_t f = 0; f < q.d; ++f)
        q.at(i, f) = i % 3 == 0
                         ? m.values[static_cast<std::size_t>(f * m.n + 2 * i)]
                         : 20.0 * std::fabs(q.at(i, f)) + 0.1 * i;
    for (const bool self : {false, true})
      for (const std::int64_t chunk : {48, 96, 0}) {
        Request r;
        r.metric = metric;
        r.k = 7;
        r.chunk_size = chunk;
        r.num_threads = 2;
        if (self)
          for (std::int64_t i = 0; i < q.n; ++i)
            r.query_self.push_back(i % 3 == 0 ? static_cast<std::int32_t>(2 * i)
                                              : -1);
        check_nearest(r, m, &q, {"auto", "auto/8"});
      }
  }
}

TEST_CASE(
    "pairs within a distance in order of keys, as the definition has them") {
  for (const MetricEntry* metric : keyed_metrics()) {
    for (const Matrix& hard :
         {levels(260, 11, 0.2, 23), one_direction(260, 11), ties(260, 6, 4, 24),
          near_empty(200, 5, 1e10, 9)}) {
      const Matrix m = fit(*metric, hard);
      Request r;
      r.metric = metric;
      r.skip = unfit(*metric, m);
      const auto source = m.source();
      r.k = 6;
      Answer some(m.n, r.k);
      some.view.correlation = nullptr;
      brute_force(r, source, nullptr, some.view);
      Within within;
      for (const std::size_t at : {100u, 701u, 900u}) {
        // A distance that a pair has; then one for each row.
        within.limits = {some.distance[at]};
        if (at == 900u)
          within.limits.assign(some.distance.begin(),
                               some.distance.begin() + m.n);
        Pairs defined, found;
        brute_within(r, within, source, nullptr, defined);
        r.chunk_size = 48;
        r.num_threads = 2;
        r.instruction_set = "auto/sorted";
        CAPTURE(label(*metric, m));
        find_within(r, within, source, nullptr, found, nullptr, nullptr);
        CHECK(found == defined);
        const Matrix q = fit(*metric, levels(60, m.d, 3.0, 25));
        const auto queries = q.source();
        if (within.limits.size() > 1) continue;
        Pairs of_queries, by_definition;
        brute_within(r, within, source, &queries, by_definition);
        find_within(r, within, source, &queries, of_queries, nullptr, nullptr);
        CHECK(of_queries == by_definition);
      }
    }
  }
}

TEST_CASE("keys leave pairs out, where a sample says that they do") {
  for (const MetricEntry* metric : keyed_metrics()) {
    const auto filtered = [&](const Matrix& m, const std::string& set) {
      Request r;
      r.metric = metric;
      r.k = 10;
      r.instruction_set = set;
      const auto source = m.source();
      Answer found(m.n, r.k);
      found.view.correlation = nullptr;
      Stats stats;
      cpu::find_neighbours(r, source, nullptr, found.view, nullptr, &stats);
      return stats.pairs_filtered / (4000.0 * 4000.0 / 2);
    };
    const Matrix apart_rows = levels(4000, 60, 0.1, 26);
    const Matrix alike = fit(*metric, normal("normal", 4000, 60, 27));
    CAPTURE(metric->name);
    CHECK(filtered(apart_rows, "auto") < 0.3);
    CHECK(filtered(apart_rows, "auto/scattered") == doctest::Approx(1.0));
    CHECK(filtered(alike, "auto") == doctest::Approx(1.0));
  }
}
