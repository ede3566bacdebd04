// Triples by tables of alleles, counted allele by allele.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/contract/metrics.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/split_mix.hpp"
#include "core/search/triples.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/triples/triples.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

/// Values from 0 to `copies`: rare, common and equal rows, and rows of one
/// value.
Matrix loci(std::int64_t n, std::int64_t d, int copies, std::uint64_t seed) {
  Matrix m = make("loci", n, d);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t at = (seed >> 33) % 97;
      const std::uint64_t rare = static_cast<std::uint64_t>(i % 5) * 20;
      m.at(i, f) = at < rare ? static_cast<double>(at % 3 * copies / 2) : 0.0;
      if (i % 7 == 3) m.at(i, f) = copies - m.at(i - 1, f);
      if (i % 11 == 5) m.at(i, f) = copies;
    }
  return m;
}

Request request_for(const MetricEntry& own, int threads = 1,
                    const std::string& instructions = "auto") {
  Request request;
  request.table_entry = std::make_shared<const MetricEntry>(own);
  request.metric = request.table_entry.get();
  request.num_threads = threads;
  request.instruction_set = instructions;
  return request;
}

/// The eight entries, by 4 allele_a + 2 allele_b + allele_c, with CoMet's
/// operations in its order.
std::array<double, 8> counted(Matrix& m, const std::int64_t* rows,
                              const TableTerms& t) {
  const int copies = static_cast<int>(t.copies);
  std::array<double, 8> entries;
  for (int at = 0; at < 8; ++at) {
    const int alleles[] = {at / 4, at / 2 % 2, at % 2};
    double frequency[3];
    const double by_samples = 1.0 / static_cast<double>(m.d);
    for (int r = 0; r < 3; ++r) {
      std::int64_t count = 0;
      for (std::int64_t f = 0; f < m.d; ++f)
        for (int p = 0; p < copies; ++p)
          count += (m.at(rows[r], f) > p) == (alleles[r] == 1);
      frequency[r] = 1.0 / copies * by_samples * static_cast<double>(count);
    }
    std::int64_t all = 0;
    for (std::int64_t f = 0; f < m.d; ++f) {
      std::int64_t of[3] = {0, 0, 0};
      for (int r = 0; r < 3; ++r)
        for (int p = 0; p < copies; ++p)
          of[r] += (m.at(rows[r], f) > p) == (alleles[r] == 1);
      all += of[0] * of[1] * of[2];
    }
    std::sort(frequency, frequency + 3);
    double value = t.multiplier * (1.0 / (copies * copies * copies) *
                                   by_samples * static_cast<double>(all));
    for (const double f : frequency) value *= 1.0 - t.parameter * f;
    entries[static_cast<std::size_t>(at)] = value;
  }
  return entries;
}

double largest_of(const std::array<double, 8>& entries) {
  const double most = *std::max_element(entries.begin(), entries.end());
  return most > 1.0 && most < 1.0 + 0x1p-48 ? 1.0 : most;
}

struct Known {
  Triple triple;
  int entry;
};

std::vector<Known> all_triples(Matrix& m, const TableTerms& t) {
  std::vector<Known> found;
  for (std::int32_t i = 0; i < m.n; ++i)
    for (std::int32_t j = i + 1; j < m.n; ++j)
      for (std::int32_t k = j + 1; k < m.n; ++k) {
        const std::int64_t rows[] = {i, j, k};
        const std::array<double, 8> entries = counted(m, rows, t);
        const auto first = std::max_element(entries.begin(), entries.end());
        found.push_back({{i, j, k, largest_of(entries)},
                         static_cast<int>(first - entries.begin())});
      }
  return found;
}

bool same(const Triple& a, const Triple& b) {
  return a.from == b.from && a.to == b.to && a.third == b.third &&
         a.similarity == b.similarity;
}

/// Others are for ranges of doubles and floats.
bool has_plain_constants(const MetricEntry& metric) {
  return metric.table.multiplier > 1.0 && metric.table.multiplier < 10.0;
}

/// CCC and DUO with some constants.
std::vector<MetricEntry> table_metrics() {
  std::vector<MetricEntry> found;
  for (const char* name : {"ccc", "duo"})
    for (const double parameter : {2.0 / 3.0, 0.0, 1.0})
      for (const double multiplier : {4.5, 1e-100, 1e100}) {
        if (parameter == 0.0 && multiplier != 4.5) continue;
        MetricEntry own = find_metric(name, "signed");
        if (multiplier != 4.5 || parameter != 2.0 / 3.0) {
          own.table.multiplier = multiplier;
          own.table.parameter = parameter;
        }
        found.push_back(own);
      }
  return found;
}

}  // namespace

TEST_CASE("a table of three loci has the bits of CoMet's in any order") {
  for (const MetricEntry& known : table_metrics())
    for (const std::int64_t d : {1, 7, 100}) {
      Matrix m = loci(9, d, static_cast<int>(known.table.copies), 3);
      const MetricEntry metric = for_samples(known, d);
      const auto source = m.source();
      const PreparedPoints p = prepare_triples(
          request_for(known), source, &prepare_row<ScalarLanes>, 1, nullptr);
      CHECK_FALSE(p.wide);
      for (std::int64_t i = 0; i < m.n; ++i)
        for (std::int64_t j = 0; j < m.n; ++j)
          for (std::int64_t k = 0; k < m.n; ++k) {
            if (i == j || i == k || j == k) continue;
            const std::int64_t rows[] = {i, j, k};
            const std::array<double, 8> entries =
                counted(m, rows, metric.table);
            const TableEntry found = table_of_three(metric, p, i, j, k);
            CHECK(found.similarity == largest_of(entries));
            CHECK(found.which ==
                  std::max_element(entries.begin(), entries.end()) -
                      entries.begin());
            if (has_plain_constants(known) && known.table.parameter > 0.5)
              CHECK(found.similarity <= 4.5 * 3 / 8 * 27 / 64 * (1 + 1e-12));
          }
    }
}

TEST_CASE("triples of tables by every instruction set, stage, thread") {
  for (const MetricEntry& known : table_metrics())
    for (const std::int64_t d : {5, 64, 333}) {
      if (!has_plain_constants(known) && d != 64) continue;
      // More points than three panels, so that tiles of all widths are used.
      Matrix m = loci(d == 5 ? 52 : 24, d, static_cast<int>(known.table.copies),
                      static_cast<std::uint64_t>(d));
      const auto source = m.source();
      const MetricEntry metric = for_samples(known, d);
      CAPTURE(metric.name);
      CAPTURE(d);
      const std::vector<Known> all = all_triples(m, metric.table);
      std::vector<double> values;
      for (const Known& t : all) values.push_back(t.triple.similarity);
      std::sort(values.begin(), values.end());
      for (const double least :
           {0.0, values[values.size() / 2], values[values.size() * 99 / 100]})
        for (const bool some : {false, true}) {
          TripleQuestion q;
          q.least = least;
          if (some) q.contains = {static_cast<std::int32_t>(m.n - 1), 20, 1};
          std::vector<Known> expected;
          for (const Known& t : all) {
            const auto has = [&](std::int32_t point) {
              return std::count(q.contains.begin(), q.contains.end(), point);
            };
            if (t.triple.similarity >= least &&
                (!some || has(t.triple.from) || has(t.triple.to) ||
                 has(t.triple.third)))
              expected.push_back(t);
          }
          std::vector<Triple> brute =
              brute_triples(request_for(known), q, source);
          REQUIRE(brute.size() == expected.size());
          for (const cpu::Kernels* kernels : cpu::available_kernels())
            for (const int threads : {1, 3}) {
              q.stage = 0;
              q.stages = 1;
              const Request request =
                  request_for(known, threads, kernels->name);
              const cpu::TriplesFound found =
                  cpu::find_triples(request, q, source, nullptr);
              REQUIRE(found.triples.size() == expected.size());
              bool alike = true;
              for (std::size_t i = 0; i < expected.size(); ++i)
                alike = alike && same(found.triples[i], expected[i].triple) &&
                        same(brute[i], expected[i].triple) &&
                        found.pairs[i].entry == expected[i].entry;
              CHECK(alike);
              if (threads == 1 || kernels != cpu::available_kernels().back())
                continue;
              std::size_t count = 0;
              std::uint64_t checksum = 0;
              q.stages = 3;
              for (q.stage = 0; q.stage < 3; ++q.stage) {
                const cpu::TriplesFound part =
                    cpu::find_triples(request, q, source, nullptr);
                CHECK(part.triples.size() ==
                      brute_triples(request, q, source).size());
                count += part.triples.size();
                checksum += part.checksum;
              }
              CHECK(count == expected.size());
              CHECK(checksum == found.checksum);
              q.stage = 0;
              q.stages = 1;
              cpu::TripleSearch search(request, q, source, nullptr);
              cpu::TripleSearch::Part part;
              part.parts = 5;
              checksum = 0;
              for (; part.part < part.parts; ++part.part)
                checksum += search.find(part, nullptr).checksum;
              CHECK(checksum == found.checksum);
            }
        }
    }
}

// Floats of entries at the threshold are above or below it by rounding.
TEST_CASE("the filter of triples of loci drops none at the threshold") {
  int below = 0;
  for (const MetricEntry& known : table_metrics())
    for (const std::int64_t d : {11, 345}) {
      if (!has_plain_constants(known)) continue;
      Matrix m = loci(25, d, static_cast<int>(known.table.copies), 77);
      const auto source = m.source();
      std::vector<double> values;
      for (const Known& t : all_triples(m, for_samples(known, d).table))
        values.push_back(t.triple.similarity);
      std::sort(values.begin(), values.end());
      for (std::size_t at = 0; at < values.size(); at += 23) {
        TripleQuestion q;
        q.least = values[at];
        const cpu::TriplesFound found =
            cpu::find_triples(request_for(known), q, source, nullptr);
        CHECK(found.triples.size() ==
              static_cast<std::size_t>(
                  values.end() -
                  std::lower_bound(values.begin(), values.end(), q.least)));
        below += found.stats.reranked > found.stats.triples;
      }
    }
  CHECK(below > 10);
}

TEST_CASE("blocks of loci without similar pairs are skipped") {
  for (const char* name : {"ccc", "duo"}) {
    const MetricEntry& known = find_metric(name, "signed");
    const int copies = static_cast<int>(known.table.copies);
    // Loci of a block are copies of one, but for a few samples.
    Matrix m = make("blocks", 192, 211);
    for (std::int64_t i = 0; i < m.n; ++i)
      for (std::int64_t f = 0; f < m.d; ++f) {
        const std::uint64_t at = static_cast<std::uint64_t>(i / 48 * 211 + f);
        m.at(i, f) =
            (mixed_number(at, 0) % 2 == 0) != (f % 29 == i % 15) ? copies : 0.0;
      }
    const auto source = m.source();
    const cpu::TripleCounts all = cpu::count_triples(
        request_for(known), {0.0, 1.0}, {}, 0, 1, source, nullptr);
    TripleQuestion q;
    q.least = known.table.multiplier * 0.6 / 4.5;
    const std::vector<Triple> expected =
        brute_triples(request_for(known), q, source);
    CHECK(expected.size() > 1000);
    const cpu::TriplesFound found =
        cpu::find_triples(request_for(known), q, source, nullptr);
    REQUIRE(found.triples.size() == expected.size());
    bool alike = true;
    for (std::size_t i = 0; i < expected.size(); ++i)
      alike = alike && same(found.triples[i], expected[i]);
    CHECK(alike);
    CHECK(found.stats.comparisons < 0.3 * all.stats.comparisons);
    // A triple is no more similar than its pairs.
    for (std::size_t i = 0; i < expected.size(); ++i)
      alike = alike &&
              found.pairs[i].from_to > expected[i].similarity - 1e-12 &&
              found.pairs[i].from_third > expected[i].similarity - 1e-12 &&
              found.pairs[i].to_third > expected[i].similarity - 1e-12;
    CHECK(alike);
  }
}

TEST_CASE("the nearest triples of loci, and their ties") {
  for (const MetricEntry& known : table_metrics()) {
    Matrix m = loci(40, 23, static_cast<int>(known.table.copies), 9);
    const auto source = m.source();
    const MetricEntry metric = for_samples(known, m.d);
    const std::vector<Known> all = all_triples(m, metric.table);
    for (const std::int64_t k : {1, 10, 741})
      for (const int threads : {1, 3})
        for (const bool some : {false, true}) {
          Request request = request_for(known, threads);
          request.k = k;
          std::vector<std::int32_t> of;
          if (some) of = {7, 39};
          const cpu::NearestTriples found = cpu::nearest_triples(
              request, of, TriplePath::all, source, nullptr);
          for (std::size_t i = 0; i < found.lists.size(); ++i) {
            const std::int32_t id = some ? of[i] : static_cast<std::int32_t>(i);
            std::vector<cpu::TripleOfPoint> expected;
            for (const Known& t : all) {
              const Triple& u = t.triple;
              if (u.from == id)
                expected.push_back({u.to, u.third, u.similarity});
              if (u.to == id)
                expected.push_back({u.from, u.third, u.similarity});
              if (u.third == id)
                expected.push_back({u.from, u.to, u.similarity});
            }
            std::stable_sort(
                expected.begin(), expected.end(),
                [](const cpu::TripleOfPoint& a, const cpu::TripleOfPoint& b) {
                  if (a.similarity != b.similarity)
                    return a.similarity > b.similarity;
                  return a.second != b.second ? a.second < b.second
                                              : a.third < b.third;
                });
            REQUIRE(found.lists[i].size() == static_cast<std::size_t>(k));
            bool alike = true;
            for (std::size_t r = 0; r < static_cast<std::size_t>(k); ++r) {
              const cpu::TripleOfPoint& t = found.lists[i][r];
              const std::int64_t rows[] = {id, t.second, t.third};
              const std::array<double, 8> entries =
                  counted(m, rows, metric.table);
              alike =
                  alike && t.second == expected[r].second &&
                  t.third == expected[r].third &&
                  t.similarity == expected[r].similarity &&
                  t.entry == std::max_element(entries.begin(), entries.end()) -
                                 entries.begin();
            }
            CHECK(alike);
          }
        }
  }
}

TEST_CASE("triples of loci counted by similarity") {
  for (const MetricEntry& known : table_metrics())
    for (const std::int64_t d : {6, 200}) {
      if (!has_plain_constants(known) && d != 6) continue;
      Matrix m =
          loci(d == 6 ? 53 : 30, d, static_cast<int>(known.table.copies), 11);
      const auto source = m.source();
      const MetricEntry metric = for_samples(known, m.d);
      const std::vector<Known> all = all_triples(m, metric.table);
      double most = 0.0;
      for (const Known& t : all) most = std::max(most, t.triple.similarity);
      // Some breaks are similarities.
      std::vector<double> breaks = {0.1 * most, all[7].triple.similarity,
                                    all[900].triple.similarity, 0.6 * most,
                                    most};
      std::sort(breaks.begin(), breaks.end());
      breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
      std::vector<double> expected(breaks.size() + 1, 0.0);
      for (const Known& t : all)
        expected[bin_of(breaks, t.triple.similarity)]++;
      for (const cpu::Kernels* kernels : cpu::available_kernels())
        for (const int threads : {1, 3}) {
          std::vector<double> sums(breaks.size() + 1, 0.0);
          TripleQuestion q;
          q.stages = 3;
          for (q.stage = 0; q.stage < 3; ++q.stage)
            for (int part = 0; part < 2; ++part) {
              const cpu::TripleCounts found =
                  cpu::count_triples(request_for(known, threads, kernels->name),
                                     breaks, q, part, 2, source, nullptr);
              sums.front() += found.below;
              for (std::size_t b = 0; b < found.counts.size(); ++b)
                sums[b + 1] += found.counts[b];
              sums.back() += found.above;
            }
          CHECK(sums == expected);
        }
    }
}

TEST_CASE("a sample tells how many triples of loci there are") {
  const MetricEntry& ccc = find_metric("ccc", "signed");
  Matrix m = loci(240, 40, 2, 1);
  const auto source = m.source();
  TripleQuestion q;
  q.least = 0.2;
  const cpu::TripleSearch search(request_for(ccc), q, source, nullptr);
  const cpu::TripleForecast forecast = search.forecast();
  CHECK(forecast.sampled == 96.0);
  const double found =
      static_cast<double>(search.find({}, nullptr).triples.size());
  CHECK(forecast.triples > 0.5 * found);
  CHECK(forecast.triples < 2.0 * found);
  cpu::TripleSearch::Part part;
  part.most = 100.0;
  CHECK_THROWS_AS(search.find(part, nullptr), TooManyTriples);
}

TEST_CASE("with very many samples every triple is computed in double") {
  Matrix m = loci(4, (std::int64_t{1} << 21) + 3, 2, 5);
  const auto source = m.source();
  const MetricEntry& ccc = find_metric("ccc", "signed");
  const cpu::TriplesFound found =
      cpu::find_triples(request_for(ccc), {}, source, nullptr);
  CHECK(found.stats.reranked == 4.0);
  REQUIRE(found.triples.size() == 4);
  const std::int64_t rows[] = {1, 2, 3};
  const TableTerms table = for_samples(ccc, m.d).table;
  CHECK(found.triples[3].similarity == largest_of(counted(m, rows, table)));
  const std::vector<double> breaks = {0.0, found.triples[3].similarity, 1.0};
  const cpu::TripleCounts counts =
      cpu::count_triples(request_for(ccc), breaks, {}, 0, 1, source, nullptr);
  CHECK(counts.counts[0] + counts.counts[1] == 4.0);
  CHECK(counts.counts[1] >= 1.0);
}
