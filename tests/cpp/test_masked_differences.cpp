// Euclidean and Manhattan distances over common samples. Compares the CPU
// engine with the definition, bit for bit, the definition with long double, and
// tests the filter at each pair's own distance.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/base/errors.hpp"
#include "core/contract/masked.hpp"
#include "core/rows/masked_points.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/missing/masked_pass.hpp"
#include "cuda/missing/difference_bound.hpp"
#include "masked_cases.hpp"
#include "masked_searches.hpp"

using namespace fsknn;

namespace {

std::vector<const MetricEntry*> differences() {
  return {&find_metric("euclidean", "signed"),
          &find_metric("manhattan", "signed")};
}

/// The mean over common values, scaled to all values; NaN if none is common.
long double plain_distance(const Matrix& m, const MetricEntry& metric,
                           std::int64_t i, std::int64_t j) {
  const bool squared = metric.accumulation == Accumulation::squared_difference;
  long double sum = 0, n = 0;
  for (std::int64_t f = 0; f < m.d; ++f) {
    const long double x = m.values[static_cast<std::size_t>(f * m.n + i)];
    const long double y = m.values[static_cast<std::size_t>(f * m.n + j)];
    if (std::isnan(x) || std::isnan(y)) continue;
    sum += squared ? (x - y) * (x - y) : std::fabs(x - y);
    n += 1;
  }
  if (n == 0) return kNone;
  sum *= static_cast<long double>(m.d) / n;
  return squared ? std::sqrt(sum) : sum;
}

/// Rows of about 1, of either sign, alternating with rows of 2^exponent.
Matrix next_to_nothing(int exponent) {
  Matrix m = with_holes(normal("next to nothing", 90, 20, 64), 0.05, 65);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f) {
      const double x = std::fabs(m.at(i, f));
      if (i % 3 == 0)
        m.at(i, f) = std::ldexp(i % 2 == 0 ? 0.0 : 1.0 + x / 8.0, exponent);
      else
        m.at(i, f) = i % 3 == 1 ? 1.0 + x : -1.0 - x;
    }
  return m;
}

/// The GPUs' filter of differences, as in difference_filter.cu.
template <bool kSquared>
class GpuFilter {
 public:
  GpuFilter(const MaskedPoints& points, const MaskedRule& rule)
      : points_(points), rule_(rule), units_(masked_units(points, rule)) {
    for (std::int64_t i = 0; i < points.size(); ++i) {
      double length = 0.0, lost = 0.0;
      for (std::int64_t f = 0; f < points.num_features; ++f) {
        if (!has_value(points.row(Place{i})[f])) continue;
        const double v = value(i, f);
        const double off = v - static_cast<double>(static_cast<float>(v));
        length += kSquared ? v * v : std::fabs(v);
        lost += kSquared ? off * off : std::fabs(off);
      }
      if (kSquared) {
        length = std::sqrt(length);
        lost = std::sqrt(lost);
      }
      error_.push_back(cuda::difference_error<kSquared>(lost, length, depth()));
    }
  }

  /// Whether a pair passes if its row's farthest neighbour is at that distance.
  bool keeps(std::int64_t i, std::int64_t j, double distance) const {
    float s = 0.0f, n = 0.0f;
    for (std::int64_t f = 0; f < points_.num_features; ++f) {
      if (!has_value(points_.row(Place{i})[f] - points_.row(Place{j})[f]))
        continue;
      n += 1.0f;
      const float t = std::fabs(z(i, f) - z(j, f));
      s = kSquared ? std::fma(t, t, s) : s + t;
    }
    const double d = rule_.terms().num_features;
    const double far = units_(rule_.distances().before_scaling(distance));
    const float threshold = cuda::float_at_least(
        (kSquared ? far / std::sqrt(d) : far / d) * (1.0 + 1e-6));
    return cuda::differences_may_be_near<kSquared>(
        s, n, threshold,
        error_[static_cast<std::size_t>(i)] +
            error_[static_cast<std::size_t>(j)],
        cuda::difference_shrink(depth()));
  }

 private:
  std::int64_t depth() const { return (points_.num_features + 15) / 16 * 16; }
  double value(std::int64_t i, std::int64_t f) const {
    return units_(points_.row(Place{i})[f] -
                  units_.centre[static_cast<std::size_t>(f)]);
  }
  float z(std::int64_t i, std::int64_t f) const {
    return std::isinf(error_[static_cast<std::size_t>(i)])
               ? 0.0f
               : static_cast<float>(value(i, f));
  }

  const MaskedPoints& points_;
  const MaskedRule& rule_;
  const MaskedUnits units_;
  std::vector<float> error_;
};

template <bool kSquared>
bool gpu_keeps_all(const Matrix& m, const MetricEntry& metric) {
  const MaskedRule rule(masked_request(metric, 1, 1), m.source(), nullptr);
  const MaskedPoints points = prepare_masked(m.source(), rule, {}, false, 1);
  const GpuFilter<kSquared> filter(points, rule);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t j = 0; j < m.n; ++j) {
      const double distance = rule.value(
          masked_pair<ScalarLanes>(rule.terms(), points.row(Place{i}),
                                   points.row(Place{j}), points.padded));
      if (has_value(distance) && !filter.keeps(i, j, distance)) return false;
    }
  return true;
}

/// No value if a distance is beyond the range of a double.
template <class Engine>
std::optional<Answer> answer_in_range(const Engine& engine, const Request& r,
                                      const Matrix& m) {
  try {
    return find_masked(engine, r, m);
  } catch (const RangeFailure&) {
    return std::nullopt;
  }
}

Matrix huge_outlier(std::int64_t n, std::int64_t d) {
  Matrix m = with_holes(normal("one huge entry", n, d, 60), 0.1, 61);
  m.at(n / 2, d / 2) = 1e250;
  return m;
}

}  // namespace

TEST_CASE("differences over common values are their mean, scaled to all") {
  for (const MetricEntry* metric : differences())
    for (const Matrix& m : masked_cases(40, 21)) {
      INFO(metric->name, " ", m.name);
      // Squares of the smallest entries underflow there, as expected.
      if (m.name == "1e300 to 1e-300 in a row" || m.name == "subnormal")
        continue;
      const MaskedRule rule(masked_request(*metric, 1, 1), m.source(), nullptr);
      const MaskedPoints p = prepare_masked(m.source(), rule, {}, false, 1);
      long double worst = 0;
      bool defined_alike = true, symmetric = true;
      for (std::int64_t i = 0; i < m.n; ++i)
        for (std::int64_t j = 0; j < m.n; ++j) {
          const auto found = [&](std::int64_t a, std::int64_t b) {
            return rule.value(masked_pair<ScalarLanes>(
                rule.terms(), p.row(Place{a}), p.row(Place{b}), p.padded));
          };
          const double x = found(i, j), back = found(j, i);
          symmetric = symmetric && std::memcmp(&x, &back, sizeof x) == 0;
          const long double expected = plain_distance(m, *metric, i, j);
          defined_alike =
              defined_alike && has_value(x) == !std::isnan(expected);
          // Sums of values near the end of the range may exceed it.
          if (has_value(x) && expected > 0 &&
              expected <= std::numeric_limits<double>::max())
            worst = std::max(worst, std::fabs(x / expected - 1));
        }
      CHECK(defined_alike);
      CHECK(symmetric);
      CHECK(worst < 1e-14L);
    }
}

TEST_CASE("a pair that lacks nothing has the bits that it has without gaps") {
  const Matrix whole = normal("whole", 30, 19, 62);
  Matrix holes = whole;
  holes.at(29, 3) = kNone;
  for (const MetricEntry* metric : differences()) {
    Request r = masked_request(*metric, 28);
    r.largest = 5.0;
    r.skip = {29};
    const Answer pairwise = find_masked(brute_force, r, holes);
    r.na_pairwise = false;
    const Answer plain = find_masked(brute_force, r, whole);
    CHECK(plain.index == pairwise.index);
    CHECK(same_bits(plain.distance, pairwise.distance));
  }
}

TEST_CASE("with missing values differences equal the definition") {
  for (const std::int64_t d : {1, 5, 19, 70}) {
    std::vector<Matrix> cases = masked_cases(110, d);
    cases.push_back(huge_outlier(110, d));
    for (const Matrix& m : cases)
      for (const MetricEntry* metric : differences()) {
        INFO(m.name, " ", metric->name, " ", d);
        const Request r = masked_request(*metric, 5, 1);
        CHECK(answer_in_range(masked_engine, r, m) ==
              answer_in_range(brute_force, r, m));
      }
  }
}

TEST_CASE("differences are the same for any chunk size, threads, kernels, k") {
  for (const MetricEntry* metric : differences())
    for (const Matrix& m :
         {with_holes(normal("few holes", 600, 33, 40), 0.05, 41),
          with_holes(ties(600, 33, 2, 42), 0.4, 43)})
      for (const std::int64_t k : {1, 20, 599}) {
        Request r = masked_request(*metric, k);
        r.skip = {0, 7, 599};
        const Answer expected = find_masked(brute_force, r, m);
        for (const std::int64_t chunk_size : {0, 1, 100})
          for (const int threads : {1, 3}) {
            r.chunk_size = chunk_size;
            r.num_threads = threads;
            CHECK(find_masked(masked_engine, r, m) == expected);
          }
        for (const cpu::Kernels* kernels : cpu::available_kernels()) {
          r.instruction_set = kernels->name;
          CHECK(find_masked(masked_engine, r, m) == expected);
        }
      }
}

TEST_CASE("queries by differences, few and many, within and far off") {
  const Matrix m = with_holes(normal("points", 400, 24, 46), 0.1, 47);
  for (const MetricEntry* metric : differences())
    for (const std::int64_t rows : {1, 17, 90})
      for (const double by : {1.0, 1e-30, 1e30}) {
        Matrix q = with_holes(normal("queries", rows, 24, 48), 0.3, 49);
        for (double& x : q.values) x *= by;
        for (const std::int64_t min_pairs : {1, 12, 24}) {
          Request r = masked_request(*metric, 7, min_pairs);
          r.skip = {3, 30};
          const Answer expected = find_masked(brute_force, r, m, &q);
          CHECK(find_masked(masked_engine, r, m, &q) == expected);
        }
      }
}

TEST_CASE("rows that lack few values are met one by one, or by panels") {
  const MetricEntry& metric = find_metric("euclidean", "signed");
  for (const int lacking : {1, 8, 9}) {
    Matrix m = normal("few each", 500, 60, 70);
    for (std::int64_t i = 0; i < m.n; i += 2)
      for (int h = 0; h < lacking; ++h) m.at(i, (7 * i + 5 * h) % 60) = kNone;
    for (std::int64_t f = 3; f < 60; ++f) m.at(99, f) = kNone;
    const Request r = masked_request(metric, 6);
    CHECK(find_masked(masked_engine, r, m) == find_masked(brute_force, r, m));
  }
}

TEST_CASE("the filter of differences drops most pairs") {
  const MetricEntry& metric = find_metric("euclidean", "signed");
  for (const double level : {0.0, 1e6}) {
    Matrix m = with_holes(normal("holes", 3000, 100, 50), 0.02, 51);
    for (double& x : m.values) x += level;
    Request r = masked_request(metric, 10);
    Answer found(m.n, r.k);
    Stats stats;
    cpu::find_neighbours(r, m.source(), nullptr, found.view, nullptr, &stats);
    CHECK(stats.filter != FilterNumbers::none);
    CHECK(stats.pairs_exact < 0.1 * stats.pairs_filtered);
  }
}

TEST_CASE("no pair is dropped at its own distance") {
  const MetricEntry& metric = find_metric("euclidean", "signed");
  std::vector<Matrix> cases = masked_cases(48, 37);
  cases.push_back(huge_outlier(48, 37));
  for (const Matrix& m : cases) {
    INFO(m.name);
    const Request r = masked_request(metric, 1, 1);
    const MaskedRule rule(r, m.source(), nullptr);
    const MaskedPoints points = prepare_masked(m.source(), rule, {}, false, 1);
    const MaskedUnits units = masked_units(points, rule);
    const cpu::MissingClasses classes = cpu::missing_classes(points, nullptr);
    const cpu::MaskedFilterRows rows = cpu::pack_masked(
        points, {classes, r.min_pairs, &units}, 48, 1, nullptr);
    const cpu::Kernels& kernels = *cpu::available_kernels().front();
    bool kept = true, close = true;
    for (std::int64_t i = 0; i < 48; ++i) {
      std::int32_t sums[cpu::Tile::rows * cpu::Tile::columns];
      kernels.accumulate(cpu::Product::dot, rows.row(i / 8 * 8), rows.panel(0),
                         3, rows.steps, sums);
      const std::int32_t* own = sums + i % 8 * cpu::Tile::columns;
      const float none = std::numeric_limits<float>::infinity();
      const std::vector<float> columns_keep(48, none);
      const std::int64_t last =
          static_cast<std::int64_t>(classes.most.size()) - 1;
      for (std::int64_t j = 0; j < 48; ++j) {
        const double pair =
            masked_pair<ScalarLanes>(rule.terms(), points.row(Place{i}),
                                     points.row(Place{j}), points.padded);
        if (!has_value(pair)) continue;
        const float threshold = cpu::masked_difference_threshold(
            rule.value(pair), rule, units,
            static_cast<double>(points.known[i]));
        const std::int64_t c_i = classes.of(m.d - points.known[i]);
        const cpu::MaskedDistanceSide row = {
            &threshold,
            &rows.scale[i],
            &rows.square_below[i],
            &rows.minus_largest[i],
            &rows.missing[i],
            &rows.w[last * rows.num_places + i]};
        const cpu::MaskedDistanceSide columns = {
            columns_keep.data(),   &rows.scale[0],
            &rows.square_below[0], &rows.minus_largest[0],
            &rows.missing[0],      &rows.w[c_i * rows.num_places]};
        kept =
            kept &&
            (kernels.masked_distance_test(own, 3, row, columns) >> j & 1) != 0;
        float a[16], x[16], b[48], y[48];
        cpu::sum_of_rows(kernels, rows, i / 16 * 16, rows, j, a, x);
        cpu::sum_of_columns(kernels, rows, i, rows, 0, 3, b, y);
        close = close && cpu::may_be_close(
                             rows, rows,
                             {i, j, own[j], a[i % 16], x[i % 16], b[j], y[j]},
                             1, threshold, none);
      }
    }
    CHECK(kept);
    CHECK(close);
  }
}

TEST_CASE("no pair is dropped at its own distance by the bound of GPUs") {
  std::vector<Matrix> cases = masked_cases(48, 37);
  cases.push_back(huge_outlier(48, 37));
  for (int exponent = -160; exponent < 0; exponent += 5)
    cases.push_back(next_to_nothing(exponent));
  for (const Matrix& m : cases) {
    INFO(m.name);
    CHECK(gpu_keeps_all<true>(m, find_metric("euclidean", "signed")));
    CHECK(gpu_keeps_all<false>(m, find_metric("manhattan", "signed")));
  }
}

TEST_CASE("a difference beyond a double's range is an error") {
  Matrix m = normal("far", 40, 8, 63);
  m.at(0, 0) = 1.7e308;
  m.at(1, 0) = -1.7e308;
  m.at(2, 1) = kNone;
  for (const MetricEntry* metric : differences()) {
    const Request r = masked_request(*metric, 39);
    CHECK_THROWS_AS(find_masked(masked_engine, r, m), RangeFailure);
    CHECK_THROWS_AS(find_masked(brute_force, r, m), RangeFailure);
  }
}
