// The guarantee of the filter, pair by pair: at a row's threshold for the
// distance of a pair, that pair passes; and upper bounds hold.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/errors.hpp"
#include "core/rows/scan.hpp"
#include "cpu/filter/bytes_pay.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/scale.hpp"
#include "cpu/filter/second_test.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/filter/two_values.hpp"
#include "cpu/kernels/kernels.hpp"
#include "metric_cases.hpp"

using namespace fsknn;
using namespace fsknn::cpu;

namespace {

struct Prepared {
  PreparedPoints points;
  FilterScale scale;
  FilterRows rows;
  int exponent;
};

/// The bits in which the metric has filters.
std::vector<int> bits_for(const MetricEntry& metric) {
  return metric.is_unit_dot() || metric.filter == FilterKind::difference ||
                 metric.filter == FilterKind::overlap
             ? std::vector<int>{16, 8}
             : std::vector<int>{16};
}

void prepare(const MetricEntry& metric, const Matrix& m, int bits,
             Prepared& p) {
  const auto source = m.source();
  p.exponent = matrix_exponent(metric, scan(source, 1).largest);
  Request request;
  request.metric = &metric;
  p.points =
      prepare_points(source, recipe_of(request, p.exponent), unfit(metric, m),
                     true, kBaselineKernels.prepare_row, 1);
  p.scale = choose_scale(metric, DistanceRule(metric, p.exponent),
                         kBaselineKernels, p.points, nullptr, 1, {1, bits});
  p.rows = pack(p.scale, p.points, 1);
  set_slack(p.scale, p.rows.error, p.points.padded);
  complete(p.scale, p.rows);
}

/// Rows of length 1 whose rounding to bytes is parallel to other rows. Some
/// have one large entry and others next to half a unit. Some have equal
/// entries, whose bytes are exact. A pair of both kinds nearly attains the
/// bound.
Matrix along_the_rounding(std::int64_t n, std::int64_t d) {
  Matrix m = make("along the rounding", n, d);
  for (std::int64_t i = 0; i < n; ++i) {
    const double half = 0.5 + (i % 4 - 1.5) * 1e-6;
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) =
          i % 3 == 0 ? (i % 2 == 0 ? 1.0 : -1.0) : (f == i % d ? 127.0 : half);
  }
  return m;
}

/// Rows of bytes with the largest differences, and rows next to half a unit, or
/// half a part of one, on both sides. Their distances differ from those of
/// bytes, or words, by all that rounding can cause.
Matrix next_to_half(double unit, std::int64_t n, std::int64_t d) {
  const double level[] = {-127.0 / unit, 127.0 / unit, 0.5 + 1e-6,
                          -0.5 - 1e-6,   0.5 - 1e-6,   -0.5 + 1e-6};
  Matrix m = make("next to half of " + std::to_string(unit), n, d);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = 127.0 + unit * level[i % 6];
  return m;
}

std::vector<Matrix> filter_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all = hard_cases(n, d);
  all.push_back(along_the_rounding(n, d));
  all.push_back(next_to_half(1.0, n, d));
  all.push_back(next_to_half(1.0 / kPartsOfUnit, n, d));
  for (const double level : {1e6, 1e150, 1e300})
    all.push_back(near_empty(n, d, level, 10));
  return all;
}

/// Tests every pair of at most 96 points.
void check_all_pairs(const Matrix& hard, std::int64_t d,
                     const MetricEntry& metric,
                     const std::vector<int>& all_bits) {
  for (const int bits : all_bits) {
    Matrix m = hard;
    if (metric.least_overlap != nullptr)
      for (double& x : m.values) x = std::fabs(x);
    Prepared p;
    try {
      prepare(metric, m, bits, p);
      if (p.points.size() < 2) continue;
    } catch (const RangeFailure&) {
      continue;  // 1e300 and 1e-318 in one matrix have no proportion
    }
    const DistanceRule rule(metric, p.exponent);
    const Thresholds thresholds(p.scale, metric, rule);
    const std::int64_t n = p.points.size();
    const std::vector<std::int32_t> none(96, thresholds.keep_none());
    std::vector<std::int32_t> held = none;
    std::int64_t dropped = 0, below = 0, wrong_side = 0, missed = 0;
    SecondTest again(kBaselineKernels, p.rows, p.rows);
    const auto passes = [&](const Pair& pair,
                            const std::vector<std::int32_t>& row_threshold,
                            const std::vector<std::int32_t>& threshold) {
      std::vector<Pair> hits = {pair};
      again.drop(0, 0, row_threshold.data(), threshold.data(), hits);
      return hits.size() == 1;
    };
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t c0 = 0; c0 < n; c0 += Tile::columns) {
        alignas(64) std::int32_t sums[Tile::rows * Tile::columns];
        const std::int64_t i0 = i / Tile::rows * Tile::rows;
        const int panels = static_cast<int>(std::min<std::int64_t>(
            Tile::panels, (p.rows.num_places - c0) / Tile::panel));
        kBaselineKernels.accumulate(p.scale.form->product, p.rows.row(i0),
                                    p.rows.panel(c0), panels, p.rows.steps,
                                    sums);
        float keys[Tile::columns];
        std::fill_n(keys, Tile::columns, HUGE_VALF);
        kBaselineKernels.lower_best(
            p.scale.form->test, sums + (i - i0) * Tile::columns, panels,
            p.rows.upper_side(i), p.rows.upper_side(c0), 0, Tile::panels, keys);
        for (std::int64_t j = c0; j < std::min(c0 + Tile::columns, n); ++j) {
          if (i == j) continue;
          const Pair pair = {static_cast<std::int32_t>(i),
                             static_cast<std::int32_t>(j)};
          double sum;
          kBaselineKernels.exact(metric.accumulation, p.points.rows.data(),
                                 p.points.rows.data(), p.points.padded, &pair,
                                 1, &sum);
          const double distance = rule(sum, p.points.sums[i], p.points.sums[j]);
          if (!(distance < HUGE_VAL)) continue;
          // First row i has the threshold, then column j.
          const std::int32_t threshold = thresholds.keep_up_to(distance);
          held[static_cast<std::size_t>(i)] = threshold;
          std::uint64_t keep[Tile::rows];
          kBaselineKernels.test(p.scale.form->test, sums, panels,
                                p.rows.side(held.data() + i0, i0),
                                p.rows.side(none.data(), c0), keep);
          dropped += !(keep[i - i0] >> (j - c0) & 1);
          missed += !passes(pair, held, none);
          held[static_cast<std::size_t>(i)] = thresholds.keep_none();
          held[static_cast<std::size_t>(j)] = threshold;
          kBaselineKernels.test(p.scale.form->test, sums, panels,
                                p.rows.side(none.data() + i0, i0),
                                p.rows.side(held.data() + c0, c0), keep);
          wrong_side += !(keep[i - i0] >> (j - c0) & 1);
          missed += !passes(pair, none, held);
          held[static_cast<std::size_t>(j)] = thresholds.keep_none();
          below += thresholds.upper_distance(keys[j - c0],
                                             p.rows.upper_side(i)) < distance;
        }
      }
    }
    CAPTURE(std::string(metric.name) + " " + sign_name(metric.sign) + ", " +
            m.name + ", d = " + std::to_string(d) + ", " +
            std::to_string(bits) + " bits");
    CHECK(dropped == 0);
    CHECK(wrong_side == 0);
    CHECK(below == 0);
    CHECK(missed == 0);
  }
}

}  // namespace

TEST_CASE("no pair is dropped at its own distance, and upper bounds hold") {
  for (const std::int64_t d : {1, 2, 13, 64})
    for (const Matrix& hard : filter_cases(96, d))
      for (const MetricEntry& metric : metrics_of_numbers())
        check_all_pairs(hard, d, metric, bits_for(metric));
}

TEST_CASE("the same of ranks with many ties, by each form that there is") {
  for (const std::int64_t d : {2, 3, 5, 40}) {
    Matrix one = make("constant but for one", 96, d);
    for (std::int64_t i = 0; i < one.n; ++i)
      one.at(i, i % d) = i % 3 == 0 ? -1.0 : 1.0;
    // Most of a row is tied, and the rest nearly so.
    Matrix two = one;
    two.name = "constant but for two";
    for (std::int64_t i = 0; i < two.n; ++i)
      two.at(i, (i / 2 + 1) % d) += i % 2 == 0 ? 2.0 : 0.0;
    for (const Matrix& hard : {one, two, ties(96, d, 2, 41), ties(96, d, 3, 42),
                               normal("no ties", 96, d, 43)})
      for (const char* const sign : {"signed", "absolute", "negative"})
        check_all_pairs(hard, d, find_metric("spearman", sign), {0, 16, 8});
  }
}

TEST_CASE("the same of rows far from 0, and of huge entries, by products") {
  for (const std::int64_t d : {1, 13, 64})
    for (const Matrix& hard : offset_cases(96, d))
      for (const MetricEntry& metric : metrics_of_numbers())
        if (metric.filter == FilterKind::product)
          check_all_pairs(hard, d, metric, bits_for(metric));
}

TEST_CASE("the same of rows of two values, from one feature to all but one") {
  std::mt19937 random(5);
  for (const std::int64_t d : {2, 13, 64, 700}) {
    Matrix m = make("two values", 96, d);
    for (std::int64_t i = 0; i < 96; ++i) {
      const std::int64_t set = i % 3 == 0 ? 1 : i % 3 == 1 ? d - 1 : d / 2;
      // Some rows equal earlier ones.
      if (i > 20 && i % 5 == 0) {
        for (std::int64_t f = 0; f < d; ++f) m.at(i, f) = m.at(i - 15, f);
        continue;
      }
      const std::int64_t first =
          static_cast<std::int64_t>(random() % static_cast<unsigned>(d));
      for (std::int64_t f = 0; f < d; ++f)
        m.at(i, f) = (f + first) % d < set ? 1.0 : 0.0;
    }
    for (const MetricEntry& metric : metrics_of_numbers()) {
      if (!metric.is_unit_dot()) continue;
      Prepared p;
      prepare(metric, m, 0, p);
      CAPTURE(metric.name);
      if (metric.row_form != RowForm::biweight_unit)
        CHECK(is_two_values(*p.scale.form));
      check_all_pairs(m, d, metric, {0});
    }
  }
}

TEST_CASE("every instruction set sums and tests the same") {
  const Matrix m = normal("normal", 96, 37, 5);
  for (const MetricEntry& metric : metrics_of_numbers()) {
    Matrix fit = m;
    if (metric.least_overlap != nullptr)
      for (double& x : fit.values) x = std::fabs(x);
    for (const int bits : bits_for(metric)) {
      Prepared p;
      prepare(metric, fit, bits, p);
      const DistanceRule rule(metric, p.exponent);
      const Thresholds thresholds(p.scale, metric, rule);
      std::vector<std::int32_t> held(96);
      for (std::size_t i = 0; i < held.size(); ++i)
        held[i] = thresholds.keep_up_to(0.1 + 0.02 * static_cast<double>(i));
      for (int panels = 1; panels <= Tile::panels; ++panels) {
        alignas(64) std::int32_t expected[Tile::rows * Tile::columns] = {};
        std::uint64_t expected_keep[Tile::rows];
        for (const Kernels* kernels : available_kernels()) {
          alignas(64) std::int32_t sums[Tile::rows * Tile::columns] = {};
          std::uint64_t keep[Tile::rows];
          kernels->accumulate(p.scale.form->product, p.rows.row(8),
                              p.rows.panel(48), panels, p.rows.steps, sums);
          kernels->test(p.scale.form->test, sums, panels,
                        p.rows.side(held.data() + 8, 8),
                        p.rows.side(held.data() + 48, 48), keep);
          if (kernels == &kBaselineKernels) {
            std::copy_n(sums, Tile::rows * Tile::columns, expected);
            std::copy_n(keep, Tile::rows, expected_keep);
          }
          CAPTURE(kernels->name);
          CAPTURE(metric.name);
          CHECK(std::equal(sums, sums + Tile::rows * Tile::columns, expected));
          // Without FMA float tests may differ in the last bit; whole numbers
          // may not.
          if (p.scale.form->test != Test::squared_distance && bits != 8)
            CHECK(std::equal(keep, keep + Tile::rows, expected_keep));
        }
      }
    }
  }
}

TEST_CASE("sums of bytes are those of whole numbers, of however many") {
  // Beyond 66,311 features the sums with 128 added to each byte exceed 2^31 on
  // the way. Beyond 133,144 features rows of equal entries need a larger unit.
  for (const std::int64_t d : {1, 5, 64, 66312, 133152, 200000}) {
    Matrix m = normal("rows of bytes", 48, d, 6);
    for (std::int64_t i = 0; i < 32; ++i)
      for (std::int64_t f = 0; f < d; ++f)
        m.at(i, f) = i % 4 == 0   ? 1.0
                     : i % 4 == 1 ? -1.0
                     : i % 4 == 2 ? (f % 2 == 0 ? 1.0 : -1.0)
                                  : (f == 0 ? 1.0 : 1e-3);
    Prepared p;
    prepare(find_metric("cosine", "signed"), m, 8, p);
    REQUIRE(p.scale.form->product == Product::byte_dot);
    const auto byte = [&](std::int64_t place, std::int64_t f) {
      const std::int32_t step = p.rows.row(place)[(1 + f / 4) * Tile::panel];
      return std::int64_t{static_cast<std::int8_t>(step >> 8 * (f % 4))};
    };
    for (const Kernels* kernels : available_kernels()) {
      CAPTURE(kernels->name);
      CAPTURE(d);
      std::int64_t wrong = 0, largest = 0;
      for (int r0 = 0; r0 < 48; r0 += Tile::rows) {
        alignas(64) std::int32_t sums[Tile::rows * Tile::columns] = {};
        kernels->accumulate(Product::byte_dot, p.rows.row(r0), p.rows.panel(0),
                            Tile::panels, p.rows.steps, sums);
        // For long rows the test sums only some pairs, of all kinds of rows.
        const int step = d > 1000 ? 5 : 1;
        for (int r = 0; r<Tile::rows; r += d> 1000 ? 3 : 1)
          for (int c = 0; c < Tile::columns; c += step) {
            std::int64_t sum = 0;
            for (std::int64_t f = 0; f < d; ++f)
              sum += byte(r0 + r, f) * byte(c, f);
            wrong += sums[r * Tile::columns + c] != sum;
            largest = std::max(largest, std::abs(sum));
          }
      }
      CHECK(wrong == 0);
      if (d > 133144) CHECK(largest > 2000000000);
    }
  }
}

TEST_CASE("bytes are taken where a sample says that they pay") {
  const MetricEntry& metric = find_metric("pearson", "signed");
  const DistanceRule rule(metric, 0);
  Request request;
  request.metric = &metric;
  const auto pay = [&](const Matrix& m, std::int64_t k) {
    const auto source = m.source();
    const PreparedPoints points =
        prepare_points(source, recipe_of(request, 0), {}, true,
                       kBaselineKernels.prepare_row, 1);
    FilterScale bytes;
    bytes.form = &kByteSimilarity;
    bool found = false;
    for (const Kernels* kernels : available_kernels()) {
      const bool pays = bytes_pay(metric, rule, *kernels, points, nullptr, {k},
                                  bytes, kWholeSimilarity);
      if (kernels == &kBaselineKernels) found = pays;
      const FilterScale chosen =
          choose_scale(metric, rule, *kernels, points, nullptr, 1, {k, 0});
      CHECK((chosen.form == &kByteSimilarity) ==
            (pays && multiplies_bytes(*kernels)));
    }
    return found;
  };
  const Matrix wide = normal("wide", 3000, 400, 7);
  CHECK(pay(wide, 2));
  CHECK(!pay(wide, 0));
  CHECK(!pay(wide, 1500));
  CHECK(!pay(normal("narrow", 3000, 8, 7), 2));
  // All neighbours are within the bound.
  CHECK(!pay(near_ties(3000, 400, 1e-3, 8), 2));
}

TEST_CASE("differences of bytes are those of whole numbers") {
  std::mt19937 random(4);
  for (const std::int64_t steps : {2, 4, 74, 20000}) {
    const auto size = [&](int panels) {
      return static_cast<std::size_t>(Tile::panel * panels * steps);
    };
    std::vector<std::int32_t> a(size(1)), b(size(Tile::panels));
    for (std::int32_t& x : a) x = static_cast<std::int32_t>(random());
    for (std::int32_t& x : b) x = static_cast<std::int32_t>(random());
    // Some points of both sides are 0 or 255.
    for (std::int64_t f = 0; f < steps; ++f) {
      a[static_cast<std::size_t>(step_at(Product::byte_difference, f, 9))] = 0;
      b[static_cast<std::size_t>(step_at(Product::byte_difference, f, 6))] = -1;
    }
    const auto sum_of = [&](int r, int c) {
      std::int64_t sum = 0;
      for (std::int64_t f = 0; f < steps; ++f) {
        const std::int32_t x = a[static_cast<std::size_t>(
            step_at(Product::byte_difference, f, r))];
        const std::int32_t y =
            b[size(c / Tile::panel) +
              static_cast<std::size_t>(
                  step_at(Product::byte_difference, f, c % Tile::panel))];
        for (int shift = 0; shift < 32; shift += 8)
          sum += std::abs((x >> shift & 255) - (y >> shift & 255));
      }
      return sum;
    };
    for (int half = 0; half < Tile::panel; half += Tile::rows)
      for (int panels = 1; panels <= Tile::panels; ++panels)
        for (const Kernels* kernels : available_kernels()) {
          alignas(64) std::int32_t sums[Tile::rows * Tile::columns] = {};
          kernels->accumulate(Product::byte_difference, a.data() + half,
                              b.data(), panels, steps, sums);
          std::int64_t wrong = 0;
          for (int r = 0; r<Tile::rows; r += steps> 1000 ? 3 : 1)
            for (int c = 0; c<panels * Tile::panel; c += steps> 1000 ? 5 : 1)
              wrong += sums[r * Tile::columns + c] != sum_of(half + r, c);
          CAPTURE(kernels->name);
          CAPTURE(steps);
          CHECK(wrong == 0);
        }
  }
}

namespace {

Prepared in_bytes(const char* metric, const Matrix& m) {
  Prepared p;
  prepare(find_metric(metric, "signed"), m, 8, p);
  REQUIRE(p.scale.form->product == Product::byte_difference);
  return p;
}

/// The bound on a row's rounding in units, without the constant part.
double off(const Prepared& p, std::int64_t place) {
  float g;
  std::memcpy(&g, p.rows.second.data() + place, sizeof g);
  return static_cast<double>(g) - 1e-3;
}

}  // namespace

TEST_CASE("bytes take whole numbers as they are, and no heed of one entry") {
  for (const char* metric : {"manhattan", "proportional"}) {
    CAPTURE(metric);
    Matrix m = ties(300, 40, 200, 9);
    m.at(5, 3) = 201.0;
    const Prepared whole = in_bytes(metric, m);
    for (std::int64_t p = 0; p < whole.points.size(); ++p) {
      CHECK(std::fabs(off(whole, p)) < 1e-6);
      // Without rounding a likely limit is as tight as a certain one.
      CHECK(whole.rows.second_likely[p] == whole.rows.second_upper[p]);
    }
    // Only the clipped row is far from its bytes.
    for (const double entry : {1e6, 1e30}) {
      m = ties(300, 40, 100, 9);
      m.at(5, 3) = entry;
      const Prepared one = in_bytes(metric, m);
      std::int64_t cut = 0;
      for (std::int64_t p = 0; p < one.points.size(); ++p) {
        if (one.points.order.id_at(Place{p}).value == 5)
          CHECK(off(one, p) > 1e4);
        else
          cut += std::fabs(off(one, p)) > 1e-6;
      }
      CHECK(cut == 0);
    }
  }
}

TEST_CASE("no unit for rows of bytes that are all the same") {
  Matrix m = make("the same", 50, 7);
  for (double& x : m.values) x = 3.0;
  const Prepared p = in_bytes("manhattan", m);
  CHECK(p.scale.unit == 0.0);
  CHECK(!p.scale.form->usable(p.scale));
}

TEST_CASE("rows of more features than bytes can be summed have smaller ones") {
  const std::int64_t d = (1 << 28) / 100;
  const Matrix m = normal("very long", 3, d, 10);
  const Prepared p = in_bytes("manhattan", m);
  CHECK(p.scale.largest == 99);
  alignas(64) std::int32_t sums[Tile::rows * Tile::columns] = {};
  kBaselineKernels.accumulate(Product::byte_difference, p.rows.row(0),
                              p.rows.panel(0), 1, p.rows.steps, sums);
  for (const Pair pair : {Pair{0, 1}, Pair{0, 2}, Pair{1, 2}}) {
    double sum;
    kBaselineKernels.exact(Accumulation::absolute_difference,
                           p.points.rows.data(), p.points.rows.data(),
                           p.points.padded, &pair, 1, &sum);
    const double bytes =
        p.scale.unit *
        static_cast<double>(sums[pair.row * Tile::columns + pair.column]);
    const double both = p.scale.unit * (off(p, pair.row) + off(p, pair.column));
    CHECK(std::fabs(bytes - sum) <= both);
    CHECK(both < sum);
    std::int32_t parts;
    kBaselineKernels.differences(p.rows.words.data(), p.rows.words.data(),
                                 p.rows.words_wide, &pair, 1, &parts);
    const double words = p.scale.unit * parts / kPartsOfUnit;
    CHECK(std::fabs(words - sum) <=
          p.scale.unit * static_cast<double>(p.rows.words_error[pair.row] +
                                             p.rows.words_error[pair.column]));
  }
}

TEST_CASE("a second look drops most of what bytes are too coarse for") {
  for (const char* metric : {"manhattan", "proportional"}) {
    Matrix m = normal("normal", 48, 64, 13);
    for (double& x : m.values) x = std::fabs(x);
    Prepared p;
    prepare(find_metric(metric, "signed"), m, 8, p);
    const DistanceRule rule(find_metric(metric, "signed"), p.exponent);
    std::vector<double> distance;
    std::vector<Pair> all;
    for (std::int32_t i = 0; i < 48; ++i)
      for (std::int32_t j = 0; j < i; ++j) all.push_back({i, j});
    for (const Pair& pair : all) {
      double sum;
      kBaselineKernels.exact(find_metric(metric, "signed").accumulation,
                             p.points.rows.data(), p.points.rows.data(),
                             p.points.padded, &pair, 1, &sum);
      distance.push_back(
          rule(sum, p.points.sums[pair.row], p.points.sums[pair.column]));
    }
    std::vector<double> sorted = distance;
    std::sort(sorted.begin(), sorted.end());
    const Thresholds thresholds(p.scale, find_metric(metric, "signed"), rule);
    const std::vector<std::int32_t> held(48,
                                         thresholds.keep_up_to(sorted[500]));
    std::size_t passed = 0;
    for (std::int32_t r = 0; r < 48; r += Tile::rows) {
      alignas(64) std::int32_t sums[Tile::rows * Tile::columns];
      kBaselineKernels.accumulate(p.scale.form->product, p.rows.row(r),
                                  p.rows.panel(0), Tile::panels, p.rows.steps,
                                  sums);
      std::uint64_t keep[Tile::rows];
      kBaselineKernels.test(p.scale.form->test, sums, Tile::panels,
                            p.rows.side(held.data() + r, r),
                            p.rows.side(held.data(), 0), keep);
      for (std::int32_t q = 0; q < Tile::rows; ++q)
        for (std::int32_t c = 0; c < r + q; ++c) passed += keep[q] >> c & 1;
    }
    SecondTest again(kBaselineKernels, p.rows, p.rows);
    again.drop(0, 0, held.data(), held.data(), all);
    CAPTURE(metric);
    CAPTURE(passed);
    CHECK(all.size() > 500);
    CHECK((all.size() - 501) * 5 < passed - 501);
  }
}

TEST_CASE("differences of bytes are taken where a sample says that they pay") {
  const MetricEntry& metric = find_metric("manhattan", "signed");
  const DistanceRule rule(metric, 0);
  Request request;
  request.metric = &metric;
  const auto form_of = [&](const Matrix& m, std::int64_t k, int bits) {
    const auto source = m.source();
    const PreparedPoints points =
        prepare_points(source, recipe_of(request, 0), {}, true,
                       kBaselineKernels.prepare_row, 1);
    CHECK(
        choose_scale(metric, rule, kBaselineKernels, points, nullptr, 1, {k, 0})
            .form != &kByteDistance);
    return choose_scale(metric, rule, *available_kernels().back(), points,
                        nullptr, 1, {k, bits})
        .form;
  };
  const Matrix wide = normal("wide", 3000, 400, 7);
  if (available_kernels().size() > 1) {
    CHECK(form_of(wide, 2, 0) == &kByteDistance);
    // 16 bits are too coarse beside one huge entry.
    Matrix one = wide;
    one.at(7, 7) = 1e5;
    CHECK(form_of(one, 2, 0) == &kByteDistance);
    CHECK(form_of(one, 2, 16) == &kFloatSumDistance);
  }
  CHECK(form_of(wide, 2, 16) == &kWholeSumDistance);
  CHECK(form_of(wide, 0, 0) == &kWholeSumDistance);
  CHECK(form_of(wide, 1500, 0) == &kWholeSumDistance);
  // All neighbours are within the bound.
  CHECK(form_of(near_ties(3000, 400, 1e-3, 8), 2, 0) != &kByteDistance);
  CHECK(form_of(ties(3000, 400, 2, 8), 2, 8) == &kBitsDistance);
}

TEST_CASE("queries that bytes would cut off ask for another unit") {
  const Prepared p = in_bytes("manhattan", normal("points", 200, 30, 11));
  Request request;
  request.metric = &find_metric("manhattan", "signed");
  const auto reached = [&](double level, double size) {
    Matrix m = normal("queries", 90, 30, 12);
    for (double& x : m.values) x = level + size * x;
    const auto source = m.source();
    const PreparedPoints queries =
        prepare_points(source, recipe_of(request, p.exponent), {}, true,
                       kBaselineKernels.prepare_row, 1);
    return reaches(p.scale, queries, 1);
  };
  CHECK(reached(0.0, 1.0));
  CHECK(reached(0.0, 1e-3));
  CHECK(!reached(100.0, 1.0));
  CHECK(!reached(0.0, 100.0));
}
