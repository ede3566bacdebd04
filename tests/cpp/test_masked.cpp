// Points with missing values: the CPU engine against the definition, bit for
// bit, and the definition against long double, pair by pair.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/contract/arithmetic.hpp"
#include "core/contract/masked.hpp"
#include "core/rows/filled.hpp"
#include "core/rows/masked_points.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/missing/masked_pass.hpp"
#include "cpu/search/engine.hpp"
#include "masked_cases.hpp"
#include "masked_searches.hpp"

using namespace fsknn;

namespace {

std::vector<const MetricEntry*> correlations() {
  std::vector<const MetricEntry*> all;
  for (const char* name : {"pearson", "spearman"})
    for (const char* sign : {"signed", "absolute", "negative"})
      all.push_back(&find_metric(name, sign));
  return all;
}

/// Pearson's r over the common values, in long double.
double plain_correlation(const Matrix& m, std::int64_t i, std::int64_t j) {
  std::vector<long double> x, y;
  const auto at = [&](std::int64_t row, std::int64_t f) {
    return m.values[static_cast<std::size_t>(f * m.n + row)];
  };
  for (std::int64_t f = 0; f < m.d; ++f)
    if (has_value(at(i, f)) && has_value(at(j, f))) {
      x.push_back(at(i, f));
      y.push_back(at(j, f));
    }
  const auto deviations = [](std::vector<long double>& v) {
    for (int twice = 0; twice < 2; ++twice) {
      long double mean = 0;
      for (const long double a : v) mean += a / v.size();
      for (long double& a : v) a -= mean;
    }
  };
  if (x.size() < 3 ||
      *std::min_element(x.begin(), x.end()) ==
          *std::max_element(x.begin(), x.end()) ||
      *std::min_element(y.begin(), y.end()) ==
          *std::max_element(y.begin(), y.end()))
    return kNone;
  deviations(x);
  deviations(y);
  long double xx = 0, yy = 0, xy = 0;
  for (std::size_t f = 0; f < x.size(); ++f) {
    xx += x[f] * x[f];
    yy += y[f] * y[f];
    xy += x[f] * y[f];
  }
  return static_cast<double>(xy / (std::sqrt(xx) * std::sqrt(yy)));
}

}  // namespace

TEST_CASE("pairwise r is the correlation of the common values") {
  for (const Matrix& m : masked_cases(40, 21)) {
    INFO(m.name);
    const MaskedRule rule(masked_request(find_metric("pearson", "signed"), 1),
                          m.source(), nullptr);
    const MaskedPoints p = prepare_masked(m.source(), rule, {}, false, 1);
    double worst = 0.0;
    bool defined_alike = true, symmetric = true;
    for (std::int64_t i = 0; i < m.n; ++i)
      for (std::int64_t j = 0; j < m.n; ++j) {
        const double r = masked_correlation<ScalarLanes>(
            p.row(Place{i}), p.row(Place{j}), p.padded, rule.terms());
        const double back = masked_correlation<ScalarLanes>(
            p.row(Place{j}), p.row(Place{i}), p.padded, rule.terms());
        symmetric = symmetric && std::memcmp(&r, &back, sizeof r) == 0;
        const double expected = plain_correlation(m, i, j);
        defined_alike = defined_alike && has_value(r) == has_value(expected);
        if (has_value(r) && has_value(expected))
          worst = std::max(worst, std::fabs(r - expected));
      }
    CHECK(defined_alike);
    CHECK(symmetric);
    CHECK(worst < 1e-13);
  }
}

TEST_CASE("with missing values the engine equals the definition") {
  for (const std::int64_t d : {5, 19, 70})
    for (const Matrix& m : masked_cases(110, d))
      for (const MetricEntry* metric : correlations()) {
        INFO(m.name, " ", metric->name, " ", sign_name(metric->sign), " ", d);
        Request r = masked_request(*metric, 5);
        const Answer expected = find_masked(brute_force, r, m);
        CHECK(find_masked(masked_engine, r, m) == expected);
      }
}

TEST_CASE("with missing values no chunk size, thread count or k changes it") {
  const MetricEntry& metric = find_metric("pearson", "signed");
  for (const Matrix& m :
       {with_holes(normal("few holes", 700, 33, 40), 0.05, 41),
        with_holes(near_ties(700, 33, 1e-12, 42), 0.4, 43)})
    for (const std::int64_t k : {1, 20, 699}) {
      Request r = masked_request(metric, k);
      r.skip = {0, 7, 699};
      const Answer expected = find_masked(brute_force, r, m);
      for (const std::int64_t chunk_size : {0, 1, 100})
        for (const int threads : {1, 3}) {
          r.chunk_size = chunk_size;
          r.num_threads = threads;
          CHECK(find_masked(masked_engine, r, m) == expected);
        }
    }
}

TEST_CASE("with missing values every instruction set gives the same bits") {
  std::vector<Matrix> cases = masked_cases(60, 45);
  cases.push_back(with_holes(normal("holes", 300, 45, 44), 0.2, 45));
  for (const Matrix& m : cases)
    for (const MetricEntry* metric : correlations()) {
      INFO(m.name);
      Request r = masked_request(*metric, 9);
      const Answer expected = find_masked(brute_force, r, m);
      for (const cpu::Kernels* kernels : cpu::available_kernels()) {
        r.instruction_set = kernels->name;
        CHECK(find_masked(masked_engine, r, m) == expected);
      }
    }
}

TEST_CASE("queries with missing values, few and many") {
  const Matrix m = with_holes(normal("points", 400, 24, 46), 0.1, 47);
  for (const std::int64_t rows : {1, 16, 17, 90}) {
    const Matrix q = with_holes(normal("queries", rows, 24, 48), 0.3, 49);
    for (const std::int64_t min_pairs : {2, 3, 12, 24}) {
      Request r =
          masked_request(find_metric("spearman", "absolute"), 7, min_pairs);
      r.skip = {3, 30};
      const Answer expected = find_masked(brute_force, r, m, &q);
      CHECK(find_masked(masked_engine, r, m, &q) == expected);
    }
    // Queries that are points themselves.
    Request r = masked_request(find_metric("pearson", "signed"), 5);
    const Answer whole = find_masked(brute_force, r, m);
    Matrix own = make("own", rows, m.d);
    for (std::int64_t i = 0; i < rows; ++i) {
      r.query_self.push_back(static_cast<std::int32_t>(3 * i));
      for (std::int64_t f = 0; f < m.d; ++f)
        own.at(i, f) = m.values[static_cast<std::size_t>(f * m.n + 3 * i)];
    }
    const Answer found = find_masked(masked_engine, r, m, &own);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t rank = 0; rank < r.k; ++rank)
        CHECK(found.index[static_cast<std::size_t>(rank * rows + i)] ==
              whole.index[static_cast<std::size_t>(rank * m.n + 3 * i)]);
  }
}

TEST_CASE("with missing values pairs within either limit are found") {
  const Matrix m = with_holes(normal("points", 200, 24, 46), 0.1, 47);
  const Matrix q = with_holes(normal("queries", 90, 24, 48), 0.2, 49);
  for (const char* name : {"pearson", "euclidean", "manhattan"}) {
    const Request r = masked_request(find_metric(name, "signed"), 1, 8);
    Within within;
    within.limits = {r.metric->is_unit_dot() ? 0.3 : 2.0};
    within.either = true;
    for (std::int64_t p = 0; p < m.n; ++p)
      within.point_limits.push_back(within.limits[0] *
                                    (p % 3 == 0 ? 2.0 : 1.0));
    Pairs expected, found;
    const auto points = m.source(), queries = q.source();
    brute_within(r, within, points, &queries, expected);
    cpu::find_within(r, within, points, &queries, found, nullptr, nullptr);
    CHECK(found == expected);
  }
}

TEST_CASE("the filter drops most pairs of data with some values missing") {
  const Matrix m = with_holes(normal("holes", 3000, 100, 50), 0.05, 51);
  Request r = masked_request(find_metric("pearson", "signed"), 10);
  Answer found(m.n, r.k);
  Stats stats;
  cpu::find_neighbours(r, m.source(), nullptr, found.view, nullptr, &stats);
  CHECK(stats.filter != FilterNumbers::none);
  CHECK(stats.rows_short == 0);
  CHECK(stats.pairs_exact < 0.1 * stats.pairs_filtered);
}

TEST_CASE("rows that too few pairs are left for are counted") {
  Matrix m = normal("two batches", 20, 8, 52);
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t f = 0; f < 8; ++f)
      if ((i < 5) == (f < 4)) m.at(i, f) = kNone;
  Request r = masked_request(find_metric("pearson", "signed"), 6);
  Answer found(m.n, r.k);
  Stats stats;
  cpu::find_neighbours(r, m.source(), nullptr, found.view, nullptr, &stats);
  CHECK(stats.rows_short == 5);
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t rank = 0; rank < 6; ++rank)
      CHECK((found.index[static_cast<std::size_t>(rank * 20 + i)] == -1) ==
            (i < 5 && rank >= 4));
}

TEST_CASE("a missing value becomes the mean of what its row has") {
  Matrix m = make("rows", 4, 4);
  const double rows[4][4] = {{1.0, kNone, 4.0, 1.0},
                             {0.1, 0.1, kNone, 0.1},
                             {kNone, kNone, kNone, kNone},
                             {1.5e308, 1.7e308, kNone, kNone}};
  for (int i = 0; i < 4; ++i)
    for (int f = 0; f < 4; ++f) m.at(i, f) = rows[i][f];
  const MeanFilled filled(
      std::make_unique<MatrixSource<double>>(m.values.data(), 4, 4));
  double out[16];
  filled.read(0, 4, out, 4);
  CHECK(out[1] == 2.0);
  CHECK(out[6] == 0.1);  // exactly 0.1: the row stays constant
  CHECK(!has_value(out[8]));
  CHECK(out[15] == doctest::Approx(1.6e308));
  const MissingFacts facts = scan_missing(m.source(), 1);
  CHECK(facts.missing == 8);
  CHECK(facts.empty == std::vector<std::int64_t>{2});
  CHECK(facts.known.constant == std::vector<std::int64_t>{1});
  CHECK(facts.known.non_finite == 0);
}

TEST_CASE("a scan's facts are the same by whatever value it fills") {
  const double inf = std::numeric_limits<double>::infinity();
  const double rows[5][4] = {{kNone, inf, 1.0, kNone},
                             {3.0, kNone, -inf, kNone},
                             {0.1, 0.1, kNone, 0.1},
                             {kNone, 0.0, kNone, 0.0},
                             {kNone, kNone, kNone, kNone}};
  Matrix m = make("rows", 5, 4);
  for (int i = 0; i < 5; ++i)
    for (int f = 0; f < 4; ++f) m.at(i, f) = rows[i][f];
  for (const FilledBy by : {FilledBy::mean, FilledBy::first}) {
    const MissingFacts facts =
        scan_missing(m.source(), 1, nullptr, Preparing(), by);
    CHECK(facts.missing == 11);
    CHECK(facts.empty == std::vector<std::int64_t>{4});
    CHECK(facts.known.non_finite == 2);
    CHECK(facts.known.non_finite_rows == std::vector<std::int64_t>{0, 1});
    REQUIRE(facts.known.non_finite_at.size() == 2);
    CHECK(facts.known.non_finite_at[0].point == 0);
    CHECK(facts.known.non_finite_at[0].feature == 1);
    CHECK(facts.known.constant == std::vector<std::int64_t>{2, 3});
    CHECK(facts.known.zero == std::vector<std::int64_t>{3});
    CHECK(facts.known.largest == 0.1);
  }
}

TEST_CASE("the plan knows what points with missing values take") {
  for (const double share : {0.05, 0.5}) {
    const Matrix m = with_holes(normal("holes", 500, 61, 53), share, 54);
    Request r = masked_request(find_metric("pearson", "signed"), 3);
    const cpu::MaskedWork work(r, m.source(), nullptr, nullptr);
    const Plan plan = work.plan();
    const MaskedPoints& points = work.columns;
    const double prepared = 8.0 * static_cast<double>(points.rows.size()) +
                            8.0 * static_cast<double>(points.masks.size()) +
                            4.0 * static_cast<double>(points.known.size());
    CHECK(plan.bytes_prepared == prepared);
    const cpu::MaskedFilterRows rows = cpu::pack_masked(
        points, {cpu::missing_classes(points, nullptr), 3, nullptr},
        plan.padded_points, 1, nullptr);
    const double filter =
        4.0 * static_cast<double>(rows.packed.size() + rows.panel_class.size() +
                                  rows.error.size() + rows.scale.size() +
                                  rows.alpha.size() + rows.w.size() +
                                  rows.z.size()) +
        8.0 * static_cast<double>(rows.sum.size() + rows.square.size() +
                                  rows.list_error.size()) +
        8.0 * static_cast<double>(rows.list_start.size()) +
        4.0 * static_cast<double>(rows.list.size()) +
        static_cast<double>(rows.lists_known.size());
    CHECK(filter <= plan.bytes_filter);
    CHECK(filter > 0.7 * plan.bytes_filter);
  }
}
