// Metafeatures: their order, and rows that are generated when they are read.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/rows/metafeatures.hpp"
#include "core/rows/scan.hpp"
#include "core/rows/subset.hpp"
#include "core/search/brute.hpp"
#include "cpu/search/engine.hpp"

using namespace fsknn;

namespace {

MetafeatureOrder all_four(std::int64_t rows, std::int64_t extra) {
  MetafeatureOrder order;
  order.num_rows = rows;
  order.num_extra = extra;
  order.num_operators = 4;
  order.operators[0] = PairOperator::minus;
  order.operators[1] = PairOperator::plus;
  order.operators[2] = PairOperator::times;
  order.operators[3] = PairOperator::divided;
  return order;
}

/// The rows from two loops, in the documented order.
std::vector<std::vector<double>> written_out(Matrix& m,
                                             const MetafeatureOrder& order) {
  std::vector<std::vector<double>> rows;
  const auto add = [&](std::int64_t i, std::int64_t j, int op) {
    std::vector<double> row;
    for (std::int64_t f = 0; f < m.d; ++f) {
      const double a = m.at(i, f), b = j < 0 ? 0.0 : m.at(j, f);
      row.push_back(op < 0    ? a
                    : op == 0 ? a - b
                    : op == 1 ? a + b
                    : op == 2 ? a * b
                              : a / b);
    }
    rows.push_back(row);
  };
  for (std::int64_t i = 0; i < order.num_rows; ++i) add(i, -1, -1);
  for (int op = 0; op < order.num_operators; ++op)
    for (std::int64_t i = 0; i < order.num_rows; ++i)
      for (std::int64_t j = i + 1; j < order.num_rows; ++j)
        add(i, j, static_cast<int>(order.operators[op]));
  for (std::int64_t e = 0; e < order.num_extra; ++e)
    add(order.num_rows + e, -1, -1);
  return rows;
}

bool same_row(const std::vector<double>& expected, const double* row) {
  return std::memcmp(expected.data(), row, expected.size() * 8) == 0;
}

}  // namespace

TEST_CASE("metafeatures come in the order that is told") {
  for (const std::int64_t rows : {1, 2, 3, 7, 20}) {
    for (const std::int64_t extra : {0, 1, 2}) {
      Matrix m = normal("normal", rows + extra, 11, 3);
      m.at(0, 3) = 0.0;
      const MetafeatureOrder order = all_four(rows, extra);
      const auto expected = written_out(m, order);
      REQUIRE(order.size() == static_cast<std::int64_t>(expected.size()));
      const MetafeatureSource source(m.source(), order);
      CHECK(source.num_points() == order.size());
      // Blocks with every kind of start.
      for (const std::int64_t block : {1, 5, 64}) {
        std::vector<double> out(static_cast<std::size_t>(block * 16));
        for (std::int64_t first = 0; first < order.size(); first += block) {
          const std::int64_t count = std::min(block, order.size() - first);
          source.read(first, count, out.data(), 16);
          for (std::int64_t r = 0; r < count; ++r)
            CHECK(same_row(expected[static_cast<std::size_t>(first + r)],
                           out.data() + r * 16));
        }
      }
    }
  }
}

TEST_CASE("some metafeatures, in any order and more than once, can be read") {
  Matrix m = normal("normal", 10, 9, 4);
  const MetafeatureOrder order = all_four(9, 1);
  const auto expected = written_out(m, order);
  const std::vector<std::int32_t> kept = {
      153, 0, 44, 45, 45, 8, 9, static_cast<std::int32_t>(order.size() - 1)};
  const MetafeatureSource source(m.source(), order, &kept);
  CHECK(source.num_points() == 8);
  double out[8 * 9];
  source.read(0, 8, out, 9);
  for (std::size_t r = 0; r < 8; ++r)
    CHECK(same_row(expected[static_cast<std::size_t>(kept[r])], out + r * 9));
  CHECK(source.made_of(7).first == 9);
  CHECK(source.made_of(7).second == -1);
}

TEST_CASE("the paper's numbers of metafeatures") {
  MetafeatureOrder order = all_four(876, 0);
  CHECK(order.size() == 1533876);
  order.num_operators = 1;
  CHECK(order.size() == 384126);
  CHECK(order.at(384125).first == 874);
  CHECK(order.at(384125).second == 875);
  CHECK(order.at(876).first == 0);
  CHECK(order.at(876).second == 1);
}

namespace {

Matrix held(const MetafeatureSource& source) {
  Matrix m = make("held", source.num_points(), source.num_features());
  std::vector<double> row(static_cast<std::size_t>(m.d));
  for (std::int64_t i = 0; i < m.n; ++i) {
    source.read(i, 1, row.data(), m.d);
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) = row[static_cast<std::size_t>(f)];
  }
  return m;
}

std::vector<std::int64_t> left_out(const RowSource& source) {
  const MatrixFacts facts = scan(source, 1);
  std::vector<std::int64_t> rows = facts.non_finite_rows;
  rows.insert(rows.end(), facts.constant.begin(), facts.constant.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

TEST_CASE("metafeatures have the neighbours of the same rows held") {
  Matrix m = normal("normal", 21, 13, 5);
  m.at(3, 2) = 0.0;  // denominators
  for (std::int64_t f = 0; f < m.d; ++f) {
    m.at(5, f) = m.at(4, f);  // a - b is 0
    m.at(7, f) = 3.0;
  }
  MetafeatureOrder order = all_four(20, 1);
  for (const MetricEntry& metric : metrics_of_numbers()) {
    if (metric.least_overlap != nullptr) {
      for (double& x : m.values) x = std::fabs(x);
      order.num_operators = 3;
      order.operators[0] = PairOperator::plus;
      order.operators[1] = PairOperator::times;
      order.operators[2] = PairOperator::divided;
    }
    const MetafeatureSource source(m.source(), order);
    const Matrix rows = held(source);
    Request r;
    r.metric = &metric;
    r.k = 4;
    r.skip = left_out(source);
    CHECK(r.skip.size() >= 5);
    CHECK(r.skip == left_out(rows.source()));
    // Skips some rows that would be near.
    for (std::int64_t i = 100; i < 130; ++i) r.skip.push_back(i);
    std::sort(r.skip.begin(), r.skip.end());
    r.skip.erase(std::unique(r.skip.begin(), r.skip.end()), r.skip.end());
    Answer expected(rows.n, r.k);
    brute_force(r, rows.source(), nullptr, expected.view);
    CAPTURE(metric.name);
    for (const int threads : {1, 2}) {
      r.num_threads = threads;
      for (const std::int64_t chunk : {0, 48, 384}) {
        r.chunk_size = chunk;
        Answer found(rows.n, r.k);
        cpu::find_neighbours(r, source, nullptr, found.view, nullptr, nullptr);
        CHECK(found == expected);
      }
    }
    // Few queries (computed only by the exact step) and many, generated or
    // held.
    std::vector<std::int32_t> some;
    for (std::int32_t i = 0; i < 40; ++i) some.push_back(i * 7 + 1);
    for (const std::size_t count : {1, 5, 40}) {
      some.resize(count);
      const MetafeatureSource queries(m.source(), order, &some);
      r.query_skip = left_out(queries);
      Answer asked(queries.num_points(), r.k),
          by_rows(queries.num_points(), r.k);
      const auto held_rows = rows.source();
      brute_force(r, held_rows, &queries, by_rows.view);
      cpu::find_neighbours(r, source, &queries, asked.view, nullptr, nullptr);
      CHECK(asked == by_rows);
      some.resize(40);
      for (std::int32_t i = 0; i < 40; ++i)
        some[static_cast<std::size_t>(i)] = i * 7 + 1;
    }
  }
}

TEST_CASE(
    "a device is told what metafeatures are made from, some of them too") {
  Matrix m = make("small", 7, 11);
  std::iota(m.values.begin(), m.values.end(), 1.0);
  const MatrixSource<double> small(m.values.data(), m.n, m.d);
  const MetafeatureSource all(small, all_four(6, 1));
  CHECK(all.made_from().source == &all);
  CHECK(all.made_from().numbers == nullptr);
  CHECK(bytes_made_from(all) == 7 * 16 * 8);
  const RowSubset some(all, {40, 3, 3});
  REQUIRE(some.made_from().source == &all);
  CHECK(some.made_from().numbers[0] == 40);
  CHECK(bytes_made_from(some) == 7 * 16 * 8 + 3 * 4);
  const std::vector<std::int32_t> kept = {5, 60};
  const MetafeatureSource few(small, all_four(6, 1), &kept);
  CHECK(bytes_made_from(few) == 7 * 16 * 8 + 2 * 4);
  // A subset of a subset is read like any other source.
  const RowSubset again(some, {1, 0});
  CHECK(again.made_from().source == nullptr);
  CHECK(again.made_when_read());
  CHECK(bytes_made_from(again) == 0);
  CHECK(bytes_made_from(small) == 0);
}
