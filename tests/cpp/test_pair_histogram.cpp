// Counts of all pairs in bins, against those of the definition's values, one by
// one; and connectivities against sums over them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/contract/metrics.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "core/search/within.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "masked_cases.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// All pairs of brute_within(), each once.
class AllPairs final : public WithinRows {
 public:
  struct Entry {
    double distance, correlation, similarity;
    std::int32_t row, column;
  };
  /// asked: for any data. The metric of wide data is another entry of the
  /// table.
  AllPairs(const Request& asked, const Matrix& m)
      : request_(suited(asked, m.source(), nullptr)),
        metric_(*request_.metric),
        points_(prepare_points(
            m.source(),
            recipe_of(request_,
                      common_exponent(request_, m.source(), nullptr, 1)),
            request_.skip, false, &prepare_row<ScalarLanes>, 1)) {
    Within all;
    all.limits = {kInf};
    all.once = true;
    brute_within(request_, all, m.source(), nullptr, *this);
  }
  void allocate(const std::vector<std::int32_t>& counts) override {
    for (const std::int32_t count : counts) {
      const std::size_t size = static_cast<std::size_t>(count);
      index_.emplace_back(size);
      distance_.emplace_back(size);
      correlation_.emplace_back(size);
    }
  }
  Row row(std::int64_t row) override {
    const std::size_t at = static_cast<std::size_t>(row);
    return {index_[at].data(), distance_[at].data(), correlation_[at].data()};
  }
  std::vector<Entry> entries() const {
    std::vector<Entry> all;
    for (std::size_t i = 0; i < index_.size(); ++i)
      for (std::size_t e = 0; e < index_[i].size(); ++e)
        all.push_back({distance_[i][e], correlation_[i][e],
                       similarity(i, index_[i][e] - 1),
                       static_cast<std::int32_t>(i), index_[i][e] - 1});
    return all;
  }

 private:
  /// For metrics of sum min(a, b); else NaN.
  double similarity(std::size_t i, std::int32_t j) const {
    if (metric_.similarity_by == nullptr)
      return std::numeric_limits<double>::quiet_NaN();
    const Place a = points_.order.place_of(PointId{static_cast<int>(i)});
    const Place b = points_.order.place_of(PointId{j});
    return metric_.similarity(scalar_sum(metric_.accumulation, points_.row(a),
                                         points_.row(b), points_.padded),
                              points_.sums[a.value], points_.sums[b.value]);
  }

  const Request request_;
  const MetricEntry& metric_;
  const PreparedPoints points_;
  std::vector<std::vector<std::int32_t>> index_;
  std::vector<std::vector<double>> distance_, correlation_;
};

double value_of(const MetricEntry& metric, bool similarity,
                const AllPairs::Entry& pair) {
  if (!similarity) return pair.distance;
  if (!metric.is_unit_dot()) return pair.similarity;
  if (metric.sign == Sign::absolute) return std::fabs(pair.correlation);
  return metric.sign == Sign::negative ? -pair.correlation : pair.correlation;
}

std::vector<std::int64_t> naive_counts(const std::vector<double>& values,
                                       const std::vector<double>& breaks) {
  std::vector<std::int64_t> count(breaks.size() + 1, 0);
  for (const double v : values) {
    auto slot = static_cast<std::size_t>(
        std::upper_bound(breaks.begin(), breaks.end(), v) - breaks.begin());
    if (v == breaks.back()) --slot;
    ++count[slot];
  }
  return count;
}

std::vector<double> ascending(std::vector<double> breaks) {
  std::sort(breaks.begin(), breaks.end());
  breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
  return breaks;
}

/// Breaks at existing values, beside them, and at both infinities; wide and
/// narrow bins.
std::vector<std::vector<double>> hard_breaks(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(
        share * static_cast<double>(values.size() - 1))];
  };
  std::vector<std::vector<double>> all = {
      {-kInf, kInf}, {0.0, 1.0}, {-kInf, 0.0}, {-1.0, 0.0, 1.0, kInf}};
  std::vector<double> ties, beside, fine;
  for (const double share : {0.0, 0.1, 0.4, 0.7, 1.0}) {
    ties.push_back(at(share));
    beside.push_back(std::nextafter(at(share), kInf));
    beside.push_back(std::nextafter(at(share), -kInf));
    for (const double gap : {1e-15, 1e-12, 1e-7})
      beside.push_back(at(share) * (1.0 + gap));
  }
  for (int b = 0; b <= 3000; ++b)
    fine.push_back(at(0.0) * (1.0 - b / 3000.0) + at(1.0) * (b / 3000.0));
  for (const auto& breaks : {ties, beside, fine}) {
    const std::vector<double> sorted = ascending(breaks);
    if (sorted.size() > 1) all.push_back(sorted);
  }
  std::vector<double> open = ascending(ties);
  open.insert(open.begin(), -kInf);
  open.push_back(kInf);
  all.push_back(open);
  return all;
}

void check_counts(const Request& asked, const Matrix& m, bool similarity,
                  const std::vector<AllPairs::Entry>& pairs) {
  const MetricEntry& metric = *asked.metric;
  std::vector<double> values;
  for (const AllPairs::Entry& pair : pairs)
    values.push_back(value_of(metric, similarity, pair));
  if (values.empty()) return;
  Request r = asked;
  PairBins bins;
  bins.similarity = similarity;
  for (const std::vector<double>& breaks : hard_breaks(values)) {
    bins.breaks = breaks;
    const std::vector<std::int64_t> defined = naive_counts(values, breaks);
    for (const char* set : {"auto", "auto/scattered", "auto/tree"}) {
      r.instruction_set = set;
      r.num_threads = r.instruction_set == "auto" ? 1 : 3;
      r.chunk_size = r.num_threads == 1 ? 0 : 48;
      CAPTURE(set);
      bins.extremes = false;
      const PairCounts found =
          cpu::count_pairs(r, bins, m.source(), nullptr, nullptr);
      CHECK(found.count == defined);
      CHECK(found.num_points ==
            m.n - static_cast<std::int64_t>(asked.skip.size()));
    }
    bins.extremes = true;
    const PairCounts found =
        cpu::count_pairs(r, bins, m.source(), nullptr, nullptr);
    CHECK(found.count == defined);
    CHECK(found.least == *std::min_element(values.begin(), values.end()));
    CHECK(found.largest == *std::max_element(values.begin(), values.end()));
  }
}

}  // namespace

TEST_CASE("pairs are counted in the bins of their values") {
  std::vector<Matrix> matrices = hard_cases(46, 11);
  matrices.push_back(normal("normal", 150, 40, 80));
  for (const Matrix& hard : matrices) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, hard);
      Request r;
      r.metric = &metric;
      r.skip = unfit(metric, m);
      CAPTURE(metric.name);
      CAPTURE(m.name);
      std::vector<AllPairs::Entry> pairs;
      try {
        pairs = AllPairs(r, m).entries();
      } catch (const RangeFailure&) {
        PairBins bins;
        bins.breaks = {0.0, 1.0, kInf};
        for (const char* set : {"auto", "auto/tree"}) {
          r.instruction_set = set;
          CHECK_THROWS_AS(
              cpu::count_pairs(r, bins, m.source(), nullptr, nullptr),
              RangeFailure);
        }
        continue;
      }
      check_counts(r, m, false, pairs);
      if (metric.is_unit_dot() || metric.least_overlap != nullptr)
        check_counts(r, m, true, pairs);
    }
  }
}

TEST_CASE("the similarity of sums is rounded once, the distance is 1 less") {
  int lost = 0;
  for (const char* name : {"proportional", "sorensen", "jaccard"}) {
    const MetricEntry& metric = find_metric(name, "signed");
    for (int both = 0; both <= 20; ++both) {
      for (int a = std::max(both, 1); a <= 40; ++a) {
        const int b = both + (7 * a) % 23 + 1;
        const double similar = name[0] == 'j'
                                   ? both / static_cast<double>(a + b - both)
                                   : 2 * both / static_cast<double>(a + b);
        CHECK(metric.similarity(both, a, b) == similar);
        CHECK(metric.finish(both, a, b) == 1.0 - similar);
        lost += 1.0 - (1.0 - similar) != similar;
      }
    }
    // Rounding may make the sum larger than both rows' own.
    CHECK(metric.similarity(std::nextafter(1.0, 2.0), 1.0, 1.0) == 1.0);
    CHECK(metric.finish(std::nextafter(1.0, 2.0), 1.0, 1.0) == 0.0);
  }
  CHECK(lost > 100);
}

TEST_CASE("every instruction set counts alike, and the filter decides most") {
  const Matrix m = normal("normal", 400, 100, 81);
  for (const char* name : {"pearson", "euclidean"}) {
    Request r;
    r.metric = &find_metric(name, "signed");
    PairBins bins;
    for (int b = 0; b <= 20; ++b)
      bins.breaks.push_back(name[0] == 'p' ? 0.1 * b : 10.0 + 0.4 * b);
    const std::vector<AllPairs::Entry> pairs = AllPairs(r, m).entries();
    std::vector<double> values;
    for (const AllPairs::Entry& pair : pairs) values.push_back(pair.distance);
    const std::vector<std::int64_t> defined = naive_counts(values, bins.breaks);
    for (const cpu::Kernels* kernels : cpu::available_kernels()) {
      r.instruction_set = kernels->name;
      Stats stats;
      CHECK(cpu::count_pairs(r, bins, m.source(), nullptr, &stats).count ==
            defined);
      CHECK(stats.filter != FilterNumbers::none);
      CHECK(stats.pairs_exact < 0.1 * stats.pairs_filtered);
    }
  }
}

TEST_CASE("boxes count far pairs together") {
  // Clusters in a scattered order. Half of them are mirror images.
  Matrix m = normal("clusters", 1500, 12, 83);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f) {
      m.at(i, f) +=
          static_cast<double>(30 * ((i * i + i / 7) % 19 * (f + 3) % 7));
      if (i % 4 == 0) m.at(i, f) = -m.at(i, f);
    }
  const double all = 1500.0 * 1499.0 / 2;
  const auto pruned = [&](const MetricEntry& metric, bool similarity,
                          const std::vector<double>& breaks) {
    CAPTURE(metric.name);
    Request r;
    r.metric = &metric;
    const std::vector<AllPairs::Entry> pairs = AllPairs(r, m).entries();
    std::vector<double> values;
    for (const AllPairs::Entry& pair : pairs)
      values.push_back(value_of(metric, similarity, pair));
    PairBins bins;
    bins.similarity = similarity;
    bins.breaks = breaks;
    r.instruction_set = "auto/tree";
    r.num_threads = 2;
    Stats stats;
    CHECK(cpu::count_pairs(r, bins, m.source(), nullptr, &stats).count ==
          naive_counts(values, breaks));
    return stats.pairs_pruned;
  };
  for (const char* name : {"euclidean", "manhattan", "chebyshev"}) {
    const MetricEntry& metric = find_metric(name, "signed");
    CHECK(pruned(metric, false, {0.0, 5.0, 20.0}) > 0.3 * all);
    CHECK(pruned(metric, false, {0.0, 5.0, 20.0, kInf}) > 0.3 * all);
    CHECK(pruned(metric, false, {-kInf, kInf}) == 0.0);
    CHECK(pruned(metric, false, {-2.0, -1.0}) == 0.0);
  }
  for (const char* sign : {"signed", "absolute", "negative"}) {
    const MetricEntry& metric = find_metric("pearson", sign);
    CHECK(pruned(metric, true, {0.95, 0.99, 1.0}) > 0.2 * all);
    CHECK(pruned(metric, true, {-kInf, 0.95, 1.0}) > 0.2 * all);
    CHECK(pruned(metric, false, {0.0, 0.05}) > 0.2 * all);
    pruned(metric, true, {-0.5, 0.5});
    pruned(metric, true, {0.0, 0.5});
    pruned(metric, true, {1.5, 2.0});
  }
}

// The whole numbers of such a row are clipped. They give a lower bound on its
// distances, but no upper bound.
TEST_CASE("pairs of rows that were cut off are for the exact step") {
  Matrix m = normal("huge entries", 300, 40, 82);
  for (const std::int64_t i : {3, 50, 120})
    m.at(i, i % 40) = i == 50 ? -1e14 : 1e14;
  Request r;
  r.metric = &find_metric("euclidean", "signed");
  const std::vector<AllPairs::Entry> pairs = AllPairs(r, m).entries();
  std::vector<double> values;
  for (const AllPairs::Entry& pair : pairs) values.push_back(pair.distance);
  PairBins bins;
  for (int b = 0; b <= 10; ++b) bins.breaks.push_back(5.0 + b);
  // Breaks beyond the clipping, and one more at an existing value.
  for (const double b : {1e12, 1e13, 1e14}) bins.breaks.push_back(b);
  bins.breaks.push_back(*std::max_element(values.begin(), values.end()));
  const std::vector<std::int64_t> defined = naive_counts(values, bins.breaks);
  CHECK(defined[defined.size() - 2] > 0);
  Stats stats;
  CHECK(cpu::count_pairs(r, bins, m.source(), nullptr, &stats).count ==
        defined);
  CHECK(stats.pairs_exact >= 3 * 297 + 3);
  CHECK(stats.pairs_exact < 0.1 * stats.pairs_filtered);
}

TEST_CASE("pairs of rows of 0 and 1 are counted by what they share") {
  Matrix m = make("0 and 1", 150, 75);
  std::mt19937 random(86);
  for (double& x : m.values) x = random() % 3 == 0 ? 1.0 : 0.0;
  for (std::int64_t f = 0; f < m.d; ++f) {
    m.at(7, f) = m.at(130, f);
    m.at(8, f) = 0.0;
    m.at(9, f) = f == 74 ? 1.0 : 0.0;
  }
  Matrix other = m;
  other.at(149, 74) = 3.0;
  for (const char* name : {"jaccard", "sorensen", "proportional", "manhattan"})
    for (const cpu::Kernels* kernels : cpu::available_kernels()) {
      Request r;
      r.metric = &find_metric(name, "signed");
      r.instruction_set = kernels->name;
      r.skip = unfit(*r.metric, m);
      CAPTURE(name);
      CAPTURE(kernels->name);
      const std::vector<AllPairs::Entry> pairs = AllPairs(r, m).entries();
      check_counts(r, m, false, pairs);
      if (r.metric->least_overlap != nullptr) check_counts(r, m, true, pairs);
      PairBins bins;
      bins.breaks = {0.0, 1.0};
      Stats stats;
      cpu::count_pairs(r, bins, m.source(), nullptr, &stats);
      CHECK(stats.pairs_exact == 0.0);
      cpu::count_pairs(r, bins, other.source(), nullptr, &stats);
      CHECK(stats.pairs_exact > 0.0);
    }
}

TEST_CASE("distances of bits that no pair has are not beyond range") {
  // Every two rows differ in two features: 2^1023 times the root of 2. The
  // value for 4 features, in which two rows of two might differ, is no double.
  Matrix m = make("0 and 2^1023", 3, 3);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t f = 0; f < 3; ++f) m.at(i, f) = i == f ? 0.0 : 0x1p1023;
  Request r;
  r.metric = &find_metric("euclidean", "signed");
  PairBins bins;
  bins.breaks = {0.0, 0x1p1023, kInf};
  const auto counts = [&] {
    return cpu::count_pairs(r, bins, m.source(), nullptr, nullptr).count;
  };
  CHECK(counts() == std::vector<std::int64_t>{0, 0, 3, 0});
  m = make("all apart", 2, 4);
  for (std::int64_t f = 0; f < 4; ++f) m.at(f / 2, f) = 0x1p1023;
  CHECK_THROWS_AS(counts(), RangeFailure);
}

TEST_CASE("pairs over common samples are counted") {
  for (const Matrix& m : masked_cases(40, 13)) {
    for (const char* name : {"pearson", "spearman", "euclidean", "manhattan"}) {
      Request r;
      r.metric = &find_metric(name, "signed");
      r.na_pairwise = true;
      CAPTURE(name);
      CAPTURE(m.name);
      std::vector<AllPairs::Entry> pairs;
      try {
        pairs = AllPairs(r, m).entries();
      } catch (const RangeFailure&) {
        continue;
      }
      check_counts(r, m, false, pairs);
      if (r.metric->is_unit_dot()) check_counts(r, m, true, pairs);
    }
  }
}

TEST_CASE("connectivities are sums over all pairs, alike for any threads") {
  const std::vector<double> powers = {6.0, 1.0, 2.5, 20.0, 65.0};
  std::vector<Matrix> matrices = {
      normal("normal", 1100, 20, 82), ties(90, 7, 3, 83),
      with_holes(normal("holes", 80, 12, 84), 0.3, 85)};
  for (const Matrix& m : matrices) {
    Request r;
    r.metric = &find_metric("pearson", "signed");
    r.na_pairwise = m.name == "holes";
    if (!r.na_pairwise) r.skip = unfit(*r.metric, m);
    const std::vector<AllPairs::Entry> pairs = AllPairs(r, m).entries();
    using cpu::NetworkType;
    for (const NetworkType type :
         {NetworkType::magnitude, NetworkType::both_signs,
          NetworkType::positive}) {
      const std::size_t n = static_cast<std::size_t>(m.n);
      std::vector<double> sums(n * powers.size(), 0.0), found, again;
      for (const AllPairs::Entry& pair : pairs) {
        const double v = pair.correlation;
        const double s = type == NetworkType::magnitude    ? std::fabs(v)
                         : type == NetworkType::both_signs ? (1.0 + v) / 2.0
                                                           : std::fmax(v, 0.0);
        for (std::size_t p = 0; p < powers.size(); ++p) {
          sums[p * n + static_cast<std::size_t>(pair.row)] +=
              std::pow(s, powers[p]);
          sums[p * n + static_cast<std::size_t>(pair.column)] +=
              std::pow(s, powers[p]);
        }
      }
      found.resize(sums.size());
      again.resize(sums.size());
      r.num_threads = 1;
      cpu::connectivities(r, type, powers, m.source(), -7.0, found.data(),
                          nullptr);
      r.num_threads = 3;
      r.instruction_set = "baseline";
      cpu::connectivities(r, type, powers, m.source(), -7.0, again.data(),
                          nullptr);
      r.instruction_set = "auto";
      CHECK(found == again);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const bool skipped = std::count(r.skip.begin(), r.skip.end(),
                                        static_cast<std::int64_t>(i % n)) > 0;
        if (skipped)
          CHECK(found[i] == -7.0);
        else
          CHECK(found[i] == doctest::Approx(sums[i]).epsilon(1e-12));
      }
    }
  }
}
