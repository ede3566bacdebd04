// CoMet's synthetic problems and its checksum (wdj/comet: driver/test_problems
// and src/checksum). The expected checksums are those that the program itself
// printed at commit d25dd44d, in double precision with `--compute_method REF
// --all2all yes --sparse no`. They depend on all bits of all values.
//
// For duo, the program needs `--sparse yes`, and was changed to keep the lower
// of two random bits, since others mean a missing value. Pairs are left out:
// there it divides in another order.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/contract/metrics.hpp"
#include "core/search/triples.hpp"
#include "cpu/triples/triples.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

constexpr std::uint64_t kRandoms = 714025;

std::uint64_t randomized(std::uint64_t x) {
  return (x * 4096 + 150889) % kRandoms;
}

int bits_needed(std::uint64_t x) {
  int bits = 0;
  for (std::uint64_t rest = x - 1; rest > 0; rest >>= 1) ++bits;
  return bits;
}

/// Three shuffles, each chosen by one bit: first the numbers at even places,
/// or first those at odd ones.
std::uint64_t permuted(std::uint64_t key, std::uint64_t i, std::uint64_t n) {
  for (int shuffle = 0; shuffle < 3; ++shuffle, key >>= 1) {
    const std::uint64_t odd = key & 1, half = (n + 1 - odd) / 2;
    i = i < half ? 2 * i + odd : 2 * (i - half) + 1 - odd;
  }
  return i;
}

/// The value of a feature of a vector, of n vectors of d features.
struct Problem {
  bool random;
  int copies;  ///< of alleles; 0: the values are large whole numbers
  int num_way;
  std::uint64_t n, d;

  double value(std::uint64_t vector, std::uint64_t feature) const {
    return random ? of_random(feature + d * vector)
                  : of_analytic(vector, feature);
  }

 private:
  /// The number of alleles in two bits.
  double count_of(std::uint64_t two_bits) const {
    return static_cast<double>((two_bits & 1) +
                               (copies == 2 ? two_bits >> 1 : 0));
  }
  double of_random(std::uint64_t id) const {
    const std::uint64_t twice = randomized(randomized(id));
    if (copies > 0) {
      const float share =
          static_cast<float>(twice) / static_cast<float>(kRandoms);
      return count_of(
          static_cast<std::uint64_t>((4. - 1e-5) * static_cast<double>(share)));
    }
    const std::uint64_t most = kRandoms * kRandoms;
    const int shift = std::max(
        {0, bits_needed(2 * most * d) - 53 + 1, bits_needed(most) - 24 + 1});
    return static_cast<double>((twice + kRandoms * randomized(twice)) >> shift);
  }
  double of_analytic(std::uint64_t vector, std::uint64_t feature) const {
    const std::uint64_t most_exact = std::uint64_t{1} << (copies > 0 ? 53 : 24);
    const std::uint64_t terms = copies > 0 ? 1 : num_way == 2 ? 2 : 4;
    const std::uint64_t most = std::min(1 + n, (most_exact - 1) / (terms * d));
    const std::uint64_t group = permuted(0, feature, d) / ((d + 7) / 8);
    const std::uint64_t part = permuted(group, vector, n) * most / (1 + n);
    return copies > 0 ? count_of(part & 3) : static_cast<double>(1 + part);
  }
};

/// Sums of products of 60 bits of the values and of random numbers of the
/// vectors and the entry, in numbers of 60 bits.
class CometChecksum {
 public:
  /// vectors: in descending order, as the digits of `entry` are; `entries`: of
  /// a table.
  void add(std::initializer_list<std::uint64_t> vectors, std::uint64_t n,
           std::uint64_t entry, std::uint64_t entries, double value) {
    std::uint64_t id = 0;
    for (const std::uint64_t v : vectors) id = id * n + v;
    id = id * entries + entry;
    const std::uint64_t random =
        (randomized(id + 956158765) + kRandoms * randomized(id + 842467637)) &
        kMask;
    const std::uint64_t whole =
        static_cast<std::uint64_t>(value / 16.0 * 0x1p60);
    const Wide product = static_cast<Wide>(random) * whole;
    low_ += static_cast<std::uint64_t>(product) & kMask;
    high_ += product >> 60;
  }
  std::string text() const {
    const Wide high = high_ + (low_ >> 60);
    return std::to_string(static_cast<std::uint64_t>(high >> 60)) + "-" +
           std::to_string(static_cast<std::uint64_t>(high) & kMask) + "-" +
           std::to_string(static_cast<std::uint64_t>(low_) & kMask);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 60) - 1;
  Wide low_ = 0, high_ = 0;
};

std::uint64_t unsigned_of(std::int64_t x) {
  return static_cast<std::uint64_t>(x);
}

double sum_of(Matrix& m, std::int64_t i) {
  double sum = 0.0;
  for (std::int64_t f = 0; f < m.d; ++f) sum += m.at(i, f);
  return sum;
}

std::string checksum_of_pairs(Matrix& m, const MetricEntry& metric) {
  CometChecksum sum;
  const std::uint64_t n = unsigned_of(m.n);
  for (std::int64_t j = 0; j < m.n; ++j)
    for (std::int64_t i = 0; i < j; ++i) {
      double both = 0.0;
      for (std::int64_t f = 0; f < m.d; ++f)
        both += metric.is_table() ? m.at(i, f) * m.at(j, f)
                                  : std::min(m.at(i, f), m.at(j, f));
      const double a = sum_of(m, j), b = sum_of(m, i);
      if (!metric.is_table())
        sum.add({unsigned_of(j), unsigned_of(i)}, n, 0, 1,
                metric.similarity(both, a, b));
      for (int at = 0; at < 4 && metric.is_table(); ++at)
        sum.add(
            {unsigned_of(j), unsigned_of(i)}, n, unsigned_of(at), 4,
            AlleleTable::entry_of(
                at / 2, at % 2, AlleleTable::complete(both, a, b, metric.table),
                metric.table));
    }
  return sum.text();
}

std::string checksum_of_triples(Matrix& m, const MetricEntry& metric) {
  CometChecksum sum;
  Request request;
  request.metric = &metric;
  const auto source = m.source();
  const std::uint64_t n = unsigned_of(m.n);
  const std::vector<Triple> triples =
      cpu::find_triples(request, TripleQuestion(), source, nullptr).triples;
  CHECK(triples.size() ==
        static_cast<std::size_t>(m.n * (m.n - 1) * (m.n - 2) / 6));
  const MetricEntry own = metric.is_table() ? for_samples(metric, m.d) : metric;
  for (const Triple& t : triples) {
    const std::uint64_t i = unsigned_of(t.from), j = unsigned_of(t.to),
                        k = unsigned_of(t.third);
    if (!metric.is_table()) {
      sum.add({k, j, i}, n, 0, 1, t.similarity);
      continue;
    }
    ThreeSums s = {0.0,
                   0.0,
                   0.0,
                   0.0,
                   sum_of(m, t.third),
                   sum_of(m, t.to),
                   sum_of(m, t.from)};
    for (std::int64_t f = 0; f < m.d; ++f) {
      const double x = m.at(t.third, f), y = m.at(t.to, f), z = m.at(t.from, f);
      s.abc += x * y * z;
      s.ab += x * y;
      s.ac += x * z;
      s.bc += y * z;
    }
    double most = 0.0;
    for (int at = 0; at < 8; ++at) {
      const double entry =
          AlleleTable::entry_of(at / 4, at / 2 % 2, at % 2, s, own.table);
      sum.add({k, j, i}, n, unsigned_of(at), 8, entry);
      most = std::max(most, entry);
    }
    CHECK(t.similarity == most);
  }
  return sum.text();
}

}  // namespace

TEST_CASE("CoMet's synthetic problems have its checksums") {
  struct Known {
    const char* metric;
    int num_way;
    bool random;
    std::int64_t n, d;
    const char* checksum;
  };
  const Known all[] = {
      {"proportional", 2, true, 6, 10, "0-288061886167-117049029359701192"},
      {"proportional", 2, false, 6, 10, "0-234680602828-389251938489412440"},
      {"proportional", 3, true, 6, 10, "0-311265752041-22449158034114992"},
      {"proportional", 3, false, 6, 10, "0-275395019587-836661744054387112"},
      {"ccc", 2, true, 6, 10, "0-260672759317-201772957725474400"},
      {"ccc", 2, false, 6, 10, "0-311386751015-117643153705306524"},
      {"ccc", 3, true, 6, 10, "0-239909584303-367340370766026536"},
      {"ccc", 3, false, 6, 10, "0-311391512776-816853748479556385"},
      {"proportional", 2, true, 13, 37, "0-684519297644-908664941614836956"},
      {"proportional", 2, false, 13, 37, "0-700760048716-670926202945067236"},
      {"proportional", 3, true, 13, 37, "0-4483045477427-576757570728544664"},
      {"proportional", 3, false, 13, 37, "0-4545272181858-335257691880534560"},
      {"ccc", 2, true, 13, 37, "0-2002530674701-77259749149081282"},
      {"ccc", 2, false, 13, 37, "0-2250747319953-262779966479872814"},
      {"ccc", 3, true, 13, 37, "0-5007349470574-1104583301008423484"},
      {"ccc", 3, false, 13, 37, "0-5926784456064-866657896970689139"},
      {"proportional", 2, true, 24, 200, "0-2997802320521-72547110041305116"},
      {"proportional", 2, false, 24, 200, "0-2920461356104-925509365834514776"},
      {"proportional", 3, true, 24, 200,
       "0-24012170215370-1074847690241609240"},
      {"proportional", 3, false, 24, 200,
       "0-23546250510462-287899509656562664"},
      {"ccc", 2, true, 24, 200, "0-8719234849708-797940485304591540"},
      {"ccc", 2, false, 24, 200, "0-8792318374786-993298454234251580"},
      {"ccc", 3, true, 24, 200, "0-42507889512488-112306399350488436"},
      {"ccc", 3, false, 24, 200, "0-43075029246595-367101631344905840"},
      {"duo", 3, true, 6, 10, "0-44738168126-1031668748404524105"},
      {"duo", 3, true, 13, 37, "0-2290493818960-586450160808307930"},
      {"duo", 3, true, 24, 200, "0-36665663712128-691479476654662938"},
  };
  for (const Known& known : all) {
    CAPTURE(known.metric);
    CAPTURE(known.num_way);
    CAPTURE(known.random);
    CAPTURE(known.n);
    const MetricEntry& metric = find_metric(known.metric, "signed");
    const Problem problem = {
        known.random, static_cast<int>(metric.table.copies), known.num_way,
        unsigned_of(known.n), unsigned_of(known.d)};
    Matrix m = make("synthetic", known.n, known.d);
    for (std::int64_t i = 0; i < m.n; ++i)
      for (std::int64_t f = 0; f < m.d; ++f)
        m.at(i, f) = problem.value(unsigned_of(i), unsigned_of(f));
    const std::string found =
        known.num_way == 2
            ? checksum_of_pairs(
                  m, metric.is_table() ? for_samples(metric, m.d) : metric)
            : checksum_of_triples(m, metric);
    CHECK(found == known.checksum);
  }
}
