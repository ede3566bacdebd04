// Rows of 0 and 1 in bits: every instruction set gives the answers of the
// definition. The filter's sums replace those of the exact step.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "answers.hpp"
#include "core/rows/scan.hpp"
#include "core/search/brute.hpp"
#include "core/search/within.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/held.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

/// One of `apart` entries is set. Every ninth row equals the one before. Others
/// have all ones, one bit, only the last feature, or nothing.
Matrix binary(std::int64_t n, std::int64_t d, unsigned apart, unsigned seed) {
  Matrix m = make("0 and 1", n, d);
  std::mt19937 random(seed);
  for (double& x : m.values) x = random() % apart == 0 ? 1.0 : 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f) switch (i % 9) {
        case 1: m.at(i, f) = m.at(i - 1, f); break;
        case 3:
          if (i % 4 == 0) m.at(i, f) = 1.0;
          break;
        case 4:
          if (i % 4 == 1) m.at(i, f) = f == i % d ? 1.0 : 0.0;
          if (i % 4 == 2) m.at(i, f) = f == d - 1 ? 1.0 : 0.0;
          if (i % 4 == 3) m.at(i, f) = 0.0;
          break;
        default: break;
      }
  return m;
}

std::vector<const MetricEntry*> metrics() {
  std::vector<const MetricEntry*> some;
  for (const char* name :
       {"jaccard", "sorensen", "proportional", "manhattan", "euclidean"})
    some.push_back(&find_metric(name, "signed"));
  // Rows of length 1 with two values are stored as bits, too.
  some.push_back(&find_metric("cosine", "signed"));
  some.push_back(&find_metric("spearman", "signed"));
  for (const char* sign : {"signed", "absolute", "negative"})
    some.push_back(&find_metric("pearson", sign));
  return some;
}

const cpu::FilterForm* form_of(const MetricEntry& metric, const Matrix& m,
                               const Matrix* q) {
  Request r;
  r.metric = &metric;
  const auto prepared = [&](const Matrix& from) {
    return prepare_points(from.source(), recipe_of(r, 0), unfit(metric, from),
                          true, cpu::kBaselineKernels.prepare_row, 1);
  };
  const MatrixSource<double> source = m.source();
  const PreparedPoints points =
      prepare_points(source, recipe_of(r, 0), unfit(metric, m), true,
                     cpu::kBaselineKernels.prepare_row, 1);
  PreparedPoints queries;
  if (q != nullptr) queries = prepared(*q);
  return cpu::choose_scale(metric, DistanceRule(metric, 0),
                           cpu::kBaselineKernels, points,
                           q != nullptr ? &queries : nullptr, 1)
      .form;
}

}  // namespace

TEST_CASE("bits count the same by every instruction set") {
  std::mt19937 random(3);
  for (const std::int64_t steps : {1, 2, 31, 32, 157}) {
    std::vector<std::int32_t> a(static_cast<std::size_t>(16 * steps)),
        b(static_cast<std::size_t>(48 * steps));
    for (std::int32_t& x : a) x = static_cast<std::int32_t>(random());
    for (std::int32_t& x : b) x = static_cast<std::int32_t>(random());
    std::fill_n(a.begin(), 5, -1);
    std::fill_n(b.begin(), 9, -1);
    for (int panels = 1; panels <= cpu::Tile::panels; ++panels)
      for (const cpu::Kernels* kernels : cpu::available_kernels()) {
        alignas(64) std::int32_t sums[cpu::Tile::rows * cpu::Tile::columns];
        kernels->accumulate(cpu::Product::common_bits, a.data(), b.data(),
                            panels, steps, sums);
        int wrong = 0;
        for (int r = 0; r < cpu::Tile::rows; ++r)
          for (int c = 0; c < 16 * panels; ++c) {
            int count = 0;
            for (std::int64_t f = 0; f < steps; ++f)
              count += __builtin_popcount(static_cast<unsigned>(
                  a[static_cast<std::size_t>(16 * f + r)] &
                  b[static_cast<std::size_t>(c / 16 * 16 * steps + 16 * f +
                                             c % 16)]));
            wrong += count != sums[r * cpu::Tile::columns + c];
          }
        CAPTURE(kernels->name);
        CHECK(wrong == 0);
      }
  }
}

TEST_CASE("rows of 0 and 1 have the answers by definition") {
  for (const std::int64_t d : {1, 31, 63, 64, 65, 1024, 5000})
    for (const unsigned apart : {2u, 10u, 300u}) {
      // By definition the longest take most of the time.
      if (d == 5000 && apart != 10) continue;
      const Matrix m = binary(d > 1000 ? 150 : 301, d, apart, 5);
      const Matrix q = binary(70, d, 3, 6);
      for (const MetricEntry* metric : metrics()) {
        // There are many of these metrics, and the others test all widths.
        if (metric->is_unit_dot() && d != 31 && d != 64) continue;
        Request r;
        r.metric = metric;
        r.k = 7;
        r.num_threads = 2;
        r.chunk_size = 48;
        const auto points = m.source(), queries = q.source();
        r.skip = unfit(*metric, m);
        if (static_cast<std::int64_t>(r.skip.size()) + 8 > m.n) continue;
        CAPTURE(metric->name);
        CAPTURE(d);
        CAPTURE(apart);
        const cpu::FilterForm* form = form_of(*metric, m, nullptr);
        CHECK(form->product == cpu::Product::common_bits);
        Answer expected(m.n, r.k), of_queries(q.n, r.k);
        brute_force(r, points, nullptr, expected.view);
        Request asked = r;
        asked.query_skip = unfit(*metric, q);
        brute_force(asked, points, &queries, of_queries.view);
        // Some pairs have exactly that distance.
        Within within;
        within.limits = {expected.view.distance[2 * m.n - 1]};
        Pairs near, found_near;
        brute_within(r, within, points, nullptr, near);
        for (const cpu::Kernels* kernels : cpu::available_kernels()) {
          CAPTURE(kernels->name);
          r.instruction_set = asked.instruction_set = kernels->name;
          Answer found(m.n, r.k), found_queries(q.n, r.k);
          cpu::find_neighbours(r, points, nullptr, found.view, nullptr,
                               nullptr);
          CHECK(found == expected);
          cpu::find_neighbours(asked, points, &queries, found_queries.view,
                               nullptr, nullptr);
          CHECK(found_queries == of_queries);
        }
        cpu::find_within(r, within, points, nullptr, found_near, nullptr,
                         nullptr);
        CHECK(found_near == near);
      }
    }
}

TEST_CASE("other values than 0 and 1 are not taken for bits") {
  for (const MetricEntry* metric : metrics()) {
    const Matrix m = binary(120, 40, 3, 8);
    Matrix last = m, q = binary(33, 40, 3, 9);
    last.at(119, 39) = 2.0;
    CAPTURE(metric->name);
    CHECK(form_of(*metric, last, nullptr)->product !=
          cpu::Product::common_bits);
    CHECK(form_of(*metric, m, &q)->product == cpu::Product::common_bits);
    const auto points = m.source();
    Request r;
    r.metric = metric;
    r.k = 5;
    r.skip = unfit(*metric, m);
    // The points are held as bits, and some queries are not binary.
    cpu::HeldPoints held(r, points);
    for (const double value : {1.0, 0.5, 1.0, 3.0}) {
      q.at(32, 0) = value;
      const auto queries = q.source();
      Request asked = r;
      asked.query_skip = unfit(*metric, q);
      Answer expected(q.n, r.k), found(q.n, r.k);
      brute_force(asked, points, &queries, expected.view);
      held.find_neighbours(asked, &queries, found.view, nullptr, nullptr);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("ties of bits do not all come to the lists") {
  const Matrix m = binary(4000, 256, 10, 11);
  for (const MetricEntry* metric : metrics()) {
    Request r;
    r.metric = metric;
    r.k = 10;
    r.num_threads = 2;
    r.skip = unfit(*metric, m);
    Stats stats;
    Answer a(m.n, r.k);
    cpu::find_neighbours(r, m.source(), nullptr, a.view, nullptr, &stats);
    CAPTURE(metric->name);
    CHECK(stats.pairs_exact < 400.0 * 4000);
  }
}
