// The plain C++ parts of the search between two blocks on a GPU: the slots that
// the filter's jobs compare, and the similarities of limits.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/base/errors.hpp"
#include "core/contract/centred.hpp"
#include "core/contract/prepare.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "cuda/filter/float_bound.hpp"
#include "cuda/filter/half_bound.hpp"
#include "cuda/filter/limits.hpp"
#include "cuda/plan/block_pairs.hpp"
#include "cuda/plan/plan.hpp"
#include "cuda/search/pair_lists.hpp"
#include "float_pairs.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

TEST_CASE("two blocks' jobs meet each pair of slots once, for both") {
  for (const std::int64_t columns : {256, 257, 5000, 70000})
    for (const std::int64_t rows : {256, 300, 4999}) {
      if (rows > columns) continue;
      for (const int processors : {1, 132})
        for (const std::int64_t depth : {64, 16000}) {
          const BlockPairs pairs(columns, rows);
          std::vector<int> met(static_cast<std::size_t>(2 * pairs.row_blocks *
                                                        pairs.column_blocks),
                               0);
          bool all_for_both = true, all_of_two_blocks = true;
          std::int64_t deltas_before = 0, rounds = 0, most_growth = 0;
          for (const FilterJobs& jobs : pairs.jobs(depth, 16384, processors)) {
            all_for_both = all_for_both && jobs.symmetric && !jobs.fill &&
                           jobs.all_valid && jobs.filled == 0;
            CHECK((jobs.first_job | (jobs.end_job - jobs.first_job)) % 2 == 0);
            // Reads jobs as the kernels do.
            for (std::int64_t job = jobs.first_job; job < jobs.end_job; ++job) {
              const std::int64_t slab = jobs.first_slab + job % jobs.num_slabs;
              const std::int64_t first =
                  jobs.first_delta + job / jobs.num_slabs * jobs.span;
              const std::int64_t end =
                  std::min(first + jobs.span, jobs.end_delta);
              for (std::int64_t delta = first; delta < end; ++delta) {
                const std::int64_t column =
                    (slab / 2 + delta + jobs.shift) % jobs.num_blocks;
                const std::int64_t row = slab - 2 * pairs.column_blocks;
                all_of_two_blocks = all_of_two_blocks && row >= 0 &&
                                    row < 2 * pairs.row_blocks &&
                                    column < pairs.column_blocks;
                ++met[static_cast<std::size_t>(row * pairs.column_blocks +
                                               column)];
              }
            }
            if (!jobs.ends_round) continue;
            ++rounds;
            // A list must have room for the candidates of a round.
            if (deltas_before > 0)
              most_growth =
                  std::max(most_growth, jobs.end_delta / deltas_before);
            else
              CHECK(jobs.end_delta == 1);
            deltas_before = jobs.end_delta;
          }
          CHECK(all_for_both);
          CHECK(all_of_two_blocks);
          CHECK(deltas_before == pairs.column_blocks);
          CHECK(most_growth <= 2);
          CHECK(std::all_of(met.begin(), met.end(),
                            [](int times) { return times == 1; }));
        }
    }
}

TEST_CASE("each point of two blocks has a slot, the columns' first") {
  const BlockPairs pairs(300, 257);
  const std::vector<std::int32_t> places = pairs.places();
  REQUIRE(places.size() == 4 * 256);
  CHECK(pairs.num_slots() == 4 * 256);
  std::int32_t next = 0;
  for (std::size_t slot = 0; slot < places.size(); ++slot)
    if (places[slot] >= 0) {
      CHECK(places[slot] == next++);
      CHECK((slot < 512) == (places[slot] < 300));
    }
  CHECK(next == 557);
}

namespace {

/// Points of a hard case, if the metric takes them.
struct Prepared {
  Prepared(const MetricEntry& metric, Matrix matrix) : m(std::move(matrix)) {
    if (metric.filter == FilterKind::overlap)
      for (double& x : m.values) x = std::fabs(x);
    if (std::string(metric.name) == "jaccard" ||
        std::string(metric.name) == "sorensen")
      for (double& x : m.values) x = x > 0.5 ? 1.0 : 0.0;
    request.metric = &metric;
    const auto source = m.source();
    const MatrixFacts facts = scan(source, 1);
    exponent = matrix_exponent(metric, facts.largest);
    std::vector<std::int64_t> skip;
    if (metric.least_overlap != nullptr || metric.row_form == RowForm::unit)
      skip = facts.zero;
    if (metric.row_form == RowForm::ranked) skip = facts.constant;
    try {
      points = prepare_points(source, recipe_of(request, exponent), skip, false,
                              &prepare_row<ScalarLanes>, 1);
    } catch (const RangeFailure&) {
      points = {};  // the metric rejects them
    }
  }
  double before(std::int64_t i, std::int64_t j) const {
    const MetricEntry& metric = *request.metric;
    return metric.finish(scalar_sum(metric.accumulation, points.row(Place{i}),
                                    points.row(Place{j}), points.padded),
                         points.sums[i], points.sums[j]);
  }
  Matrix m;
  Request request;
  int exponent = 0;
  PreparedPoints points;
};

struct Passed {
  std::int64_t pairs = 0, dropped = 0, loose = 0;
};

/// similarity(i, j) is the least value that the filter may compute for a pair.
/// Tests each pair at a limit that is its own distance, and at a much smaller
/// one.
template <class Similarity>
Passed check_limits(const Prepared& all, const SimilarityUnits& units,
                    Similarity similarity) {
  const MetricEntry& metric = *all.request.metric;
  const DistanceRule rule(metric, all.exponent);
  Passed passed;
  for (std::int64_t i = 0; i < all.points.size(); ++i)
    for (std::int64_t j = 0; j < all.points.size(); ++j) {
      if (i == j) continue;
      const double distance = scaled(all.before(i, j), rule.undo().scale);
      if (!is_in_range(distance)) continue;
      const float threshold = threshold_of_limit(metric, rule, units, distance);
      ++passed.pairs;
      passed.dropped += !(similarity(i, j) >= threshold);
      // A limit one percent nearer gives another threshold.
      const float nearer =
          threshold_of_limit(metric, rule, units, 0.99 * distance);
      passed.loose += distance > 0 && !(nearer > threshold);
    }
  return passed;
}

/// Rounds x to the nearest number of 16 bits.
double as_half(double x) {
  if (x == 0.0) return 0.0;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x) - 10, -24));
  return std::rint(x / step) * step;
}

}  // namespace

TEST_CASE("no pair at a limit is filtered out by differences") {
  for (const MetricEntry& metric : metrics_of_numbers()) {
    if (!is_elementwise(metric)) continue;
    for (const Matrix& matrix : hard_cases(24, 19)) {
      const Prepared all(metric, matrix);
      if (all.points.size() < 2) continue;
      const FloatRows rows(metric, all.points, all.points.size());
      const ElementwiseRule& rule = rows.rule;
      SimilarityUnits units;
      units.scale = is_proportion(rule.kind) ? 1.0 : rule.inverse_unit;
      const Passed passed =
          check_limits(all, units, [&](std::int64_t i, std::int64_t j) {
            return upper_similarity(rule.kind, rows.differences(i, j),
                                    rows.bounds[static_cast<std::size_t>(i)],
                                    rows.bounds[static_cast<std::size_t>(j)]);
          });
      CAPTURE(metric.name);
      CAPTURE(matrix.name);
      CHECK(passed.dropped == 0);
      if (matrix.name == "normal") {
        CHECK(passed.pairs > 500);
        CHECK(passed.loose == 0);
      }
    }
  }
}

namespace {

RawSum raw_sum_of(const MetricEntry& metric) {
  if (metric.is_unit_dot()) return RawSum::near_rows;
  return metric.accumulation == Accumulation::dot ? RawSum::product
                                                  : RawSum::squared_distance;
}

/// All points in halves. The first point is the centre, except for products.
struct RawPoints {
  RawPoints(const MetricEntry& metric, const Prepared& all);
  /// The similarity less the error that summation may have.
  double similarity(std::int64_t i, std::int64_t j) const {
    const std::size_t a = static_cast<std::size_t>(i);
    const std::size_t b = static_cast<std::size_t>(j);
    double sum = 0;
    for (std::size_t f = 0; f < halves[a].size(); ++f)
      sum += halves[a][f] * halves[b][f];
    return (sum - bounds[a].norm.sum() - bounds[b].norm.sum() - lost[a] -
            lost[b]) *
           (factors[a] * factors[b]);
  }
  RawRule rule;
  double scale = 1.0;
  std::vector<std::vector<double>> halves;
  std::vector<RawBounds> bounds;
  std::vector<double> lost, factors;
};

RawPoints::RawPoints(const MetricEntry& metric, const Prepared& all) {
  const std::int64_t padded = all.points.padded;
  const DistanceRule distance_rule(metric, all.exponent);
  rule.padded = padded;
  rule.depth = (padded + kNormFeatures + 63) / 64 * 64;
  rule.sum = raw_sum_of(metric);
  const bool products = rule.sum == RawSum::product;
  if (rule.sum == RawSum::near_rows) {
    rule.contract = rounding_of_near_rows(padded);
  } else {
    rule.contract = rounding_of_sums(padded) * 2 + 0x1p-47;
    rule.gap = 0x1p-1072 / distance_rule.undo().scale.first /
               distance_rule.undo().scale.second;
  }
  // Ranks as filters read them: scaled to length 1.
  std::vector<std::vector<double>> rows;
  FilterReader reader(all.points);
  for (std::int64_t i = 0; i < all.points.size(); ++i) {
    const double* const row = reader(Place{i});
    rows.emplace_back(row, row + padded);
  }
  const auto entry = [&](std::int64_t i, std::int64_t f) {
    const std::size_t at = static_cast<std::size_t>(f);
    return rows[static_cast<std::size_t>(i)][at] -
           (products ? 0.0 : rows[0][at]);
  };
  double length = 0;
  for (std::int64_t f = 0; f < padded; ++f)
    length += std::pow(entry(products ? 0 : 1, f), 2);
  scale = two_to(
      length > 0
          ? std::max(-kMostScale,
                     std::min(kTypicalExponent - exponent_of(std::sqrt(length)),
                              kMostScale))
          : 0);
  rule.scale = scale;
  for (std::int64_t i = 0; i < all.points.size(); ++i) {
    double to_one = 1.0, to_ball = 1.0;
    factors.push_back(1.0);
    if (products) {
      double largest = 0.0;
      for (std::int64_t f = 0; f < padded; ++f)
        largest = std::max(largest, std::fabs(entry(i, f)));
      const int e = factor_exponent(scale, largest);
      factors.back() = two_to(e);
      rule.scale = two_to(exponent_of(scale) - e);
    }
    std::vector<double> row(static_cast<std::size_t>(padded));
    const auto round = [&] {
      RawTerms terms;
      for (std::int64_t f = 0; f < padded; ++f) {
        const double c = entry(i, f) * rule.scale * to_one * to_ball;
        const double x = as_half(c);
        terms.whole += c * c;
        terms.halves += x * x;
        terms.rounding += (c - x) * (c - x);
        row[static_cast<std::size_t>(f)] = x;
      }
      return terms;
    };
    RawTerms terms = round();
    const bool cut = beyond_ball(rule, terms);
    if (cut) {
      double largest = 0.0;
      for (std::int64_t f = 0; f < padded; ++f)
        largest = std::max(largest, std::fabs(entry(i, f) * rule.scale));
      to_one = two_to(-exponent_of(largest));
      to_ball = kLongestBall / std::sqrt(round().whole);
      terms = round();
    }
    if (rule.sum == RawSum::near_rows)
      terms.unit = all.points.whole_ranks
                       ? rounding_of_ranks(padded)
                       : unit_rounding(all.points.row(Place{i}), padded);
    const RawBounds own = raw_bounds(rule, terms, cut);
    CHECK(!(cut && own.slack < HUGE_VALF));
    double magnitude = 0;
    for (int p = 0; p < kNormParts; ++p)
      magnitude += std::fabs(own.norm.part[p]) * part_unit(p);
    // A wild row consists of zeros except for its norm.
    lost.push_back(sums_error(rule.depth) *
                   ((own.wild ? 0.0 : terms.halves / 2) +
                    (products && !own.wild ? 0.0 : magnitude)));
    if (own.wild) std::fill(row.begin(), row.end(), 0.0);
    if (own.wild && products) factors.back() = HUGE_VAL;
    halves.push_back(row);
    bounds.push_back(own);
  }
}

}  // namespace

TEST_CASE("no pair at a limit is filtered out by products of raw rows") {
  for (const char* const name :
       {"euclidean", "inner_product", "cosine", "spearman"}) {
    const MetricEntry& metric = find_metric(name, "signed");
    std::vector<Matrix> cases = hard_cases(24, 19);
    for (const Matrix& matrix : offset_cases(24, 19)) cases.push_back(matrix);
    for (const Matrix& matrix : cases) {
      const Prepared all(metric, matrix);
      if (all.points.size() < 2) continue;
      const RawPoints raw(metric, all);
      SimilarityUnits units;
      units.scale = raw.scale;
      units.near_rows = raw.rule.sum == RawSum::near_rows;
      const Passed passed = check_limits(
          all, units,
          [&](std::int64_t i, std::int64_t j) { return raw.similarity(i, j); });
      CAPTURE(name);
      CAPTURE(matrix.name);
      CHECK(passed.dropped == 0);
      if (matrix.name == "normal") {
        CHECK(passed.pairs > 500);
        CHECK(passed.loose == 0);
      }
    }
  }
}

TEST_CASE("a row far beyond all others is a candidate of none") {
  const MetricEntry& metric = find_metric("euclidean", "signed");
  for (const double huge : {1e5, 1e8, 1e30, 1e100}) {
    Matrix m = normal("one huge entry", 24, 19, 7);
    m.at(12, 9) = huge;
    const Prepared all(metric, m);
    const RawPoints raw(metric, all);
    CAPTURE(huge);
    for (std::int64_t i = 0; i < 24; ++i) {
      const RawBounds& row = raw.bounds[static_cast<std::size_t>(i)];
      CHECK(!row.wild);
      if (all.points.order.id_at(Place{i}).value != 12) continue;
      CHECK(row.slack == HUGE_VALF);
      // The row's own values are about -2^17.
      for (std::int64_t j = 0; j < 24; ++j)
        if (i != j) CHECK(raw.similarity(i, j) < -0x1p28);
    }
  }
}

TEST_CASE("no pair at a limit is filtered out by products of length 1") {
  for (const char* const name : {"pearson", "spearman"})
    for (const char* const sign : {"signed", "absolute", "negative"}) {
      const MetricEntry& metric = find_metric(name, sign);
      const Prepared all(metric, normal("normal", 24, 19, 3));
      for (const double error : {0.0, 1e-4, 0.3}) {
        constexpr double scale = 0x1p28;
        SimilarityUnits units;
        units.scale = scale;
        units.error = error * scale;
        // The least value that the bound allows.
        const Passed passed =
            check_limits(all, units, [&](std::int64_t i, std::int64_t j) {
              return (1.0 - all.before(i, j) - error) * scale;
            });
        CAPTURE(name);
        CAPTURE(sign);
        CHECK(passed.pairs > 500);
        CHECK(passed.loose == 0);
        CHECK(passed.dropped == 0);
      }
    }
}

TEST_CASE(
    "limits that say nothing let all pairs pass, and minus infinity none") {
  for (const MetricEntry& metric : metrics_of_numbers()) {
    const DistanceRule rule(metric, 0);
    SimilarityUnits units;
    CAPTURE(metric.name);
    CHECK(threshold_of_limit(metric, rule, units, HUGE_VAL) == -HUGE_VALF);
    CHECK(threshold_of_limit(metric, rule, units, std::nan("")) == -HUGE_VALF);
    CHECK(threshold_of_limit(metric, rule, units, -HUGE_VAL) == HUGE_VALF);
    CHECK(threshold_of_limit(metric, rule, units, 0.5) < HUGE_VALF);
    if (!metric.is_unit_dot()) continue;
    for (const double unknown : {HUGE_VAL, std::nan("")}) {
      units.error = unknown;
      CHECK(threshold_of_limit(metric, rule, units, 0.5) == -HUGE_VALF);
    }
  }
}

TEST_CASE("of a list from a device what is within its row's limit is kept") {
  const Matrix m = normal("normal", 20, 2, 1);
  const auto points = m.source();
  Between between;
  between.a = {2, 3};
  between.b = {10, 2};
  const BlockRows blocks(points, between.a, between.b);
  between.limits = {0.5, HUGE_VAL, -HUGE_VAL, -2.0, 0.25};
  PairLists lists(between);
  const double distance[] = {0.25, 0.5, 0.75}, wide[] = {-1.0, 2.0, HUGE_VAL};
  const double below[] = {-HUGE_VAL, 0.5};
  const std::int32_t of_b[] = {3, 4, 3}, of_a[] = {2, 0, 1};
  // Lists come in any order; the last one of a row counts.
  lists.take(4, 3, distance, of_a, nullptr);
  lists.take(0, 1, wide, of_b, nullptr);
  lists.take(0, 3, distance, of_b, nullptr);
  lists.take(1, 3, wide, of_b, nullptr);
  lists.take(2, 2, below, of_b, nullptr);
  lists.take(3, 3, wide, of_a, nullptr);
  Pairs part;
  lists.write(blocks, part);
  CHECK(part.count == WithinAnswer::Counts{2, 2, 0, 0, 1});
  CHECK(part.index == std::vector<std::int32_t>{11, 12, 11, 12, 5});
  CHECK(part.distance == std::vector<double>{0.25, 0.5, -1.0, 2.0, 0.25});
  CHECK_THROWS_AS(lists.take(1, 2, below, of_b, nullptr), RangeFailure);
}

// test-cuda-between.R and test-input-latent_rows.R use these limits.
TEST_CASE("limits of memory in tests of GPUs bring about what they mean") {
  GpuFacts gpu;
  gpu.bytes_free = 140e9;
  gpu.capability = 90;
  gpu.shared_bytes = 232448;
  gpu.multiprocessors = 132;
  PlanInput side;
  side.num_points = side.num_queries = 4500;
  side.num_features = 300;
  side.k = 5;
  side.unit_dot = side.correlation = true;
  for (const double limit : {60e6, 100e6}) {
    gpu.bytes_limit = limit;
    const CudaPlan plan = plan_cuda(side, gpu);
    CHECK(plan.bytes_peak <= limit);
    CHECK(plan.filtered == (limit > 80e6));
    CHECK_FALSE(plan.streamed);
  }
  PlanInput made;
  made.num_points = 20000;
  made.num_features = 200;
  made.k = 12;
  made.unit_dot = made.rows_made = true;
  made.bytes_made_from = 4 * 200 * 6;
  gpu.bytes_limit = 60e6;
  const CudaPlan plan = plan_cuda(made, gpu);
  CHECK(plan.bytes_peak <= 60e6);
  CHECK((plan.filtered && plan.streamed));
  CHECK(plan.streaming.stay_rows < 20000);
}
