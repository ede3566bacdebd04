// Lists that are too long to be kept sorted: they are cut and sorted by cells
// of distance. They follow the order by (distance, index), and searches with
// them equal the definition bit for bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/base/select.hpp"
#include "core/search/brute.hpp"
#include "core/search/plan.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "cpu/search/lists.hpp"
#include "cpu/search/nearest.hpp"

using namespace fsknn;

namespace {

using Entry = std::pair<double, std::int32_t>;

struct Distances {
  std::string name;
  std::vector<double> values;
};

/// Distances that are hard for cells of equal width.
std::vector<Distances> hard_distances(std::size_t size) {
  std::mt19937 random(7);
  std::normal_distribution<double> draw;
  const auto make = [&](const char* name, auto value) {
    Distances d = {name, {}};
    for (std::size_t i = 0; i < size; ++i) d.values.push_back(value(i));
    return d;
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<Distances> all;
  all.push_back(make("normal", [&](std::size_t) { return draw(random); }));
  all.push_back(make("ties", [&](std::size_t) { return random() % 5 * 1.0; }));
  all.push_back(make("equal", [](std::size_t) { return 0.25; }));
  all.push_back(
      make("zeros", [](std::size_t i) { return i % 3 ? 0.0 : -0.0; }));
  all.push_back(make("a far one", [&](std::size_t i) {
    return i == size / 2 ? 1e300 : std::fabs(draw(random));
  }));
  all.push_back(make("next to each other", [&](std::size_t) {
    return 1.0 + static_cast<double>(random() % 3) * 0x1p-52;
  }));
  all.push_back(make("subnormal", [&](std::size_t) {
    return static_cast<double>(random() % 4) * 0x1p-1074;
  }));
  all.push_back(make("whole range", [&](std::size_t) {
    return draw(random) < 0 ? -1.7e308 * 0.9 : 1.7e308;
  }));
  all.push_back(make("infinite", [&](std::size_t) {
    const double x = draw(random);
    return x < -1 ? -inf : x > 1 ? inf : x;
  }));
  all.push_back(make("rising", [](std::size_t i) { return 1.0 * i; }));
  all.push_back(make("falling", [](std::size_t i) { return -1.0 * i; }));
  return all;
}

std::vector<Entry> entries_of(const Distances& d, unsigned seed) {
  std::vector<Entry> all;
  for (std::size_t i = 0; i < d.values.size(); ++i)
    all.push_back({d.values[i], static_cast<std::int32_t>(i)});
  std::mt19937 random(seed);
  if (seed > 0) std::shuffle(all.begin(), all.end(), random);
  return all;
}

void check_begins(const std::vector<Entry>& sorted, const double* distance,
                  const std::int32_t* index, std::int64_t k) {
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < k; ++r) {
    const Entry& right = sorted[static_cast<std::size_t>(r)];
    wrong += distance[r] != right.first || index[r] != right.second;
  }
  CHECK(wrong == 0);
}

/// On every instruction set, with one and two threads.
void check_search(const std::string& metric, const Matrix& m, const Matrix* q,
                  std::int64_t k) {
  Request r;
  r.metric = &find_metric(metric, "signed");
  r.k = k;
  CAPTURE(metric);
  CAPTURE(m.name);
  CAPTURE(k);
  const auto points = m.source();
  const auto asking = q != nullptr ? q->source() : points;
  const RowSource* const queries = q != nullptr ? &asking : nullptr;
  const std::int64_t rows = asking.num_points();
  const auto blank = [&] {
    std::unique_ptr<Answer> a(new Answer(rows, k));
    if (!r.metric->is_unit_dot()) a->view.correlation = nullptr;
    return a;
  };
  const auto right = blank();
  brute_force(r, points, queries, right->view);
  for (const cpu::Kernels* kernels : cpu::available_kernels()) {
    for (const int threads : {1, 2}) {
      r.instruction_set = kernels->name;
      r.num_threads = threads;
      r.chunk_size = threads == 1 ? 0 : 48;
      CAPTURE(kernels->name);
      CAPTURE(threads);
      const auto found = blank();
      cpu::find_neighbours(r, points, queries, found->view, nullptr, nullptr);
      CHECK(*found == *right);
    }
  }
}

}  // namespace

TEST_CASE("the nearest come first, the farthest of them last, or in order") {
  std::vector<cpu::Offered> some;
  for (const std::size_t size : {1u, 2u, 97u, 1500u}) {
    for (const Distances& hard : hard_distances(size)) {
      CAPTURE(hard.name);
      CAPTURE(size);
      const std::vector<Entry> all = entries_of(hard, 3);
      std::vector<Entry> sorted = all;
      std::sort(sorted.begin(), sorted.end());
      std::vector<double> distance;
      std::vector<std::int32_t> index;
      const auto start = [&] {
        distance.clear();
        index.clear();
        for (const Entry& entry : all) {
          distance.push_back(entry.first);
          index.push_back(entry.second);
        }
      };
      const std::int64_t n = static_cast<std::int64_t>(size);
      for (const std::int64_t k : {std::int64_t{1}, (n + 1) / 2,
                                   std::max<std::int64_t>(1, n - 1), n}) {
        start();
        cpu::put_nearest_first(distance.data(), index.data(), n, k, some);
        check_begins({sorted[static_cast<std::size_t>(k - 1)]},
                     distance.data() + (k - 1), index.data() + (k - 1), 1);
        std::vector<Entry> first;
        for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i)
          first.push_back({distance[i], index[i]});
        std::sort(first.begin(), first.end());
        CHECK(std::equal(first.begin(), first.end(), sorted.begin()));
      }
      start();
      cpu::sort_nearest(distance.data(), index.data(), n, some);
      check_begins(sorted, distance.data(), index.data(), n);
    }
  }
}

TEST_CASE("a long list keeps the nearest, and its limit is never too low") {
  constexpr std::int64_t n = 700;
  for (const std::int64_t k :
       {kLongestInOrder, kLongestInOrder + 1, std::int64_t{200}, n - 1, n}) {
    for (const Distances& hard : hard_distances(n)) {
      for (const unsigned seed : {0u, 1u}) {
        CAPTURE(hard.name);
        CAPTURE(k);
        const std::vector<Entry> all = entries_of(hard, seed);
        std::vector<Entry> sorted = all;
        std::sort(sorted.begin(), sorted.end());
        // There may be more offers than announced.
        for (const std::int64_t most : {n, std::int64_t{10}}) {
          cpu::NeighbourLists lists(3, k, most);
          const Place row = {1};
          bool sound = true;
          for (const Entry& entry : all) {
            if (!(entry.first > lists.limit(row)))
              lists.offer(row, entry.first, PointId{entry.second});
            sound = sound && !(lists.limit(row) <
                               sorted[static_cast<std::size_t>(k - 1)].first);
          }
          CHECK(sound);
          CHECK(lists.sort(row) == k);
          check_begins(sorted, lists.distances(row), lists.indices(row), k);
          CHECK(lists.sort(Place{0}) == 0);
          CHECK(lists.sort(Place{2}) == 0);
        }
      }
    }
  }
}

TEST_CASE("a long list that is not full has what it was offered") {
  cpu::NeighbourLists lists(1, 100, 1000);
  for (std::int32_t i = 0; i < 70; ++i)
    lists.offer(Place{0}, static_cast<double>(i % 7), PointId{i});
  CHECK(lists.sort(Place{0}) == 70);
  CHECK(lists.indices(Place{0})[0] == 0);
  CHECK(lists.indices(Place{0})[69] == 69);
}

TEST_CASE("searches for many neighbours equal the definition") {
  for (const char* metric : {"pearson", "euclidean", "inner_product",
                             "manhattan", "chebyshev", "canberra"}) {
    for (const std::int64_t k : {65, 128, 210}) {
      check_search(metric, normal("normal", 211, 13, 5), nullptr, k);
      check_search(metric, ties(211, 13, 3, 6), nullptr, k);
    }
    check_search(metric, near_ties(300, 9, 1e-9, 8), nullptr, 100);
    const Matrix points = normal("normal", 230, 13, 9);
    const Matrix queries = normal("queries", 61, 13, 10);
    const Matrix few = normal("few queries", 5, 13, 11);
    for (const std::int64_t k : {65, 229, 230}) {
      check_search(metric, points, &queries, k);
      check_search(metric, points, &few, k);
    }
  }
}

TEST_CASE("the plan counts the room that long lists take") {
  PlanInput in;
  in.num_points = 1000;
  in.num_features = 20;
  const auto working = [&](std::int64_t k) {
    in.k = k;
    return plan_cpu(in).bytes_working;
  };
  const double list = 12.0 * 1000;
  CHECK(working(64) - working(63) == doctest::Approx(list));
  CHECK(working(100) - working(64) == doctest::Approx((150 - 64) * list));
  CHECK(working(999) - working(64) == doctest::Approx((1000 - 64) * list));
}
