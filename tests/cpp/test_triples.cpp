// Triples of points, against the definition, bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "cases.hpp"
#include "core/contract/metrics.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/split_mix.hpp"
#include "core/search/triples.hpp"
#include "cpu/triples/triples.hpp"

using namespace fsknn;

namespace {

Request request_for(const Matrix& m, int threads = 1,
                    const char* instructions = "auto") {
  Request request;
  request.metric = &find_metric("proportional", "signed");
  request.num_threads = threads;
  request.instruction_set = instructions;
  for (std::int64_t i = 0; i < m.n; ++i) {
    double sum = 0;
    for (std::int64_t f = 0; f < m.d; ++f)
      sum += const_cast<Matrix&>(m).at(i, f) > 0 ? 1 : 0;
    if (sum == 0) request.skip.push_back(i);
  }
  return request;
}

bool same(const std::vector<Triple>& a, const std::vector<Triple>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].from != b[i].from || a[i].to != b[i].to ||
        a[i].third != b[i].third ||
        std::memcmp(&a[i].similarity, &b[i].similarity, sizeof(double)) != 0)
      return false;
  return true;
}

std::uint64_t checksum_of_all(const std::vector<Triple>& triples) {
  std::uint64_t sum = 0;
  for (const Triple& t : triples) sum += checksum_of(t);
  return sum;
}

/// Rows of various magnitudes: all rows alike, or each with its own.
Matrix lognormal(const std::string& name, std::int64_t n, std::int64_t d,
                 double low, double high, unsigned seed) {
  Matrix m = normal(name, n, d, seed);
  std::mt19937 random(seed + 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const double level = std::pow(
        10.0, low + (high - low) * static_cast<double>(random() % 1000) / 999);
    for (std::int64_t f = 0; f < d; ++f) {
      const double common = std::sin(static_cast<double>(f + 7 * (i % 3)));
      m.at(i, f) = level * std::exp(common + 0.3 * m.at(i, f));
    }
  }
  return m;
}

std::vector<Matrix> triple_cases() {
  std::vector<Matrix> all;
  all.push_back(ties(40, 9, 4, 3));
  all.push_back(ties(37, 1, 3, 4));
  all.push_back(ties(3, 5, 9, 5));
  all.push_back(ties(40, 600, 2, 6));
  for (double& x : all.back().values)
    if (x == 0.0) x = -0.0;
  // Codes with more than a block of sums, the longest codes, and one bit more.
  all.push_back(ties(20, 5000, 3, 17));
  all.push_back(ties(30, 40, 17, 18));
  all.push_back(ties(30, 40, 18, 19));
  all.push_back(lognormal("lognormal", 50, 70, 0, 0, 7));
  all.push_back(lognormal("of many blocks", 20, 1200, 0, 1, 8));
  all.push_back(lognormal("all tiny", 40, 20, -300, -300, 9));
  all.push_back(lognormal("all huge", 40, 20, 306, 307, 10));
  all.push_back(lognormal("of every size", 40, 20, -150, 150, 11));
  all.push_back(lognormal("subnormal", 30, 20, -322, -320, 12));
  all.push_back(lognormal("about the least normal", 30, 20, -309, -306, 13));
  Matrix one = lognormal("one huge entry", 40, 20, 0, 0, 14);
  one.at(7, 3) = 1e300;
  all.push_back(one);
  Matrix twice = lognormal("rows twice, rows of zeros", 40, 20, 0, 0, 15);
  for (std::int64_t i = 0; i < 10; ++i)
    for (std::int64_t f = 0; f < twice.d; ++f) {
      twice.at(30 + i, f) = twice.at(i, f);
      if (i % 4 == 0) twice.at(i, f) = i % 8 == 0 ? 0.0 : -0.0;
    }
  all.push_back(twice);
  all.push_back(near_empty(30, 12, 1.0, 6));
  Matrix two = lognormal("two nearly empty", 40, 20, 0, 0, 16);
  for (const std::int64_t i : {3, 31})
    for (std::int64_t f = 0; f < two.d; ++f) two.at(i, f) *= 1e-300;
  all.push_back(two);
  return all;
}

}  // namespace

TEST_CASE("a triple's similarity is the same for any order of the three") {
  for (Matrix& m : triple_cases()) {
    CAPTURE(m.name);
    const auto source = m.source();
    const PreparedPoints p = prepare_triples(
        request_for(m), source, &prepare_row<ScalarLanes>, 1, nullptr);
    for (std::int64_t i = 0; i + 2 < p.size(); ++i) {
      std::int64_t at[] = {i, i + 1, i + 2};
      std::vector<double> values;
      do {
        values.push_back(similarity_of_three(
            sum_of_largest<ScalarLanes>(p.row(Place{at[0]}),
                                        p.row(Place{at[1]}),
                                        p.row(Place{at[2]}), p.padded),
            total_of_three(p.sums[at[0]], p.sums[at[1]], p.sums[at[2]])));
      } while (std::next_permutation(at, at + 3));
      CHECK(values.size() == 6);
      for (const double value : values)
        CHECK(std::memcmp(&value, &values[0], sizeof value) == 0);
      CHECK(values[0] >= 0.0);
      CHECK(values[0] <= 1.0);
    }
  }
}

TEST_CASE("of small whole numbers it is the formula of the source") {
  Matrix m = ties(14, 6, 4, 21);
  const auto source = m.source();
  const std::vector<Triple> all =
      brute_triples(request_for(m), TripleQuestion(), source);
  for (const Triple& t : all) {
    double low = 0, three = 0, total = 0;
    for (std::int64_t f = 0; f < m.d; ++f) {
      const double a = m.at(t.from, f), b = m.at(t.to, f), c = m.at(t.third, f);
      low += std::min(a, b) + std::min(a, c) + std::min(b, c);
      three += std::min(a, std::min(b, c));
      total += a + b + c;
    }
    CHECK(t.similarity == 3 * (low - three) / (2 * total));
  }
}

TEST_CASE("triples above a threshold by every path, stage, thread") {
  for (Matrix& m : triple_cases()) {
    CAPTURE(m.name);
    const auto source = m.source();
    TripleQuestion every;
    std::vector<double> values;
    for (const Triple& t : brute_triples(request_for(m), every, source))
      values.push_back(t.similarity);
    std::sort(values.begin(), values.end());
    // Some triples reach these thresholds exactly.
    for (const double least :
         {0.0, values[values.size() / 2], values[values.size() * 9 / 10],
          values.back(), 0.8}) {
      CAPTURE(least);
      for (const bool some : {false, true}) {
        TripleQuestion q;
        q.least = least;
        if (some) q.contains = {static_cast<std::int32_t>(m.n - 1), 1, 1, 0};
        const std::vector<Triple> expected =
            brute_triples(request_for(m), q, source);
        const std::uint64_t checksum = checksum_of_all(expected);
        for (const char* instructions : {"baseline", "auto"})
          for (const TriplePath path :
               {TriplePath::automatic, TriplePath::pairs, TriplePath::all})
            for (const int threads : {1, 2}) {
              q.path = path;
              q.stage = 0;
              q.stages = 1;
              const cpu::TriplesFound found = cpu::find_triples(
                  request_for(m, threads, instructions), q, source, nullptr);
              CHECK(same(found.triples, expected));
              CHECK(found.checksum == checksum);
              bool between = found.pairs.size() == expected.size();
              for (std::size_t i = 0; between && i < expected.size(); ++i)
                between = found.pairs[i].at_least <= expected[i].similarity &&
                          found.pairs[i].at_most >= expected[i].similarity;
              CHECK(between);
              if (threads == 1 || path == TriplePath::automatic ||
                  std::strcmp(instructions, "auto") != 0)
                continue;
              q.stages = 3;
              std::vector<Triple> parts;
              std::uint64_t sum = 0;
              for (q.stage = 0; q.stage < 3; ++q.stage) {
                const cpu::TriplesFound part = cpu::find_triples(
                    request_for(m, 1, instructions), q, source, nullptr);
                CHECK(same(part.triples,
                           brute_triples(request_for(m), q, source)));
                parts.insert(parts.end(), part.triples.begin(),
                             part.triples.end());
                sum += part.checksum;
              }
              std::sort(parts.begin(), parts.end());
              CHECK(same(parts, expected));
              CHECK(sum == checksum);
            }
      }
    }
  }
}

TEST_CASE("parts of a prepared search follow one another") {
  for (Matrix& m : triple_cases()) {
    CAPTURE(m.name);
    const auto source = m.source();
    for (const bool some : {false, true})
      for (const TriplePath path : {TriplePath::pairs, TriplePath::all}) {
        TripleQuestion q;
        q.least = 0.6;
        q.path = path;
        if (some) q.contains = {static_cast<std::int32_t>(m.n - 1), 1};
        const std::vector<Triple> expected =
            brute_triples(request_for(m), q, source);
        const cpu::TripleSearch search(request_for(m, 2), q, source, nullptr);
        if (m.name == "two nearly empty")
          CHECK(search.find({}, nullptr).stats.path == path);
        std::vector<Triple> first;
        for (const double parts : {1.0, 2.0, 7.0, 64.0, 5000.0}) {
          if (parts == 5000.0 && m.n > 20) continue;
          cpu::TripleSearch::Part part;
          part.parts = parts;
          part.by_owner = true;
          part.with_pairs = false;
          std::vector<Triple> found;
          std::uint64_t sum = 0;
          for (; part.part < parts; ++part.part) {
            const cpu::TriplesFound one = search.find(part, nullptr);
            found.insert(found.end(), one.triples.begin(), one.triples.end());
            sum += one.checksum;
          }
          CHECK(sum == checksum_of_all(expected));
          if (parts == 1.0) first = found;
          CHECK(same(found, first));
          if (some) std::sort(found.begin(), found.end());
          CHECK(same(found, expected));
        }
      }
  }
}

TEST_CASE("a sample refuses nothing that fits") {
  // The sampled points are similar, and all others are not, so that the sample
  // predicts twenty times as many triples.
  Matrix m = normal("some alike", 260, 8, 3);
  for (double& x : m.values) x = std::exp(6 * x);
  SplitMix random(2018);
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < m.n; ++i) chosen.push_back(i);
  for (std::uint32_t s = 0; s < 96; ++s) {
    std::swap(chosen[s],
              chosen[s + random.below(static_cast<std::uint32_t>(m.n) - s)]);
    for (std::int64_t f = 0; f < m.d; ++f) m.at(chosen[s], f) = 1.0;
  }
  const auto source = m.source();
  TripleQuestion q;
  q.least = 0.99;
  const double all =
      static_cast<double>(brute_triples(request_for(m), q, source).size());
  q.most = all;
  CHECK(static_cast<double>(
            cpu::find_triples(request_for(m, 2), q, source, nullptr)
                .triples.size()) == all);
  for (const double most : {all - 1, all / 2, all / 50}) {
    q.most = most;
    try {
      cpu::find_triples(request_for(m, 2), q, source, nullptr);
      CHECK(false);
    } catch (const TooManyTriples& e) {
      CHECK(e.estimated);
      CHECK(e.triples > 10 * all);
    }
  }
}

TEST_CASE("too many triples are counted, with a threshold that fits") {
  Matrix m = lognormal("lognormal", 60, 30, 0, 0, 31);
  const auto source = m.source();
  TripleQuestion q;
  q.least = 0.1;
  const double all =
      static_cast<double>(brute_triples(request_for(m), q, source).size());
  for (const double most : {0.0, 1.0, 100.0, all - 1}) {
    q.least = 0.1;
    q.most = most;
    try {
      cpu::find_triples(request_for(m, 3), q, source, nullptr);
      CHECK(false);
    } catch (const TooManyTriples& e) {
      CHECK(e.triples == all);
      CHECK(!e.estimated);
      q.least = e.fits;
      if (most == 0.0) continue;
      const cpu::TriplesFound found =
          cpu::find_triples(request_for(m, 3), q, source, nullptr);
      CHECK(static_cast<double>(found.triples.size()) <= most);
      CHECK(static_cast<double>(found.triples.size()) >= 0.5 * most);
    }
  }
}

TEST_CASE("each point's nearest triples") {
  for (Matrix& m : triple_cases()) {
    CAPTURE(m.name);
    const auto source = m.source();
    const std::vector<Triple> all =
        brute_triples(request_for(m), TripleQuestion(), source);
    std::map<std::int32_t, std::vector<cpu::TripleOfPoint>> expected;
    for (const Triple& t : all) {
      expected[t.from].push_back({t.to, t.third, t.similarity});
      expected[t.to].push_back({t.from, t.third, t.similarity});
      expected[t.third].push_back({t.from, t.to, t.similarity});
    }
    for (auto& list : expected)
      std::sort(list.second.begin(), list.second.end(),
                [](const cpu::TripleOfPoint& a, const cpu::TripleOfPoint& b) {
                  if (a.similarity != b.similarity)
                    return a.similarity > b.similarity;
                  return a.second != b.second ? a.second < b.second
                                              : a.third < b.third;
                });
    const std::vector<std::int32_t> some = {2, 0};
    for (const std::vector<std::int32_t>& contains : {some, {}}) {
      const std::size_t ks[] = {1, 7, 5000};
      std::uint64_t checksum = 0;
      for (const std::size_t k : ks)
        for (const TriplePath path : {TriplePath::automatic, TriplePath::all})
          for (const int threads : {1, 3}) {
            Request request = request_for(m, threads);
            request.k = static_cast<std::int64_t>(k);
            const cpu::NearestTriples found =
                cpu::nearest_triples(request, contains, path, source, nullptr);
            if (path == TriplePath::automatic && threads == 1)
              checksum = found.checksum;
            CHECK(found.checksum == checksum);
            REQUIRE(found.lists.size() ==
                    (contains.empty() ? static_cast<std::size_t>(m.n) : 2));
            for (std::size_t i = 0; i < found.lists.size(); ++i) {
              const std::int32_t id =
                  contains.empty() ? static_cast<std::int32_t>(i) : contains[i];
              const auto& list = expected[id];
              REQUIRE(found.lists[i].size() == std::min(k, list.size()));
              bool alike = true;
              for (std::size_t r = 0; r < found.lists[i].size(); ++r)
                alike = alike && found.lists[i][r].second == list[r].second &&
                        found.lists[i][r].third == list[r].third &&
                        found.lists[i][r].similarity == list[r].similarity;
              CHECK(alike);
            }
          }
    }
  }
}

TEST_CASE("triples counted by similarity") {
  for (Matrix& m : triple_cases()) {
    CAPTURE(m.name);
    const auto source = m.source();
    const std::vector<Triple> all =
        brute_triples(request_for(m), TripleQuestion(), source);
    // Some of the breaks are existing similarities.
    std::vector<double> breaks = {0.0, all[0].similarity,
                                  all[all.size() / 2].similarity, 0.35, 0.7};
    std::sort(breaks.begin(), breaks.end());
    breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
    for (const bool whole : {false, true}) {
      if (whole) breaks.push_back(1.0);
      std::vector<double> expected(breaks.size() - 1, 0.0);
      double above = 0;
      for (const Triple& t : all) {
        std::size_t b = 0;
        while (b + 1 < breaks.size() && t.similarity >= breaks[b + 1]) ++b;
        if (b + 1 < breaks.size())
          ++expected[b];
        else if (t.similarity == breaks.back())
          ++expected.back();
        else
          ++above;
      }
      const TripleQuestion q;
      for (const int threads : {1, 3}) {
        const cpu::TripleCounts found = cpu::count_triples(
            request_for(m, threads), breaks, q, 0, 1, source, nullptr);
        CHECK(found.counts == expected);
        CHECK(found.above == above);
        CHECK(found.below == 0.0);
        std::vector<double> sums(expected.size(), 0.0);
        std::uint64_t checksum = 0;
        // Four stages, the second of them in parts.
        TripleQuestion of_four;
        of_four.stages = 4;
        for (int i = 0; i < 10; ++i) {
          of_four.stage = i < 7 ? 1 : i == 7 ? 0 : i - 6;
          const cpu::TripleCounts part =
              cpu::count_triples(request_for(m, threads), breaks, of_four,
                                 i < 7 ? i : 0, i < 7 ? 7 : 1, source, nullptr);
          for (std::size_t b = 0; b < sums.size(); ++b)
            sums[b] += part.counts[b];
          checksum += part.checksum;
        }
        CHECK(sums == expected);
        CHECK(checksum == found.checksum);
      }
    }
  }
}
