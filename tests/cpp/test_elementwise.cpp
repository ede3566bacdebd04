// The elementwise filter of the GPUs, its arithmetic done here: a pair's
// similarity lies between what the filter says and that less both slacks.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.hpp"
#include "core/errors.hpp"
#include "core/prepared.hpp"
#include "core/scan.hpp"
#include "cpu/kernels.hpp"
#include "cuda/exact/list_rules.hpp"
#include "cuda/filter/float_bound.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

namespace {

struct Rows {
  std::vector<float> entries;
  std::vector<RowBounds> bounds;
};

Rows filter_rows(const PreparedPoints& points, const ElementwiseScale& scale,
                 const ElementwiseRule& rule) {
  Rows rows;
  for (std::int64_t i = 0; i < points.size(); ++i) {
    RowTerms terms;
    for (std::int64_t f = 0; f < points.padded; ++f)
      rows.entries.push_back(
          filter_entry(rule, points.row(Place{i})[f],
                       scale.centre[static_cast<std::size_t>(f)], terms));
    rows.bounds.push_back(row_bounds(rule, terms, points.sums[i]));
  }
  return rows;
}

// As the kernel does it: one float after the other.
float differences(const ElementwiseRule& rule, const float* a, const float* b,
                  std::int64_t depth) {
  float s = 0.0f;
  for (std::int64_t f = 0; f < depth; ++f) {
    const float t = std::fabs(a[f] - b[f]);
    s = rule.kind == FilterKind::largest ? std::max(s, t) : s + t;
  }
  return s;
}

struct Found {
  std::int64_t pairs = 0, too_near = 0, too_far = 0, not_finite = 0,
               beyond_zero = 0, lost = 0, loose = 0;
};

// Neighbours that are looked for where lists are cut.
constexpr std::size_t kNear = 3;

/// A row's pairs with other points, as its list and its exact step see them.
struct RowPairs {
  std::vector<double> distance;
  std::vector<float> similarity, least;

  /// Lemma 6: how many of the nearest are below the threshold of all.
  std::int64_t lost() const {
    if (distance.size() < kNear) return 0;
    const auto nth = [](auto values, auto before) {
      std::nth_element(values.begin(), values.begin() + (kNear - 1),
                       values.end(), before);
      return values[kNear - 1];
    };
    std::vector<std::uint32_t> keys;
    for (const float x : least) keys.push_back(order_key(x));
    const float threshold = key_value(nth(keys, std::greater<std::uint32_t>()));
    const double limit = nth(distance, std::less<double>());
    std::int64_t lost = 0;
    for (std::size_t at = 0; at < distance.size(); ++at)
      lost += distance[at] <= limit && !(similarity[at] >= threshold);
    return lost;
  }
};

/// Of Jaccard's distance D, what the filter compares: the proportional
/// distance, which is D / (2 - D).
long double in_proportion(const MetricEntry& metric, long double distance) {
  return std::string(metric.name) == "jaccard" ? distance / (2.0L - distance)
                                               : distance;
}

Found check_pairs(const MetricEntry& metric, const PreparedPoints& points) {
  const ElementwiseScale scale = elementwise_scale(
      points.rows.data(), std::min<std::int64_t>(points.size(), 32),
      points.padded);
  const ElementwiseRule rule =
      elementwise_rule(metric, points.padded, scale.inverse_unit);
  const Rows rows = filter_rows(points, scale, rule);
  Found found;
  for (std::int64_t i = 0; i < points.size(); ++i) {
    RowPairs pairs;
    for (std::int64_t j = 0; j < points.size(); ++j) {
      const std::int64_t depth = points.padded;
      const cpu::Pair pair = {static_cast<std::int32_t>(i),
                              static_cast<std::int32_t>(j)};
      double sum;
      cpu::kBaselineKernels.exact(metric.accumulation, points.rows.data(),
                                  points.rows.data(), depth, &pair, 1, &sum);
      const double distance =
          metric.finish(sum, points.sums[i], points.sums[j]);
      if (!(distance < HUGE_VAL)) continue;
      const RowBounds& a = rows.bounds[static_cast<std::size_t>(i)];
      const RowBounds& b = rows.bounds[static_cast<std::size_t>(j)];
      const float s =
          upper_similarity(rule.kind,
                           differences(rule, rows.entries.data() + i * depth,
                                       rows.entries.data() + j * depth, depth),
                           a, b);
      const long double truth =
          -in_proportion(metric, static_cast<long double>(distance)) *
          (is_proportion(rule.kind)
               ? 1.0L
               : static_cast<long double>(rule.inverse_unit));
      ++found.pairs;
      found.not_finite += !(std::fabs(s) < HUGE_VALF);
      found.beyond_zero += is_proportion(rule.kind) && s > 0.0f;
      found.too_near += static_cast<long double>(s) < truth;
      const long double slack =
          static_cast<long double>(a.slack) + static_cast<long double>(b.slack);
      found.too_far += !(truth >= static_cast<long double>(s) - slack);
      found.loose += slack > 1e-3L * std::fabs(truth) && i != j;
      if (i == j) continue;
      pairs.distance.push_back(distance);
      pairs.similarity.push_back(s);
      pairs.least.push_back(least_similarity(s, a.slack, b.slack));
    }
    found.lost += pairs.lost();
  }
  return found;
}

void check_matrix(const Matrix& hard) {
  for (const MetricEntry& metric : all_metrics()) {
    if (metric.filter == FilterKind::none ||
        metric.filter == FilterKind::product)
      continue;
    Matrix m = hard;
    std::vector<std::int64_t> skip;
    if (metric.least_overlap != nullptr) {
      for (double& x : m.values) x = std::fabs(x);
      skip = scan(m.source(), 1).zero;
    }
    const auto source = m.source();
    PreparedPoints points;
    try {
      Request request;
      request.metric = &metric;
      points = prepare_points(
          source,
          recipe_of(request, matrix_exponent(metric, scan(source, 1).largest)),
          skip, true, cpu::kBaselineKernels.prepare_row, 1);
    } catch (const RangeFailure&) {
      continue;
    }
    const Found found = check_pairs(metric, points);
    INFO(m.name << ", " << metric.name << ", d = " << m.d);
    CHECK(found.pairs > 0);
    CHECK(found.not_finite == 0);
    CHECK(found.beyond_zero == 0);
    CHECK(found.too_near == 0);
    CHECK(found.too_far == 0);
    CHECK(found.lost == 0);
    // And they say something, where points are not as good as equal.
    if (m.name == "normal" && m.d > 2) CHECK(found.loose == 0);
  }
}

}  // namespace

TEST_CASE("the elementwise filter's bounds hold for every pair") {
  for (const std::int64_t d : {1, 2, 13, 64, 301})
    for (const Matrix& hard : hard_cases(60, d)) check_matrix(hard);
}

TEST_CASE("the elementwise filter's bounds hold for near-empty rows") {
  for (const double level : {1e6, 1e10, 1e40, 1e150, 1e300})
    for (const std::int64_t tiny : {1, 10, 40}) {
      for (const std::int64_t d : {1, 2, 64, 1000})
        check_matrix(near_empty(50, d, level, tiny));
      check_matrix(near_empty(12, 32768, level, tiny / 5 + 1));
    }
}

TEST_CASE("there is no bound of differences but for what is bounded by them") {
  for (const MetricEntry& metric : all_metrics()) {
    INFO(metric.name);
    const bool differences = metric.filter != FilterKind::product &&
                             metric.filter != FilterKind::none;
    // Where there are no tensor cores, rows of bits are filtered as overlaps.
    const FilterKind kind =
        metric.filter == FilterKind::bits ? FilterKind::overlap : metric.filter;
    if (differences)
      CHECK(elementwise_rule(metric, 8, 1.0).kind == kind);
    else
      CHECK_THROWS_AS(elementwise_rule(metric, 8, 1.0), std::logic_error);
    MetricEntry other = metric;
    other.filter = FilterKind::none;
    CHECK_THROWS_AS(elementwise_rule(other, 8, 1.0), std::logic_error);
    other = metric;
    other.accumulation = static_cast<Accumulation>(99);
    CHECK_THROWS_AS(elementwise_rule(other, 8, 1.0), std::logic_error);
  }
}
