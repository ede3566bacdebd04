// Small parts of the core.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "core/base/select.hpp"
#include "core/contract/arithmetic.hpp"
#include "core/contract/prepare.hpp"
#include "core/contract/row_scratch.hpp"
#include "core/rows/order.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "core/search/plan.hpp"
#include "cpu/kernels/kernels.hpp"

using namespace fsknn;

TEST_CASE("exponents and powers of two cover all doubles") {
  for (int e = -1074; e <= 1023; ++e) {
    const double x = std::ldexp(1.0, e);
    CHECK(exponent_of(x) == e);
    const PowerOfTwo down = power_of_two(-e), up = power_of_two(e);
    CHECK((x * down.first) * down.second == 1.0);
    CHECK((1.0 * up.first) * up.second == x);
  }
  CHECK(exponent_of(std::numeric_limits<double>::max()) == 1023);
  CHECK(exponent_of(1.75) == 0);
}

TEST_CASE("the order of a sum is the contract's") {
  // 16 features: lane l sums f = l and f = l + 8, and lanes are joined as l +
  // 4, l + 2, l + 1. Powers of two far from each other reveal any other order.
  double a[16], ones[16];
  for (int f = 0; f < 16; ++f) {
    ones[f] = 1.0;
    a[f] = std::ldexp(f % 2 ? -1.0 : 1.0, 7 * f % 60) + 1e-3 * f;
  }
  double lane[8];
  for (int l = 0; l < 8; ++l) lane[l] = a[l + 8] + (a[l] + 0.0);
  const double expected = ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
                          ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  CHECK(accumulate<ScalarLanes, Dot>(a, ones, 16) == expected);
  CHECK(accumulate<ScalarLanes, Dot>(ones, a, 16) == expected);
}

TEST_CASE("padding changes no sum") {
  Matrix m = normal("normal", 2, 24, 1);
  std::vector<double> a(32, 0.0), b(32, 0.0);
  for (int f = 0; f < 19; ++f) {
    a[static_cast<std::size_t>(f)] = std::fabs(m.at(0, f));
    b[static_cast<std::size_t>(f)] = std::fabs(m.at(1, f));
  }
  CHECK(accumulate<ScalarLanes, Dot>(a.data(), b.data(), 24) ==
        accumulate<ScalarLanes, Dot>(a.data(), b.data(), 32));
  CHECK(accumulate<ScalarLanes, SmallerSum>(a.data(), b.data(), 24) ==
        accumulate<ScalarLanes, SmallerSum>(a.data(), b.data(), 32));
  CHECK(accumulate<ScalarLanes, LargestDifference>(a.data(), b.data(), 24) ==
        accumulate<ScalarLanes, LargestDifference>(a.data(), b.data(), 32));
}

TEST_CASE("a prepared row has mean 0 and length 1, at any scale") {
  for (const double scale : {1.0, 1e300, 1e-300, 1e-305}) {
    for (const double shift : {0.0, 1e7}) {
      Matrix m = normal("normal", 1, 40, 3);
      std::vector<double> x(m.values);
      for (double& v : x) v = (v + shift) * scale;
      prepare_centred_unit<ScalarLanes>(x.data(), 40, 40);
      double sum = 0.0, square = 0.0;
      for (const double v : x) {
        sum += v;
        square += v * v;
      }
      CAPTURE(scale);
      CAPTURE(shift);
      CHECK(std::fabs(sum) < 1e-14);
      CHECK(square == doctest::Approx(1.0).epsilon(1e-14));
    }
  }
}

TEST_CASE(
    "a biweight row is the same wherever its level is, and at any scale") {
  // With whole numbers below 2^53 the difference from the median is exact, but
  // half the sum of two is not.
  for (const std::int64_t d : {2, 7, 10, 40, 41, 300}) {
    Matrix m = normal("normal", 1, d, 4);
    Medians medians;
    const auto prepared = [&](double level, double scale) {
      std::vector<double> x(static_cast<std::size_t>(padded_features(d)), 0.0);
      for (std::int64_t f = 0; f < d; ++f)
        x[static_cast<std::size_t>(f)] =
            (level + std::rint(20.0 * m.at(0, f) + 0.1 * f)) * scale;
      prepare_biweight_unit<ScalarLanes>(x.data(), d, padded_features(d),
                                         medians);
      return x;
    };
    const std::vector<double> expected = prepared(0.0, 1.0);
    INFO("d = " << d);
    for (const double level : {0x1p40, -0x1p52, 0x1.8p52})
      for (const double scale : {1.0, 0x1p-900, 0x1p900})
        CHECK(prepared(level, scale) == expected);
  }
}

TEST_CASE("ranks are averages over ties") {
  std::vector<double> x = {3.0, -0.0, 7.0, 0.0, 3.0, 3.0};
  AverageRanks()(x.data(), 6);
  CHECK(x == std::vector<double>{4.0, 1.5, 6.0, 1.5, 4.0, 4.0});
}

TEST_CASE("the heap keeps the k smallest by (distance, index)") {
  std::mt19937 random(1);
  for (const std::size_t k : {1u, 2u, 7u, 40u}) {
    std::vector<std::pair<double, std::int32_t>> all;
    std::vector<double> distance(k);
    std::vector<std::int32_t> index(k);
    std::int64_t size = 0;
    for (std::int32_t i = 0; i < 300; ++i)
      all.push_back({static_cast<double>(random() % 9), i});
    std::shuffle(all.begin(), all.end(), random);
    for (const auto& entry : all) {
      NeighbourHeap heap(distance.data(), index.data(),
                         static_cast<std::int64_t>(k), size);
      heap.offer(entry.first, PointId{entry.second});
      size = heap.size();
    }
    NeighbourHeap(distance.data(), index.data(), static_cast<std::int64_t>(k),
                  size)
        .sort();
    std::sort(all.begin(), all.end());
    for (std::size_t r = 0; r < k; ++r) {
      CHECK(distance[r] == all[r].first);
      CHECK(index[r] == all[r].second);
    }
  }
}

TEST_CASE("the order is a permutation of the points kept, and fixed") {
  const PointOrder a = order_points(1000, {0, 17, 999}, true);
  const PointOrder b = order_points(1000, {0, 17, 999}, true);
  CHECK(a.id == b.id);
  CHECK(a.num_active() == 997);
  std::set<std::int32_t> seen(a.id.begin(), a.id.end());
  CHECK(seen.size() == 997);
  CHECK(seen.count(17) == 0);
  CHECK(a.place[17] == -1);
  for (std::int32_t p = 0; p < 997; ++p)
    CHECK(
        a.place[static_cast<std::size_t>(a.id[static_cast<std::size_t>(p)])] ==
        p);
  std::int64_t neighbours = 0;
  for (std::size_t p = 1; p < 997; ++p)
    neighbours += std::abs(a.id[p] - a.id[p - 1]) == 1;
  CHECK(neighbours < 20);
}

TEST_CASE("each pair of splits is met once, and rounds are even") {
  for (std::int64_t splits = 1; splits <= 12; ++splits) {
    for (const std::int64_t span : {1, 2, 5}) {
      const CirculantSchedule schedule(splits, span);
      std::set<std::pair<std::int64_t, std::int64_t>> met;
      std::vector<std::int64_t> times(static_cast<std::size_t>(splits), 0);
      std::int64_t chunks = 0;
      for (std::int64_t at = 0; at < schedule.num_pieces(); ++at) {
        const CirculantSchedule::Piece piece = schedule.piece(at);
        for (std::int64_t r = piece.first_round; r < piece.end_round; ++r) {
          const std::int64_t column = schedule.column(piece.row, r);
          if (column < 0) continue;
          ++chunks;
          met.insert(
              {std::min(piece.row, column), std::max(piece.row, column)});
          ++times[static_cast<std::size_t>(piece.row)];
          if (piece.row != column) ++times[static_cast<std::size_t>(column)];
        }
        if ((at + 1) % splits == 0)
          CHECK(*std::max_element(times.begin(), times.end()) ==
                *std::min_element(times.begin(), times.end()));
      }
      CHECK(chunks == schedule.num_chunks());
      CHECK(static_cast<std::int64_t>(met.size()) == chunks);
    }
  }
}

TEST_CASE("the plan follows the paper's equations") {
  PlanInput in;
  in.num_points = 24158;
  in.num_features = 295;
  in.k = 20;
  in.num_workers = 2;
  for (const std::int64_t chunk : {0, 1, 48, 384, 4096, 100000}) {
    in.chunk_size = chunk;
    const Plan p = plan_cpu(in);
    CAPTURE(chunk);
    CHECK(p.chunk_size >= std::min<std::int64_t>(chunk, in.num_points));
    CHECK(p.padded_points ==
          p.chunk_size * (1 + (in.num_points - 1) / p.chunk_size));
    CHECK(p.padded_features ==
          p.data_block * (1 + (in.num_features - 1) / p.data_block));
    CHECK(p.num_splits * p.chunk_size == p.padded_points);
    CHECK(p.num_segments * p.splits_per_segment >= p.num_splits);
    CHECK(p.num_chunks == p.num_splits * (p.num_splits + 1) / 2);
    CHECK(p.bytes_peak > p.bytes_prepared);
  }
  in.chunk_size = 0;
  CHECK(plan_cpu(in).bytes_peak < 200e6);
  in.num_queries = 10;
  CHECK(plan_cpu(in).num_splits == 1);
  in.num_points = std::int64_t{1} << 31;
  CHECK(plan_cpu(in).bytes_prepared > 5e12);
}

TEST_CASE("a plan makes chunks larger where their pairs are listed") {
  PlanInput in;
  in.num_points = 1000000;
  in.num_features = 50;
  in.k = 15;
  in.num_workers = 2;
  for (const std::int64_t queries : {0, 10, 3000000})
    for (const std::int64_t chunk : {0, 1, 48, 384, 4096}) {
      in.num_queries = queries;
      in.chunk_size = chunk;
      in.most_chunks = 0;
      const std::int64_t asked = plan_cpu(in).chunk_size;
      in.most_chunks = 8192;
      const Plan p = plan_cpu(in);
      CAPTURE(chunk);
      CHECK(std::max(p.num_splits, p.chunks_per_split) <= 8192);
      // It is no larger than it must be.
      const std::int64_t most = std::max(in.num_points, in.num_queries);
      CHECK((p.chunk_size == asked ||
             (p.chunk_size - 48) * in.most_chunks < most));
    }
}

TEST_CASE("a plan counts boxes, or the copy of a filter that takes more") {
  PlanInput in;
  in.num_points = 1000000;
  in.num_features = 50;
  in.k = 15;
  const auto bytes = [&] {
    return plan_cpu(in).bytes_filter / static_cast<double>(in.num_points);
  };
  // 50 features are padded to 56.
  CHECK(bytes() == doctest::Approx(2 * 56 * 2).epsilon(0.001));
  in.unit_dot = true;
  CHECK(bytes() == doctest::Approx(56 * 2 + 58.3).epsilon(0.001));
  in.filter = FilterKind::largest;
  in.unit_dot = false;
  CHECK(bytes() == doctest::Approx(56 * 4 + 58.3).epsilon(0.001));
  in.rows_made = true;
  CHECK(bytes() == doctest::Approx(56 * 4).epsilon(0.001));
}

TEST_CASE("a scan finds what is wrong, and where") {
  Matrix m = normal("normal", 200, 5, 9);
  for (double& x : m.values) x = std::fabs(x) + 0.1;
  m.at(150, 0) = std::nan("");
  m.at(3, 2) = HUGE_VAL;
  m.at(2, 2) = -HUGE_VAL;
  m.at(199, 4) = std::nan("");
  m.at(20, 1) = -1.0;
  for (int f = 0; f < 5; ++f) m.at(30, f) = 4.0;
  for (int f = 0; f < 5; ++f) m.at(40, f) = f % 2 ? 0.0 : -0.0;
  for (const int threads : {1, 2}) {
    const MatrixFacts facts = scan(m.source(), threads);
    CHECK(facts.non_finite == 4);
    CHECK(facts.non_finite_at.size() == 3);
    CHECK(facts.non_finite_at[0].point == 150);
    CHECK(facts.non_finite_at[1].point == 2);
    CHECK(facts.non_finite_at[2].point == 3);
    CHECK(facts.negative == 1);
    CHECK(facts.negative_at[0].point == 20);
    CHECK(facts.negative_at[0].feature == 1);
    CHECK(facts.constant == std::vector<std::int64_t>{30, 40});
    CHECK(facts.zero == std::vector<std::int64_t>{40});
  }
}

TEST_CASE("an accumulation that nobody knows is summed by nobody") {
  const double row[8] = {};
  const cpu::Pair pair = {0, 0};
  double sum = 0.0;
  for (const int number : {-1, 99}) {
    const Accumulation unknown = static_cast<Accumulation>(number);
    CHECK_THROWS_AS(scalar_sum(unknown, row, row, 8), std::logic_error);
    for (const cpu::Kernels* kernels : cpu::available_kernels())
      CHECK_THROWS_AS(kernels->exact(unknown, row, row, 8, &pair, 1, &sum),
                      std::logic_error);
  }
}

TEST_CASE("a relative difference is right at any scale, in lanes and alone") {
  const double largest = std::numeric_limits<double>::max();
  const auto term = [](double a, double b) {
    const double x[8] = {a}, y[8] = {b};
    const double one = RelativeDifference::step(a, b, 0.0);
    CHECK(accumulate<ScalarLanes, RelativeDifference>(x, y, 8) == one);
    CHECK(RelativeDifference::step(b, a, 0.0) == one);
    double sum = -1.0;
    const cpu::Pair pair = {0, 0};
    for (const cpu::Kernels* kernels : cpu::available_kernels()) {
      kernels->exact(Accumulation::relative_difference, x, y, 8, &pair, 1,
                     &sum);
      CHECK(sum == one);
    }
    return one;
  };
  CHECK(term(0.0, 0.0) == 0.0);
  CHECK(term(-0.0, 0.0) == 0.0);
  for (int e = -1074; e <= 1023; ++e) {
    const double unit = std::ldexp(1.0, e);
    CAPTURE(e);
    CHECK(term(unit, unit) == 0.0);
    CHECK(term(unit, 0.0) == 1.0);
    CHECK(term(unit, -unit) == 1.0);
    CHECK(term(-unit, -largest) == term(unit, largest));
    if (e < 1022) CHECK(term(3.0 * unit, unit) == 0.5);
    if (e < 1021) CHECK(term(-3.0 * unit, -5.0 * unit) == 0.25);
  }
  CHECK(term(largest, largest) == 0.0);
  CHECK(term(largest, -largest) == 1.0);
  CHECK(term(0x1.8p1023, 0x1.8p1022) == 1.0 / 3.0);
  CHECK(term(0x1p1022, 0x1.8p1022) == 0.2);
  CHECK(term(std::nextafter(0x1p1022, 0.0), 0x1p1021) ==
        term(std::nextafter(0x1p1000, 0.0), 0x1p999));
}
