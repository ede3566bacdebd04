// Pairs of two blocks against the definition, bit for bit; and answers for all
// points that are merged from such pairs.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "answers.hpp"
#include "core/base/errors.hpp"
#include "core/rows/metafeatures.hpp"
#include "core/rows/scan.hpp"
#include "core/search/between.hpp"
#include "core/search/brute.hpp"
#include "core/search/merged_lists.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "metric_cases.hpp"

using namespace fsknn;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

PartialLists lists_of(const Pairs& pairs) {
  PartialLists lists;
  lists.num_rows = static_cast<std::int64_t>(pairs.count.size());
  lists.num_entries = static_cast<std::int64_t>(pairs.index.size());
  lists.count = pairs.count.data();
  lists.index = pairs.index.data();
  lists.distance = pairs.distance.data();
  lists.correlation = pairs.correlation.data();
  return lists;
}

/// Whether this way finds an answer, or reports a distance beyond the range of
/// a double.
template <class Find>
bool in_range(Find find) {
  try {
    find();
  } catch (const RangeFailure&) {
    return false;
  }
  return true;
}

void check_same(Request r, const Between& between, const RowSource& points) {
  Pairs defined;
  const bool fits =
      in_range([&] { brute_between(r, between, points, defined); });
  const std::string set = r.instruction_set;
  for (const int threads : {1, 3})
    for (const char* order : {"", "/tree", "/sorted"}) {
      r.num_threads = threads;
      r.chunk_size = threads == 1 ? 0 : 48;
      r.instruction_set = set + order;
      CAPTURE(r.instruction_set);
      Pairs found;
      CHECK(in_range([&] {
              cpu::find_between(r, between, points, found, nullptr, nullptr);
            }) == fits);
      if (fits) CHECK(found == defined);
    }
}

/// Limits that are distances of pairs of the blocks, one for each row. Pairs at
/// exactly the limit are part of the answer.
std::vector<double> limits_at_neighbours(const Request& r, Between between,
                                         const RowSource& points,
                                         unsigned seed) {
  std::mt19937 random(seed);
  between.limits.clear();
  Request all = r;
  all.k = between.num_rows();
  Pairs part;
  brute_between(all, between, points, part);
  std::vector<double> limits;
  std::size_t first = 0;
  for (const std::int32_t count : part.count) {
    double limit = kInf;
    if (count > 0 && random() % 8 > 0)
      limit = part.distance[first + random() % static_cast<unsigned>(count)];
    if (random() % 3 == 0 && count > 0)
      limit =
          part.distance[first +
                        std::min<std::size_t>(static_cast<std::size_t>(r.k),
                                              static_cast<std::size_t>(count)) -
                        1];
    if (random() % 16 == 0) limit = -kInf;
    limits.push_back(limit);
    first += static_cast<std::size_t>(count);
  }
  return limits;
}

/// Divides all points into blocks of different sizes.
std::vector<Block> ragged(std::int64_t n, int count) {
  std::vector<Block> blocks;
  std::int64_t first = 0;
  for (int b = 0; b < count; ++b) {
    std::int64_t size = (n - first) / (count - b);
    if (b + 1 < count && b % 2 == 0) size = std::max<std::int64_t>(1, size / 3);
    blocks.push_back({first, size});
    first += size;
  }
  blocks.back().count = n - blocks.back().first;
  return blocks;
}

struct Whole {
  Answer answer;
  double pairs = 0;
  bool fits = false;
};

/// Searches all block pairs in random order, each from the limits known so far.
Whole by_blocks(const Request& r, const RowSource& points,
                const std::vector<Block>& blocks, unsigned seed) {
  const std::int64_t n = points.num_points();
  Whole whole = {Answer(n, r.k)};
  std::vector<std::pair<std::size_t, std::size_t>> tasks;
  for (std::size_t a = 0; a < blocks.size(); ++a)
    for (std::size_t b = a; b < blocks.size(); ++b) tasks.push_back({a, b});
  std::shuffle(tasks.begin(), tasks.end(), std::mt19937(seed));
  MergedLists lists(n, r.k, true);
  whole.fits = in_range([&] {
    for (const auto& task : tasks) {
      Between between;
      between.a = blocks[task.first];
      if (task.first != task.second) between.b = blocks[task.second];
      for (const Block& block : {between.a, between.b})
        for (std::int64_t i = block.first; i < block.end(); ++i)
          between.limits.push_back(
              lists.limit(PointId{static_cast<std::int32_t>(i)}));
      Pairs part;
      Stats stats;
      cpu::find_between(r, between, points, part, nullptr, &stats);
      whole.pairs += stats.pairs_filtered;
      for (int twice = 0; twice <= static_cast<int>(seed % 2); ++twice)
        lists.merge(between.a, between.b, lists_of(part), r.num_threads);
    }
    lists.emit(whole.answer.view, r.skip, r.num_threads);
  });
  return whole;
}

Request request_of(const MetricEntry& metric, std::int64_t k) {
  Request r;
  r.k = k;
  r.metric = &metric;
  return r;
}

}  // namespace

TEST_CASE("block pairs find what the definition finds, within their limits") {
  std::vector<Matrix> matrices = hard_cases(90, 11);
  matrices.push_back(normal("normal", 330, 20, 80));
  unsigned seed = 0;
  for (const Matrix& hard : matrices) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, hard);
      INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
      CAPTURE(m.name);
      const auto points = m.source();
      Request r = request_of(metric, 1 + seed % 7);
      r.skip = unfit(metric, m);
      Between pair;
      pair.a = {3, m.n / 3};
      pair.b = {m.n / 3 + 9, m.n - m.n / 3 - 12};
      Between alone;
      alone.a = pair.b;
      for (Between between : {pair, alone}) {
        check_same(r, between, points);
        if (!in_range([&] {
              between.limits = limits_at_neighbours(r, between, points, ++seed);
            }))
          continue;
        check_same(r, between, points);
      }
    }
  }
}

TEST_CASE("all points' neighbours are put together of block pairs") {
  std::vector<Matrix> matrices = hard_cases(75, 9);
  matrices.push_back(ties(140, 6, 2, 91));
  unsigned seed = 0;
  for (const Matrix& hard : matrices) {
    for (const MetricEntry& metric : all_metrics()) {
      const Matrix m = fit(metric, hard);
      INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
      CAPTURE(m.name);
      const auto points = m.source();
      Request r = request_of(metric, 3);
      r.skip = unfit(metric, m);
      if (m.n - static_cast<std::int64_t>(r.skip.size()) <= r.k) continue;
      Answer defined(m.n, r.k);
      const bool fits =
          in_range([&] { brute_force(r, points, nullptr, defined.view); });
      for (const int count : {1, 3, 5}) {
        const Whole whole = by_blocks(r, points, ragged(m.n, count), ++seed);
        CHECK(whole.fits == fits);
        if (fits) CHECK(whole.answer == defined);
      }
    }
  }
}

TEST_CASE("long lists are put together of block pairs") {
  unsigned seed = 0;
  for (const Matrix& m : {normal("normal", 240, 9, 92), ties(240, 6, 2, 93)})
    for (const std::int64_t k : {66, 239})
      for (const int count : {1, 2, 3}) {
        CAPTURE(m.name);
        CAPTURE(k);
        CAPTURE(count);
        const auto points = m.source();
        const Request r = request_of(find_metric("euclidean", "signed"), k);
        Answer defined(m.n, k);
        brute_force(r, points, nullptr, defined.view);
        const Whole whole = by_blocks(r, points, ragged(m.n, count), ++seed);
        CHECK(whole.fits);
        CHECK(whole.answer == defined);
      }
}

TEST_CASE("lists may be longer than blocks, and points stand alone") {
  for (const MetricEntry& metric : all_metrics()) {
    INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
    const Matrix m = fit(metric, normal("normal", 40, 7, 5));
    Request r = request_of(metric, 30);
    r.skip = {0, 11, 12, 13};
    Answer defined(m.n, r.k);
    brute_force(r, m.source(), nullptr, defined.view);
    std::vector<Block> blocks = ragged(m.n, 7);
    // One block has only skipped points.
    blocks = {{0, 1}, {1, 10}, {11, 3}, {14, 1}, {15, 25}};
    CHECK(by_blocks(r, m.source(), blocks, 4).answer == defined);
    blocks.clear();
    for (std::int64_t i = 0; i < m.n; ++i) blocks.push_back({i, 1});
    CHECK(by_blocks(r, m.source(), blocks, 5).answer == defined);
  }
}

TEST_CASE("every instruction set finds the same between blocks") {
  const Matrix some = normal("normal", 260, 35, 15);
  for (const cpu::Kernels* kernels : cpu::available_kernels())
    for (const MetricEntry& metric : all_metrics()) {
      INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
      INFO(std::string(kernels->name));
      const Matrix m = fit(metric, some);
      Request r = request_of(metric, 9);
      r.instruction_set = kernels->name;
      Between between;
      between.a = {0, 101};
      between.b = {101, 159};
      check_same(r, between, m.source());
      between.limits = limits_at_neighbours(r, between, m.source(), 3);
      check_same(r, between, m.source());
    }
}

TEST_CASE("each pair of points is met once") {
  const Matrix m = normal("normal", 1201, 30, 3);
  for (const MetricEntry& metric : all_metrics()) {
    if (metric.filter == FilterKind::none) continue;
    INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
    const Matrix fitted = fit(metric, m);
    Request r = request_of(metric, 5);
    r.num_threads = 2;
    const double all = 1201.0 * 1200.0 / 2;
    for (const int count : {1, 3, 5}) {
      const Whole whole = by_blocks(r, fitted.source(), ragged(m.n, count), 2);
      CHECK(whole.pairs >= all);
      CHECK(whole.pairs < 1.05 * all);
    }
  }
}

TEST_CASE("boxes prune pairs between blocks, for both of them") {
  // Clusters in a scattered order; each block has points of all.
  Matrix m = normal("clusters", 1500, 12, 6);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) +=
          static_cast<double>(30 * ((i * i + i / 7) % 19 * (f + 3) % 7));
  for (const char* name : {"euclidean", "manhattan", "chebyshev", "pearson"}) {
    CAPTURE(name);
    Request r = request_of(find_metric(name, "signed"), 5);
    Between between;
    between.a = {0, 700};
    between.b = {700, 800};
    check_same(r, between, m.source());
    r.instruction_set = "auto/tree";
    Pairs found;
    Stats stats;
    cpu::find_between(r, between, m.source(), found, nullptr, &stats);
    CHECK(stats.pairs_filtered + stats.pairs_pruned == 700.0 * 800.0);
    CHECK(stats.pairs_pruned > 0.1 * 700.0 * 800.0);
  }
}

TEST_CASE("limits leave little for the exact step") {
  const Matrix m = normal("normal", 1200, 30, 4);
  for (const MetricEntry& metric : all_metrics()) {
    if (metric.filter == FilterKind::none) continue;
    INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
    const Matrix fitted = fit(metric, m);
    const auto points = fitted.source();
    const Request r = request_of(metric, 5);
    Between between;
    between.a = {0, 600};
    between.b = {600, 600};
    Pairs open, tight, none;
    Stats of_open, of_tight, of_none;
    cpu::find_between(r, between, points, open, nullptr, &of_open);
    for (std::size_t i = 0; i < open.count.size(); ++i)
      between.limits.push_back(open.distance[5 * i]);
    cpu::find_between(r, between, points, tight, nullptr, &of_tight);
    CHECK(of_tight.pairs_exact < of_open.pairs_exact);
    for (const std::int32_t count : tight.count) CHECK(count >= 1);
    between.limits.assign(between.limits.size(), -kInf);
    cpu::find_between(r, between, points, none, nullptr, &of_none);
    CHECK(none.index.empty());
    CHECK(of_none.pairs_exact == 0);
  }
}

TEST_CASE("limits that no distance has, and that all have") {
  const double odd[] = {0.0,    -0.0,  -1.0,    -5e300, 5e-324,
                        1e-300, 1e300, 1.0,     2.0,    std::nextafter(2.0, 3),
                        kInf,   -kInf, 1.7e308, 0.5};
  std::vector<Matrix> matrices;
  matrices.push_back(ties(80, 6, 2, 31));
  matrices.push_back(normal("normal", 80, 6, 32));
  for (double& x : matrices[1].values) x *= 1e-160;
  matrices.push_back(normal("near the largest double", 80, 6, 33));
  for (double& x : matrices[2].values) x *= 1e307;
  for (const Matrix& some : matrices)
    for (const MetricEntry& metric : all_metrics()) {
      INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
      CAPTURE(some.name);
      const Matrix m = fit(metric, some);
      Request r = request_of(metric, 4);
      r.skip = unfit(metric, m);
      for (const bool mixed : {false, true})
        for (std::size_t o = 0; o < std::size(odd); ++o) {
          Between between;
          between.a = {0, 31};
          between.b = {31, 49};
          for (std::size_t i = 0; i < 80; ++i)
            between.limits.push_back(
                odd[mixed ? (i * i + o) % std::size(odd) : o]);
          check_same(r, between, m.source());
        }
    }
  Between between;
  between.a = {0, 2};
  between.limits = {1.0, std::nan("")};
  Pairs part;
  const Request r = request_of(all_metrics()[0], 1);
  CHECK_THROWS_AS(brute_between(r, between, matrices[0].source(), part),
                  std::invalid_argument);
}

TEST_CASE("points that are made when they are read meet by blocks") {
  const Matrix m = normal("normal", 14, 12, 8);
  const auto small = m.source();
  MetafeatureOrder order;
  order.num_rows = 14;
  order.num_operators = 2;
  order.operators[0] = PairOperator::plus;
  order.operators[1] = PairOperator::minus;
  const MetafeatureSource points(small, order);
  for (const char* name : {"pearson", "euclidean", "manhattan"}) {
    Request r = request_of(find_metric(name, "signed"), 4);
    const std::int64_t n = points.num_points();
    Answer defined(n, r.k);
    brute_force(r, points, nullptr, defined.view);
    CHECK(by_blocks(r, points, ragged(n, 3), 6).answer == defined);
  }
}

TEST_CASE("all pairs within a distance are put together, too") {
  for (const Matrix& hard : {ties(90, 7, 3, 41), normal("normal", 90, 7, 42),
                             near_ties(90, 7, 1e-12, 43)})
    for (const MetricEntry& metric : all_metrics()) {
      INFO(std::string(metric.name), " ", std::string(sign_name(metric.sign)));
      CAPTURE(hard.name);
      const Matrix m = fit(metric, hard);
      const auto points = m.source();
      Request r = request_of(metric, 1);
      r.skip = unfit(metric, m);
      Between all;
      all.a = {0, m.n};
      const std::vector<double> of_each =
          limits_at_neighbours(r, all, points, 44);
      for (const bool several : {false, true})
        for (const bool once : {false, true}) {
          Within within;
          within.limits = of_each;
          if (!several) within.limits.resize(1);
          if (!several && !std::isfinite(of_each[0])) within.limits[0] = 0.7;
          within.once = once;
          Pairs defined, found;
          brute_within(r, within, points, nullptr, defined);
          WithinCollector collector(r, within, m.n, true);
          const std::vector<Block> blocks = ragged(m.n, 3);
          for (std::size_t a = 0; a < 3; ++a)
            for (std::size_t b = a; b < 3; ++b) {
              Between between;
              between.a = blocks[a];
              if (a != b) between.b = blocks[b];
              Pairs part, brute;
              within_between(
                  r, between, within, points,
                  [](const Request& own, const Within& w, const RowSource& p,
                     const RowSource* q, WithinAnswer& to) {
                    cpu::find_within(own, w, p, q, to, nullptr, nullptr);
                  },
                  part);
              within_between(
                  r, between, within, points,
                  [](const Request& own, const Within& w, const RowSource& p,
                     const RowSource* q,
                     WithinAnswer& to) { brute_within(own, w, p, q, to); },
                  brute);
              CHECK(part == brute);
              WithinCollector::Taker taker(collector);
              std::size_t e = 0;
              for (std::size_t i = 0; i < part.count.size(); ++i)
                for (std::int32_t c = 0; c < part.count[i]; ++c, ++e)
                  taker.take(
                      AnswerRow::of(between.a.first +
                                    static_cast<std::int64_t>(i)),
                      PointId{part.index[e] - 1 +
                              static_cast<std::int32_t>(blocks[b].first)},
                      metric.is_unit_dot() ? part.correlation[e]
                                           : part.distance[e]);
            }
          CHECK(collector.allocate(found));
          collector.finish();
          CHECK(found == defined);
        }
    }
}

TEST_CASE("lists that are none are refused, and nothing is taken of them") {
  MergedLists lists(6, 2, false);
  Pairs part;
  part.allocate({1, 2, 0});
  part.index = {5, 4, 6};
  part.distance = {0.5, 0.25, 0.75};
  const Block a = {1, 2}, b = {4, 1};
  lists.merge(a, b, lists_of(part), 2);
  CHECK(lists.limit(PointId{2}) == 0.75);
  CHECK(lists.limit(PointId{1}) == kInf);
  const auto refused = [&](auto change) {
    Pairs wrong = part;
    change(wrong);
    CHECK_THROWS_AS(lists.merge(a, b, lists_of(wrong), 1),
                    std::invalid_argument);
  };
  refused([](Pairs& p) { p.count[2] = 1; });
  refused([](Pairs& p) { p.count[0] = -1; });
  refused([](Pairs& p) { p.index[0] = 7; });
  refused([](Pairs& p) { p.index[0] = 0; });
  refused([](Pairs& p) { p.index[0] = 2; });
  refused([](Pairs& p) {
    p.index[1] = 6;
    p.distance[1] = 0.75;
  });
  refused([](Pairs& p) { p.distance[2] = 0.1; });
  refused([](Pairs& p) { p.distance[2] = kInf; });
  refused([](Pairs& p) { p.distance[0] = std::nan(""); });
  CHECK(lists.limit(PointId{2}) == 0.75);
  Answer answer(6, 2);
  CHECK_THROWS_AS(lists.emit(answer.view, {}, 1), std::invalid_argument);
  answer.view.correlation = nullptr;
  CHECK_THROWS_AS(lists.emit(answer.view, {}, 1), RangeFailure);
  lists.emit(answer.view, {0, 1, 3, 4, 5}, 1);
  CHECK(answer.index[2] == 4);
  CHECK(answer.index[8] == 6);
}

TEST_CASE("there must be such blocks") {
  const Matrix m = normal("normal", 10, 3, 1);
  const Request r = request_of(all_metrics()[0], 1);
  Pairs part;
  const auto refused = [&](Block a, Block b, const Request& request) {
    Between between;
    between.a = a;
    between.b = b;
    CHECK_THROWS_AS(
        cpu::find_between(request, between, m.source(), part, nullptr, nullptr),
        std::invalid_argument);
  };
  refused({0, 11}, {}, r);
  refused({-1, 3}, {}, r);
  refused({3, 3}, {5, 2}, r);
  refused({3, 3}, {0, 3}, r);
  refused({0, 5}, {5, 6}, r);
  Request pairwise = r;
  pairwise.na_pairwise = true;
  refused({0, 5}, {}, pairwise);
}
