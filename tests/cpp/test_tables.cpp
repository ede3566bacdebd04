// Tables of alleles, counted allele by allele.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/contract/metrics.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "cuda/filter/limits.hpp"
#include "cuda/filter/table_bound.hpp"
#include "masked_cases.hpp"
#include "masked_searches.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

/// Values from 0 to `copies`. The first rows are all 0 and all `copies`, and
/// the third and the fourth are equal.
Matrix genotypes(std::int64_t n, std::int64_t d, int copies,
                 std::uint64_t seed) {
  Matrix m = make("genotypes", n, d);
  for (double& x : m.values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<double>((seed >> 33) % 97 %
                            static_cast<std::uint64_t>(copies + 1));
  }
  for (std::int64_t f = 0; f < d; ++f) {
    m.at(0, f) = 0.0;
    m.at(1, f) = copies;
    m.at(3, f) = m.at(2, f);
  }
  return m;
}

std::vector<double> row_of(const Matrix& m, std::int64_t i) {
  std::vector<double> row;
  for (std::int64_t f = 0; f < m.d; ++f)
    row.push_back(m.values[static_cast<std::size_t>(f * m.n + i)]);
  return row;
}

/// The entry of the alleles i and j, with CoMet's operations in its order.
double counted(const std::vector<double>& a, const std::vector<double>& b,
               int copies, int i, int j, const TableTerms& t) {
  std::int64_t both = 0, of_a = 0, of_b = 0;
  const std::size_t d = a.size();
  for (std::size_t f = 0; f < d; ++f)
    for (int p = 0; p < copies; ++p) {
      of_a += (a[f] > p) == (i == 1);
      of_b += (b[f] > p) == (j == 1);
      for (int q = 0; q < copies; ++q)
        both += (a[f] > p) == (i == 1) && (b[f] > q) == (j == 1);
    }
  const double recip_m = 1.0 / static_cast<double>(d);
  const double f_a = (1.0 / copies) * recip_m * static_cast<double>(of_a);
  const double f_b = (1.0 / copies) * recip_m * static_cast<double>(of_b);
  const double f_ab =
      (1.0 / (copies * copies)) * recip_m * static_cast<double>(both);
  return t.multiplier * f_ab * (1.0 - t.parameter * std::min(f_a, f_b)) *
         (1.0 - t.parameter * std::max(f_a, f_b));
}

}  // namespace

TEST_CASE("tables of alleles are those that one counts") {
  for (const char* name : {"ccc", "duo"}) {
    CAPTURE(name);
    const MetricEntry& known = find_metric(name, "signed");
    const int copies = static_cast<int>(known.table.copies);
    CHECK(copies == (name[0] == 'c' ? 2 : 1));
    for (const std::int64_t d : {1, 7, 100}) {
      const Matrix m = genotypes(30, d, copies, 5 + static_cast<unsigned>(d));
      const MetricEntry metric = for_samples(known, d);
      for (std::int64_t a = 0; a < m.n; ++a)
        for (std::int64_t b = 0; b < m.n; ++b) {
          const std::vector<double> x = row_of(m, a), y = row_of(m, b);
          double sum = 0.0, sum_a = 0.0, sum_b = 0.0;
          for (std::size_t f = 0; f < x.size(); ++f) {
            sum += x[f] * y[f];
            sum_a += x[f];
            sum_b += y[f];
          }
          const PairSums sums =
              AlleleTable::complete(sum, sum_a, sum_b, metric.table);
          double most = -1.0;
          int first = -1;
          for (int at = 0; at < 4; ++at) {
            const double value =
                counted(x, y, copies, at / 2, at % 2, metric.table);
            CHECK(AlleleTable::entry_of(at / 2, at % 2, sums, metric.table) ==
                  value);
            if (value > most) first = at;
            most = std::max(most, value);
          }
          int which = -1;
          const double known_c = most > 1.0 ? 1.0 : most;
          CHECK(AlleleTable::largest_entry(sums, metric.table, which) ==
                known_c);
          CHECK(which == first);
          CHECK(metric.similarity(sum, sum_a, sum_b) == known_c);
          CHECK(metric.similarity(sum, sum_b, sum_a) == known_c);
          CHECK(metric.finish(sum, sum_a, sum_b) == 1.0 - known_c);
          CHECK(most <= (copies == 2 ? 1.0 : 8.0 / 9.0) * (1.0 + 0x1p-50));
        }
    }
  }
}

TEST_CASE("a table has the largest entry at a frequency of 1/2 or 1") {
  const MetricEntry ccc = for_samples(find_metric("ccc", "signed"), 8);
  // Two loci of homozygous samples, half of them with the counted allele.
  CHECK(ccc.similarity(16.0, 8.0, 8.0) == doctest::Approx(1.0));
  const MetricEntry duo = for_samples(find_metric("duo", "signed"), 8);
  CHECK(duo.similarity(4.0, 4.0, 4.0) == doctest::Approx(8.0 / 9.0));
}

TEST_CASE("no distance is below 0 with CoMet's constants") {
  int above = 0;
  for (int d = 2; d < 3000; d += 2) {
    const MetricEntry ccc = for_samples(find_metric("ccc", "signed"), d);
    above += AlleleTable::entry_of(
                 1, 1, AlleleTable::complete(2.0 * d, d, d, ccc.table),
                 ccc.table) > 1.0;
    CHECK(ccc.similarity(2.0 * d, d, d) <= 1.0);
    CHECK(ccc.finish(2.0 * d, d, d) >= 0.0);
  }
  CHECK(above > 1000);
}

TEST_CASE("values near the levels are told from them") {
  const double least = 5e-324, step = 0x1p-52;
  for (const double wrong :
       {least, -least, 0x1p-1022, step, -step, 1.0 + step, 1.0 - step / 2, 0.5,
        1.5, 2.0 + 2 * step, 2.0 - step, 3.0, -1.0, 1e308, -1e308})
    for (const int levels : {1, 2})
      for (std::int64_t at = 0; at < 7; ++at) {
        Matrix m = genotypes(5, 7, levels, 1);
        m.at(4, at) = wrong;
        CAPTURE(wrong);
        CAPTURE(levels);
        const EntriesCounted counted = {false, levels};
        const MatrixFacts facts = scan(m.source(), 1, nullptr, counted);
        CHECK(facts.off_levels == 1);
        CHECK(facts.off_levels_at[0].point == 4);
        CHECK(facts.off_levels_at[0].feature == at);
      }
  Matrix m = genotypes(5, 7, 2, 1);
  CHECK(scan(m.source(), 1, nullptr, {false, 2}).off_levels == 0);
  CHECK(scan(m.source(), 1, nullptr, {false, 1}).off_levels > 0);
}

TEST_CASE("each request has its own number of samples and constants") {
  const Matrix m = genotypes(60, 33, 2, 3);
  MetricEntry own = find_metric("ccc", "signed");
  own.table.multiplier = 1.25;
  own.table.parameter = 0.5;
  CHECK_FALSE(is_same_metric(own, find_metric("ccc", "signed")));
  CHECK(is_same_metric(for_samples(own, 4), own));
  Request r;
  r.k = 4;
  r.table_entry = std::make_shared<const MetricEntry>(own);
  r.metric = r.table_entry.get();
  std::vector<std::int32_t> index(240), expected_index(240);
  std::vector<double> distance(240), expected(240);
  Neighbours found, known;
  found.rows = known.rows = 60;
  found.index = index.data();
  found.distance = distance.data();
  known.index = expected_index.data();
  known.distance = expected.data();
  cpu::find_neighbours(r, m.source(), nullptr, found, nullptr, nullptr);
  brute_force(r, m.source(), nullptr, known);
  CHECK(index == expected_index);
  CHECK(distance == expected);
  const MetricEntry metric = for_samples(own, 33);
  double nearest = 2.0;
  for (std::int64_t b = 1; b < 60; ++b) {
    double most = 0.0;
    for (int at = 0; at < 4; ++at)
      most = std::max(most, counted(row_of(m, 0), row_of(m, b), 2, at / 2,
                                    at % 2, metric.table));
    nearest = std::min(nearest, 1.0 - most);
  }
  CHECK(distance[0] == nearest);
}

// What GPUs compare, with their limits.
TEST_CASE("the largest entry in floats is within its error") {
  std::uint64_t seed = 1;
  const auto below = [&](double x) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return std::floor(static_cast<double>(seed >> 11) * 0x1p-53 * x);
  };
  for (const char* name : {"ccc", "duo"})
    for (const double parameter : {0.0, 0.5, 2.0 / 3.0, 1.0})
      for (const double multiplier : {1e-100, 1e-12, 4.5, 1e100})
        for (const double d : {1.0, 3.0, 1000.0, 524288.0}) {
          MetricEntry own = for_samples(find_metric(name, "signed"),
                                        static_cast<std::int64_t>(d));
          own.table.parameter = parameter;
          own.table.multiplier = multiplier;
          const TableTerms& t = own.table;
          const double unit = unit_of_table(t), all = pairs_of_table(t);
          cuda::SimilarityUnits units;
          units.scale = 1.0 / (unit * cuda::kTableUnit);
          units.error = cuda::error_of_table(t);
          for (int i = 0; i < 2000; ++i) {
            const double most = t.copies * d;
            // Rare alleles and the largest numbers, too.
            double a = below(most + 1.0), b = below(most + 1.0);
            if (i % 3 == 0) a = std::min(most, below(3.0));
            if (i % 5 == 0) b = most - std::min(most, below(3.0));
            const double least = std::max(0.0, t.copies * (a + b) - all);
            const double largest = t.copies * std::min(a, b);
            double both = least + below(largest - least + 1.0);
            if (i % 4 == 0) both = i % 8 == 0 ? least : largest;
            const float found = cuda::largest_of_table(
                cuda::as_count(static_cast<int>(both)), cuda::table_row(t, a),
                cuda::table_column(t, b));
            const double limit = own.finish(both, a, b);
            CHECK(std::fabs(found - (1.0 - limit) * units.scale) <=
                  units.error);
            CHECK(found >= cuda::threshold_of_limit(own, DistanceRule(own, 0),
                                                    units, limit));
          }
        }
}

// The filter computes entries in floats, here of alleles that are rare, common,
// or the same in all samples, with constants that make weights 0.
TEST_CASE("the filter of tables drops no pair within the distance") {
  for (const char* name : {"ccc", "duo"}) {
    for (const double parameter : {0.0, 0.5, 2.0 / 3.0, 1.0}) {
      for (const double multiplier : {1e-100, 4.5, 1e100}) {
        MetricEntry own = find_metric(name, "signed");
        own.table.parameter = parameter;
        own.table.multiplier = multiplier;
        const int copies = static_cast<int>(own.table.copies);
        Request r;
        r.table_entry = std::make_shared<const MetricEntry>(own);
        r.metric = r.table_entry.get();
        for (const std::int64_t d : {3, 64, 501}) {
          Matrix m = genotypes(220, d, copies, 11 + static_cast<unsigned>(d));
          for (std::int64_t i = 0; i < m.n; ++i)
            for (std::int64_t f = 0; f < d; ++f) {
              if (i % 7 == 0) m.at(i, f) = f == i % d ? 1.0 : 0.0;
              if (i % 7 == 1) m.at(i, f) = f == i % d ? 0.0 : copies;
              if (i % 7 == 2) m.at(i, f) = m.at(3, f);
            }
          r.k = 7;
          std::vector<std::int32_t> index(1540), expected_index(1540);
          std::vector<double> distance(1540), expected(1540);
          Neighbours found, known;
          found.rows = known.rows = 220;
          known.index = expected_index.data();
          known.distance = expected.data();
          r.instruction_set = "auto";
          brute_force(r, m.source(), nullptr, known);
          r.chunk_size = 48;
          for (const cpu::Kernels* kernels : cpu::available_kernels()) {
            for (const int bits : {8, 16}) {
              r.instruction_set =
                  std::string(kernels->name) + "/" + std::to_string(bits);
              CAPTURE(r.instruction_set);
              found.index = index.data();
              found.distance = distance.data();
              Stats stats;
              cpu::find_neighbours(r, m.source(), nullptr, found, nullptr,
                                   &stats);
              CHECK(bits_of(stats.filter) == bits);
              CHECK(index == expected_index);
              CHECK(distance == expected);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("tables over common samples equal the definition") {
  for (const char* name : {"ccc", "duo"})
    for (const std::int64_t d : {1, 9, 70, 300})
      for (const double share : {0.03, 0.4, 0.9}) {
        const MetricEntry& metric = find_metric(name, "signed");
        Matrix m = with_holes(
            genotypes(130, d, metric.table.copies > 1.0 ? 2 : 1, 3), share, 7);
        // Rows that equal others except for what they lack.
        for (std::int64_t f = 0; f < d; f += 2) m.at(3, f) = kNone;
        for (const std::int64_t k : {1, 7, 129})
          for (const std::int64_t min_pairs : {1, 5}) {
            if (min_pairs > d) continue;
            CAPTURE(name);
            CAPTURE(d);
            CAPTURE(share);
            Request r = masked_request(metric, k, min_pairs);
            r.skip = {4};
            const Answer expected = find_masked(brute_force, r, m);
            for (const cpu::Kernels* kernels : cpu::available_kernels()) {
              r.instruction_set = kernels->name;
              r.chunk_size = k == 7 ? 37 : 0;
              CHECK(find_masked(masked_engine, r, m) == expected);
            }
            const Matrix q = m;
            r.query_skip = {2};
            CHECK(find_masked(masked_engine, r, m, &q) ==
                  find_masked(brute_force, r, m, &q));
          }
      }
}
