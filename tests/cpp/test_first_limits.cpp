// First limits that are only likely: rows with limits that were too low are
// compared with all points again. "/hasty" makes this happen for every other
// row.

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "answers.hpp"
#include "cases.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"

using namespace fsknn;

namespace {

constexpr std::int64_t kPoints = 500, kFeatures = 11;

Request request_of(const std::string& metric, std::int64_t k) {
  Request r;
  r.metric = &find_metric(metric, "signed");
  r.k = k;
  r.chunk_size = 48;
  return r;
}

std::unique_ptr<Answer> blank(const Request& r, std::int64_t rows) {
  std::unique_ptr<Answer> a(new Answer(rows, r.k));
  if (!r.metric->is_unit_dot()) a->view.correlation = nullptr;
  return a;
}

/// In bytes with a unit of 1, two rows differ in only one feature, so that they
/// seem far nearer than they are. Their rounding errors do not cancel.
Matrix no_cancelling(double level, unsigned seed) {
  constexpr std::int64_t d = 48;
  Matrix m = make("roundings that do not cancel", kPoints, d);
  std::mt19937 random(seed);
  const double off[] = {0.0, 0.4999, 0.0, -0.4999};
  for (std::int64_t i = 0; i < kPoints; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      // The median of each column is 0, and one column has the whole range.
      m.at(i, f) = level + (f == 0 ? 254.0 : 1.0) * off[random() % 4];
  return m;
}

/// Returns the number of recomputed rows, over all threads and instruction
/// sets.
double check_search(Request r, const Matrix& m, const Matrix* q,
                    const std::string& order) {
  CAPTURE(r.metric->name);
  CAPTURE(m.name);
  CAPTURE(r.k);
  const auto points = m.source();
  const auto asking = q != nullptr ? q->source() : points;
  const RowSource* const queries = q != nullptr ? &asking : nullptr;
  const auto right = blank(r, asking.num_points());
  brute_force(r, points, queries, right->view);
  double redone = 0.0;
  for (const cpu::Kernels* kernels : cpu::available_kernels()) {
    for (const int threads : {1, 2}) {
      CAPTURE(kernels->name);
      CAPTURE(threads);
      r.instruction_set = kernels->name + order;
      r.num_threads = threads;
      const auto found = blank(r, asking.num_points());
      Stats stats;
      cpu::find_neighbours(r, points, queries, found->view, nullptr, &stats);
      CHECK(*found == *right);
      redone += stats.rows_recomputed;
    }
  }
  return redone;
}

}  // namespace

TEST_CASE("rows whose first limit was too low have the right neighbours") {
  for (const char* metric : {"pearson", "inner_product", "manhattan"}) {
    const Matrix points = normal("normal", kPoints, kFeatures, 5);
    const Matrix equal = ties(kPoints, kFeatures, 3, 6);
    for (const std::int64_t k : {20, 70, 200}) {
      const Request r = request_of(metric, k);
      CHECK(check_search(r, points, nullptr, "/hasty") > 0.0);
      check_search(r, equal, nullptr, "/hasty");
    }
    CHECK(check_search(request_of(metric, 20), points, &equal, "/hasty") > 0.0);
  }
}

TEST_CASE("the hard cases keep their bits with first limits that are too low") {
  for (const Matrix& hard : hard_cases(kPoints, kFeatures)) {
    check_search(request_of("pearson", 30), hard, nullptr, "/hasty");
    check_search(request_of("cosine", 30), hard, nullptr, "/8/hasty");
    check_search(request_of("manhattan", 30), hard, nullptr, "/8/hasty");
  }
}

TEST_CASE("a query is not its own neighbour where its limit was too low") {
  Request r = request_of("pearson", 40);
  const Matrix points = normal("normal", kPoints, kFeatures, 9);
  for (std::int32_t i = 0; i < kPoints; ++i) r.query_self.push_back(i);
  CHECK(check_search(r, points, &points, "/hasty") > 0.0);
}

TEST_CASE("estimates that are too low for most rows are found out") {
  const Matrix points = no_cancelling(200.0, 13);
  const Matrix asking = no_cancelling(200.0, 14);
  const double most =
      1.6 * static_cast<double>(cpu::available_kernels().size()) * kPoints;
  for (const std::string order : {"/8/scattered", "/8/sorted"}) {
    CHECK(check_search(request_of("manhattan", 20), points, nullptr, order) >
          most);
    CHECK(check_search(request_of("proportional", 20), points, nullptr, order) >
          most);
  }
  CHECK(check_search(request_of("manhattan", 20), points, &asking, "/8") >
        0.8 * most);
}

TEST_CASE("first limits are hardly ever too low") {
  const Matrix points = normal("normal", 2000, kFeatures, 12);
  const auto source = points.source();
  // Estimates serve bytes, bounds serve others; also in the order of sums.
  struct Case {
    const char *metric, *order;
  };
  for (const Case& c : {Case{"pearson", ""}, Case{"manhattan", "/8/scattered"},
                        Case{"manhattan", "/8/sorted"}})
    for (const std::int64_t k : {20, 100, 400}) {
      Request r = request_of(c.metric, k);
      r.instruction_set = std::string("auto") + c.order;
      const auto found = blank(r, 2000);
      Stats stats;
      cpu::find_neighbours(r, source, nullptr, found->view, nullptr, &stats);
      CAPTURE(c.metric);
      CAPTURE(c.order);
      CAPTURE(k);
      CHECK(stats.rows_recomputed < 20.0);
    }
}
