// Very different magnitudes: sums that leave the range of a double are
// recomputed. Data that exceed what one power of two can cover stay as they
// are.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/contract/metrics.hpp"
#include "core/contract/triple_sums.hpp"
#include "core/rows/prepared.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"

using namespace fsknn;
using cpu::available_kernels;
using cpu::Kernels;
using cpu::Pair;

namespace {

constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kLeast = 0x1p-1022;

/// Scales each term by the largest one. Uses long double where that is wider;
/// else computes a distance by its parts.
double euclidean_of(const double* a, const double* b, std::int64_t d) {
  double largest = 0.0;
  for (std::int64_t f = 0; f < d; ++f)
    largest = std::max(largest, std::fabs(a[f] - b[f]));
  if (!(largest > 0.0)) return 0.0;
  const int e = std::ilogb(largest);
  long double sum = 0.0L;
  for (std::int64_t f = 0; f < d; ++f) {
    const long double t = std::ldexp(a[f] - b[f], -e);
    sum += t * t;
  }
  return std::ldexp(static_cast<double>(std::sqrt(sum)), e);
}

bool is_near(double x, double expected) {
  return std::fabs(x - expected) <= 1e-12 * std::fabs(expected);
}

Matrix with_huge(double huge, double small) {
  Matrix m = normal("one huge", 60, 5, 31);
  for (double& x : m.values) x *= small;
  m.at(7, 2) = huge;
  return m;
}

std::vector<double> row_of(Matrix& m, std::int64_t i) {
  std::vector<double> row;
  for (std::int64_t f = 0; f < m.d; ++f) row.push_back(m.at(i, f));
  return row;
}

double distance_of(const std::vector<double>& a, const std::vector<double>& b) {
  return Euclidean::finish(
      scalar_sum(Accumulation::squared_difference, a.data(), b.data(),
                 static_cast<std::int64_t>(a.size())),
      0, 0);
}

}  // namespace

TEST_CASE("distances without a square are themselves, at every magnitude") {
  for (int e = -1074; e <= 1022; ++e) {
    CAPTURE(e);
    const double x = std::ldexp(1.0, e);
    const std::vector<double> zero(8, 0.0);
    std::vector<double> a(8, 0.0), b(8, 0.0);
    a[3] = x;
    CHECK(distance_of(a, zero) == x);
    if (e > 1019 || e < -1070) continue;
    b[0] = 3 * x;
    b[7] = -4 * x;
    CHECK(distance_of(b, zero) == 5 * x);
    CHECK(distance_of(zero, b) == 5 * x);
    // Smaller terms count as long as they change a digit.
    a[4] = std::ldexp(x, -20);
    CHECK(
        is_near(distance_of(a, zero), euclidean_of(a.data(), zero.data(), 8)));
  }
  // Rounding is the same on both sides of a limit.
  for (const double x : {0x1p-450, 0x1p480})
    for (const double part : {1.0 - 0x1p-53, 1.0, 1.0 + 0x1p-52}) {
      const std::vector<double> zero(8, 0.0), a(8, x * part);
      CHECK(is_near(distance_of(a, zero), std::sqrt(8.0) * x * part));
    }
  const std::vector<double> most(8, kMost), minus(8, -kMost), none(8, 0.0);
  CHECK(distance_of(most, most) == 0.0);
  CHECK(distance_of(most, minus) == HUGE_VAL);
  CHECK(distance_of(most, none) == HUGE_VAL);
  const std::vector<double> least(8, 0x1p-1074);
  CHECK(distance_of(least, none) == std::sqrt(8.0) * 0x1p-1074);
}

TEST_CASE("wide data are those beyond a metric's magnitude") {
  for (const MetricEntry& metric : all_metrics()) {
    CAPTURE(metric.name);
    CHECK(&metric_for(metric, 0.0) == &metric);
    CHECK(&metric_for(metric, 1e30) == &metric);
    const MetricEntry& wide = metric_for(metric, kMost);
    CHECK(&metric_for(wide, kMost) == &wide);
    if (metric.wide_from == kNeverWide) {
      CHECK(&wide == &metric);
      continue;
    }
    const double from = std::ldexp(1.0, metric.wide_from);
    CHECK(&metric_for(metric, std::nextafter(from, 0.0)) == &metric);
    CHECK(&metric_for(metric, from) == &wide);
    CHECK(std::string(wide.name) == metric.name);
    CHECK(wide.filter == FilterKind::none);
    CHECK(matrix_exponent(wide, kMost) == 0);
    CHECK(wide.finish(2.0, 0, 0) == metric.finish(2.0, 0, 0));
  }
}

TEST_CASE("a sum of products that left double's range is made again") {
  const auto sum = [](std::vector<double> a, std::vector<double> b) {
    a.resize(8);
    b.resize(8);
    return scalar_sum(Accumulation::wide_dot, a.data(), b.data(), 8);
  };
  CHECK(sum({1e200, 1e200}, {1e200, -1e200}) == 0.0);
  // Lanes 0 and 4 are joined first.
  CHECK(sum({0x1p600, 0, 0x1p600, 0, 0x1p600},
            {0x1p600, 0, 0x1p100, 0, -0x1p600}) == 0x1p700);
  CHECK(sum({kMost}, {1.0}) == kMost);
  CHECK(sum({kMost}, {2.0}) == HUGE_VAL);
  CHECK(sum({kMost, kMost}, {-1.0, -1.0}) == -HUGE_VAL);
  CHECK(sum({0x1p1000, kLeast}, {0.0, 0x1p10}) == 0x1p-1012);
  CHECK(sum({}, {}) == 0.0);
}

TEST_CASE("a sum of smaller values beyond double's range is one of parts") {
  const auto sum = [](std::vector<double> a, std::vector<double> b) {
    a.resize(8);
    b.resize(8);
    return scalar_sum(Accumulation::smaller_sum, a.data(), b.data(), 8);
  };
  CHECK(sum({kMost, 1.0}, {2.0, 2.0}) == 3.0);
  CHECK(sum({kMost, 0x1p1023}, {0x1p1023, kMost}) == -0x1p960);
  CHECK(part_of_sum(-3.0) == 3.0);
  CHECK(part_of_sum(0x1p64) == 1.0);
  const double most = -0x1p1000;  // as a part
  CHECK(Proportional::similarity(most, most, most) == 1.0);
  CHECK(Proportional::similarity(kMost, kMost, kMost) == 1.0);
  CHECK(Proportional::similarity(0x1p1000, 0x1p1000, most) == 0x1p-63);
  CHECK(Proportional::similarity(0x1p-1074, 0x1p-1074, 0x1p-1074) == 1.0);
  // For three rows: min(a, b) + min(a, c) + min(b, c) - min(a, b, c) = 2 kMost.
  const std::vector<double> one(8, kMost), none(8, 0.0);
  const double largest =
      sum_of_largest<ScalarLanes>(one.data(), one.data(), none.data(), 8);
  CHECK(largest < 0.0);
  CHECK(similarity_of_three(largest, largest, largest, 0.0) == 0.75);
  CHECK(is_near(similarity_of_three(largest, largest, largest, largest), 1.0));
}

TEST_CASE("every instruction set has the bits of sums that are made again") {
  for (const double huge : {1e-160, 1e160, 1e300, kMost})
    for (const double small : {1.0, 1e-200, 1e-300}) {
      Matrix m = with_huge(huge, small);
      std::vector<double> rows(static_cast<std::size_t>(m.n * 8), 0.0);
      for (std::int64_t i = 0; i < m.n; ++i)
        for (std::int64_t f = 0; f < m.d; ++f)
          rows[static_cast<std::size_t>(i * 8 + f)] = m.at(i, f);
      std::vector<Pair> pairs;
      for (std::int32_t i = 0; i < m.n; ++i) pairs.push_back({i, 7});
      for (const Accumulation accumulation :
           {Accumulation::squared_difference, Accumulation::wide_dot,
            Accumulation::smaller_sum}) {
        std::vector<double> expected;
        for (const Pair& pair : pairs)
          expected.push_back(scalar_sum(accumulation,
                                        rows.data() + pair.row * 8,
                                        rows.data() + pair.column * 8, 8));
        for (const Kernels* kernels : available_kernels()) {
          CAPTURE(kernels->name);
          std::vector<double> sums(pairs.size());
          kernels->exact(accumulation, rows.data(), rows.data(), 8,
                         pairs.data(), static_cast<std::int64_t>(pairs.size()),
                         sums.data());
          CHECK(same_bits(sums, expected));
        }
      }
    }
}

TEST_CASE("neighbours beside a huge entry are those of the others") {
  for (const double huge : {1e10, 1e47, 1e49, 1e154, 1e162, 1e308, kMost})
    for (const double small : {1.0, 1e-8, 1e-150, 1e-290, 1e-300}) {
      CAPTURE(huge);
      CAPTURE(small);
      Matrix m = with_huge(huge, small);
      const MatrixSource<double> points = m.source();
      Request r;
      r.k = 6;
      r.metric = &find_metric("euclidean", "signed");
      Answer defined(m.n, r.k), found(m.n, r.k);
      brute_force(r, points, nullptr, defined.view);
      cpu::find_neighbours(r, points, nullptr, found.view, nullptr, nullptr);
      CHECK(found.index == defined.index);
      CHECK(same_bits(found.distance, defined.distance));
      bool near = true;
      for (std::int64_t i = 0; i < m.n; ++i)
        for (std::int64_t rank = 0; rank < r.k; ++rank) {
          const std::size_t at = static_cast<std::size_t>(rank * m.n + i);
          const std::vector<double> a = row_of(m, i);
          const std::vector<double> b = row_of(m, found.index[at] - 1);
          near = near && is_near(found.distance[at],
                                 euclidean_of(a.data(), b.data(), m.d));
        }
      CHECK(near);
    }
}
