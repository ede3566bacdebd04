// The elementwise filters of the GPUs, in floats and in whole numbers, with
// their arithmetic on the host. A pair's similarity is between the filter's
// value and that value less both slacks. The filter's value is at least the
// threshold of any limit that keeps the pair.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.hpp"
#include "core/base/errors.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cuda/exact/list_rules.hpp"
#include "cuda/filter/float_bound.hpp"
#include "cuda/filter/limits.hpp"
#include "cuda/filter/whole_bound.hpp"
#include "cuda/filter/whole_choice.hpp"
#include "float_pairs.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

namespace {

constexpr NumberForm kForms[] = {NumberForm::single,
                                 NumberForm::byte_difference,
                                 NumberForm::word_difference};

// As the kernels do it, in 32 bits (largest differences in 16).
float differences(const ElementwiseRule& rule, NumberForm form,
                  const std::uint32_t* a, const std::uint32_t* b,
                  std::int64_t depth) {
  std::uint32_t bits = 0x4b000000u, totals = 0, smaller = 0, most = 0;
  std::int32_t largest = -1;
  for (std::int64_t f = 0; f < depth; ++f) {
    const std::uint32_t low = std::min(a[f], b[f]), high = std::max(a[f], b[f]);
    bits += high - low;
    totals += a[f] + b[f];
    smaller += low;
    most = std::max(most, high);
    const std::int32_t one = static_cast<std::int16_t>(high + (~low & 0xffffu));
    largest = std::max(largest, one);
  }
  CHECK_FALSE(most > (form == NumberForm::byte_difference ? 255u
                      : rule.kind == FilterKind::largest  ? 32767u
                                                          : 65535u));
  if (rule.kind == FilterKind::largest) return static_cast<float>(largest + 1);
  if (form == NumberForm::word_difference)
    return static_cast<float>(totals - 2u * smaller);
  float sum;
  std::memcpy(&sum, &bits, sizeof sum);
  return sum - 0x1p23f;
}

struct WholeRows {
  ElementwiseRule rule;
  NumberForm form;
  std::vector<std::uint32_t> numbers;  ///< [rows x depth], as stored
  std::vector<RowBounds> bounds;
  std::int64_t depth;

  WholeRows(const MetricEntry& metric, const PreparedPoints& points,
            std::int64_t in_sample, NumberForm number_form)
      : form(number_form), depth(points.padded) {
    const FilterKind kind = elementwise_rule(metric, depth, 1.0).kind;
    ElementwiseScale scale = whole_scale(points.rows.data(), in_sample, depth,
                                         points.num_features, form, kind);
    // Any unit has a bound. No search would choose whole numbers here.
    if (scale.inverse_unit == 0.0) scale.inverse_unit = 1.0;
    rule = whole_rule(metric, depth, scale.inverse_unit);
    const int most = most_whole(form, kind);
    for (std::int64_t i = 0; i < points.size(); ++i) {
      RowTerms terms;
      for (std::int64_t f = 0; f < depth; ++f)
        numbers.push_back(static_cast<std::uint32_t>(
            whole_entry(rule, most, points.row(Place{i})[f],
                        scale.centre[static_cast<std::size_t>(f)], terms) +
            most + 1));
      bounds.push_back(row_bounds(rule, terms, points.sums[i]));
    }
  }
  float differences(std::int64_t i, std::int64_t j) const {
    return ::differences(rule, form, numbers.data() + i * depth,
                         numbers.data() + j * depth, depth);
  }
};

struct Found {
  std::int64_t pairs = 0, too_near = 0, too_far = 0, not_finite = 0,
               beyond_zero = 0, lost = 0, loose = 0, dropped = 0, unranked = 0;
};

// The number of neighbours where lists are cut.
constexpr std::size_t kNear = 3;

/// A row's pairs with other points, as seen by its list and by its exact step.
struct RowPairs {
  std::vector<double> distance;
  std::vector<float> similarity, least;

  /// Lemma 6: counts the nearest that are below the threshold of all.
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

/// The filter compares the proportional distance, which for Jaccard's distance
/// D is D / (2 - D).
long double in_proportion(const MetricEntry& metric, long double distance) {
  return std::string(metric.name) == "jaccard" ? distance / (2.0L - distance)
                                               : distance;
}

template <class Rows>
Found check_pairs(const MetricEntry& metric, const PreparedPoints& points,
                  const DistanceRule& distances, const Rows& rows) {
  const ElementwiseRule& rule = rows.rule;
  SimilarityUnits units;
  units.scale = is_proportion(rule.kind) ? 1.0 : rule.inverse_unit;
  const DistanceRule unscaled(metric, 0);
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
      const float apart = rows.differences(i, j);
      const float s = upper_similarity(rule.kind, apart, a, b);
      const long double truth =
          -in_proportion(metric, static_cast<long double>(distance)) *
          (is_proportion(rule.kind)
               ? 1.0L
               : static_cast<long double>(rule.inverse_unit));
      ++found.pairs;
      found.not_finite += !(std::fabs(s) < HUGE_VALF);
      found.beyond_zero += is_proportion(rule.kind) && s > 0.0f;
      found.too_near += static_cast<long double>(s) < truth;
      const double slacks =
          static_cast<double>(a.slack) + static_cast<double>(b.slack);
      const double sums =
          static_cast<double>(a.sum) + static_cast<double>(b.sum);
      // Infinite slacks over infinite sums give no bound, either.
      const double error =
          is_proportion(rule.kind) ? slack_over_sums(slacks, sums) : slacks;
      const long double slack = error == error ? error : HUGE_VALL;
      const float least = least_similarity(s, error, 0.0);
      const float reranked = threshold_of_limit(
          metric, distances, units, scaled(distance, distances.undo().scale));
      found.unranked +=
          !(s >= reranked) || !may_reach(rule.kind, apart, a, b, reranked);
      found.too_far += !(truth >= static_cast<long double>(s) - slack);
      // A pair that reaches a threshold is not pruned. The thresholds are those
      // of a limit at the pair, of its lower bound, and of padding.
      for (const float threshold :
           {float_at_most(static_cast<double>(truth)), least, -HUGE_VALF, 0.0f})
        found.dropped += static_cast<long double>(threshold) <= truth &&
                         !may_reach(rule.kind, apart, a, b, threshold);
      // The threshold of the distance itself, as in searches within a distance.
      const float limit = threshold_of_limit(metric, unscaled, units, distance);
      found.dropped +=
          !(s >= limit) || !may_reach(rule.kind, apart, a, b, limit);
      found.loose += slack > 1e-3L * std::fabs(truth) && i != j;
      if (i == j) continue;
      pairs.distance.push_back(distance);
      pairs.similarity.push_back(s);
      pairs.least.push_back(least);
    }
    found.lost += pairs.lost();
  }
  return found;
}

void check_found(const Matrix& m, const MetricEntry& metric, NumberForm form,
                 const Found& found) {
  INFO(m.name << ", " << metric.name << ", d = " << m.d << ", " << bits_of(form)
              << " bits");
  CHECK(found.pairs > 0);
  CHECK(found.not_finite == 0);
  CHECK(found.beyond_zero == 0);
  CHECK(found.too_near == 0);
  CHECK(found.too_far == 0);
  CHECK(found.dropped == 0);
  CHECK(found.lost == 0);
  CHECK(found.unranked == 0);
  // The bounds are useful unless points are nearly equal.
  if (m.name == "normal" && m.d > 2 && form == NumberForm::single)
    CHECK(found.loose == 0);
}

void check_matrix(const Matrix& hard) {
  for (const MetricEntry& metric : metrics_of_numbers()) {
    if (!is_elementwise(metric)) continue;
    Matrix m = hard;
    std::vector<std::int64_t> skip;
    if (metric.least_overlap != nullptr) {
      for (double& x : m.values) x = std::fabs(x);
      skip = scan(m.source(), 1).zero;
    }
    const auto source = m.source();
    const int exponent = matrix_exponent(metric, scan(source, 1).largest);
    PreparedPoints points;
    try {
      Request request;
      request.metric = &metric;
      points = prepare_points(source, recipe_of(request, exponent), skip, true,
                              cpu::kBaselineKernels.prepare_row, 1);
    } catch (const RangeFailure&) {
      continue;
    }
    for (const NumberForm form : kForms) {
      // Where tensor cores count no bits, rows of bits have all these forms.
      if (metric.filter != FilterKind::bits &&
          (entry_of(form).serves & one_filter(metric.filter)) == 0)
        continue;
      // Rows beyond the sample may be clipped.
      const std::int64_t few = std::min<std::int64_t>(points.size(), 32);
      const DistanceRule distances(metric, exponent);
      check_found(m, metric, form,
                  form == NumberForm::single
                      ? check_pairs(metric, points, distances,
                                    FloatRows(metric, points, few))
                      : check_pairs(metric, points, distances,
                                    WholeRows(metric, points, few, form)));
    }
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
  for (const MetricEntry& metric : metrics_of_numbers()) {
    INFO(metric.name);
    // Without tensor cores rows of bits are filtered as overlaps.
    const FilterKind kind =
        metric.filter == FilterKind::bits ? FilterKind::overlap : metric.filter;
    if (is_elementwise(metric))
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

TEST_CASE("sums of differences of whole numbers are exact at their ends") {
  const auto& bytes = entry_of(NumberForm::byte_difference);
  const auto& words = entry_of(NumberForm::word_difference);
  // The sum is stored in the bits of 2^23 plus a smaller whole number.
  CHECK(2 * most_whole(NumberForm::byte_difference, FilterKind::difference) *
            bytes.most_features <
        1 << 23);
  // The sums are modulo 2^32.
  const std::int64_t most =
      most_whole(NumberForm::word_difference, FilterKind::difference);
  CHECK(2 * most * words.most_features < std::int64_t{1} << 31);
  CHECK(2 * most + 1 <= 65535);
  CHECK(2 * most_whole(NumberForm::word_difference, FilterKind::largest) + 1 <=
        32767);
  for (const NumberForm form :
       {NumberForm::byte_difference, NumberForm::word_difference})
    for (const MetricEntry& metric : metrics_of_numbers()) {
      if (metric.filter != FilterKind::difference &&
          metric.filter != FilterKind::overlap)
        continue;
      const std::int64_t d = entry_of(form).most_features;
      const int largest = most_whole(form, metric.filter);
      const ElementwiseRule rule = whole_rule(metric, d, 1.0);
      RowTerms low, high;
      const std::uint32_t bottom = static_cast<std::uint32_t>(
          whole_entry(rule, largest, -1e9, 0.0, low) + largest + 1);
      const std::uint32_t top = static_cast<std::uint32_t>(
          whole_entry(rule, largest, HUGE_VAL, 0.0, high) + largest + 1);
      CHECK(bottom == 1);
      CHECK(high.clamped == HUGE_VAL);
      const std::size_t n = static_cast<std::size_t>(d);
      const std::vector<std::uint32_t> a(n, bottom), b(n, top);
      const double sum = static_cast<double>(d) * 2 * largest;
      CHECK(
          static_cast<double>(differences(rule, form, a.data(), b.data(), d)) ==
          static_cast<double>(static_cast<float>(sum)));
      CHECK(differences(rule, form, b.data(), b.data(), d) == 0.0f);
    }
}

TEST_CASE("a unit of whole numbers is made of what most rows have") {
  const std::int64_t n = 1000, padded = 8, d = 5;
  std::vector<double> rows(static_cast<std::size_t>(n * padded), 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      rows[static_cast<std::size_t>(i * padded + f)] =
          static_cast<double>((i * 7 + f * 3) % 50);
  const auto unit = [&](NumberForm form) {
    return 1.0 /
           whole_scale(rows.data(), n, padded, d, form, FilterKind::difference)
               .inverse_unit;
  };
  // Whole numbers are kept exactly, and padding is 0.
  CHECK(unit(NumberForm::byte_difference) == 1.0);
  const ElementwiseScale scale =
      whole_scale(rows.data(), n, padded, d, NumberForm::byte_difference,
                  FilterKind::difference);
  for (std::int64_t f = d; f < padded; ++f)
    CHECK(scale.centre[static_cast<std::size_t>(f)] == 0.0);
  const double words = unit(NumberForm::word_difference);
  CHECK(words > 50.0 / 32767);
  CHECK(words < 250.0 / 32767);
  // One huge entry changes neither unit much.
  rows[3] = 1e30;
  CHECK(unit(NumberForm::byte_difference) < 2.0);
  CHECK(unit(NumberForm::word_difference) < 250.0 / 32767);
  // There is no spread.
  std::fill(rows.begin(), rows.end(), 4.0);
  for (const NumberForm form :
       {NumberForm::byte_difference, NumberForm::word_difference})
    CHECK(whole_scale(rows.data(), n, padded, d, form, FilterKind::difference)
              .inverse_unit == 0.0);
}

TEST_CASE("whole numbers pay where they leave few pairs more") {
  WholeSample sample;
  sample.rows = 4;
  sample.columns = 1000;
  for (std::int64_t at = 0; at < 4000; ++at)
    sample.distance.push_back(100.0 + static_cast<double>(at * 37 % 1000));
  sample.sum.assign(1000, 1.0f);
  WholeSearch search;
  search.num_points = 100000;
  search.num_features = 300;
  search.k = 20;
  search.capacity = 256;
  const auto pays = [&](float room, NumberForm form) {
    sample.room.assign(1000, room);
    return whole_pays(sample, form, FilterKind::difference, search);
  };
  for (const NumberForm form :
       {NumberForm::byte_difference, NumberForm::word_difference}) {
    CHECK(pays(0.0f, form));
    CHECK_FALSE(pays(100.0f, form));
    CHECK_FALSE(pays(HUGE_VALF, form));
  }
  // Two or three times as many candidates as neighbours pay, if lists have room
  // for those that pass with both rows' errors counted twice.
  const auto bytes_pay = [&](float room) {
    return pays(room, NumberForm::byte_difference);
  };
  CHECK(bytes_pay(0.6f));
  search.capacity = 64;
  CHECK_FALSE(bytes_pay(0.6f));
  CHECK(bytes_pay(0.0f));
  search.capacity = 256;
  // With exact re-ranking 90 candidates are expected: those that pass with both
  // errors counted once, and 30 more. Without it 100 are expected.
  search.num_features = 16;
  CHECK(bytes_pay(1.2f));
  search.reranks = false;
  CHECK_FALSE(bytes_pay(1.2f));
  search.reranks = true;
  search.num_features = 300;
  // All pairs that are near enough.
  search.k = 0;
  search.limit = 99.0;
  CHECK(pays(0.0f, NumberForm::byte_difference));
  CHECK_FALSE(pays(100.0f, NumberForm::byte_difference));
  sample.columns = 0;
  sample.rows = 0;
  CHECK(pays(0.0f, NumberForm::byte_difference));
}
