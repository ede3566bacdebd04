// Differences of bytes, and the second test in 16 bits, with a unit and a
// centre that were not chosen for the rows: the bound holds for any. No pair is
// dropped at its own distance, and some nearly are.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cases.hpp"
#include "core/base/errors.hpp"
#include "core/rows/scan.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/pack.hpp"
#include "cpu/filter/second_test.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/kernels/kernels.hpp"

using namespace fsknn;
using namespace fsknn::cpu;

namespace {

constexpr std::int64_t kRows = 16;

/// The entry of a row and a feature, relative to the centre, in 16ths of the
/// unit.
struct Entries {
  const char* name;
  double (*at)(std::int64_t i, std::int64_t f);
};

double side(std::int64_t i) { return i % 2 == 0 ? 1.0 : -1.0; }

const Entries kEntries[] = {
    {"rounded away from each other",
     [](std::int64_t i, std::int64_t) { return side(i) * (0.5 + 1e-6); }},
    {"rounded towards each other",
     [](std::int64_t i, std::int64_t) { return side(i) * (0.5 - 1e-6); }},
    {"halves of bytes",
     [](std::int64_t i, std::int64_t f) {
       return side(i) * (8.0 + (i % 4 < 2 ? 1e-6 : -1e-6)) +
              16.0 * static_cast<double>(f % 3);
     }},
    {"as far as words are",
     [](std::int64_t i, std::int64_t f) {
       return side(i) * (i % 4 < 2 ? 16383.0 : 16382.5 + 1e-6 * side(f));
     }},
    {"a little beyond",
     [](std::int64_t i, std::int64_t f) {
       return side(i) * (16383.0 + 0.1 * static_cast<double>(f % 9));
     }},
    {"of all sizes",
     [](std::int64_t i, std::int64_t f) {
       return side(i) * std::pow(10.0, static_cast<double>((f + i) % 41 - 20));
     }},
    {"some of no bound",
     [](std::int64_t i, std::int64_t f) {
       return i % 3 == 0 ? side(f) * 1e33 : static_cast<double>(f % 5 + i);
     }},
    {"all alike", [](std::int64_t, std::int64_t f) {
       return 0.3 * static_cast<double>(f);
     }}};

struct Packed {
  PreparedPoints points;
  FilterScale scale;
  FilterRows rows;
  int exponent;
};

/// centre: in units.
void pack_rows(const MetricEntry& metric, const Matrix& m, double unit,
               double centre, Packed& p) {
  const auto source = m.source();
  const MatrixFacts facts = scan(source, 1);
  p.exponent = matrix_exponent(metric, facts.largest);
  Request request;
  request.metric = &metric;
  const bool overlap = metric.least_overlap != nullptr;
  p.points = prepare_points(source, recipe_of(request, p.exponent),
                            overlap ? facts.zero : std::vector<std::int64_t>(),
                            false, kBaselineKernels.prepare_row, 1);
  p.scale.form = overlap ? &kByteProportion : &kByteDistance;
  p.scale.unit = unit;
  p.scale.largest = 127;
  p.scale.centre = Buffer<double>(p.points.padded);
  for (std::int64_t f = 0; f < p.points.padded; ++f)
    p.scale.centre[f] = f < m.d ? centre * unit : 0.0;
  p.rows = pack(p.scale, p.points, 1);
  set_slack(p.scale, p.rows.error, p.points.padded);
  complete(p.scale, p.rows);
}

/// The results for all pairs, each at its own distance, with one instruction
/// set.
struct Found {
  std::int64_t missed = 0;   ///< dropped by the second test
  std::int64_t dropped = 0;  ///< dropped by bytes
  std::int64_t below = 0;    ///< upper bounds that do not hold
  double least = HUGE_VAL;   ///< least margin of the words' bound, in units
};

Found look_at_pairs(const MetricEntry& metric, const Packed& p,
                    const Kernels& kernels) {
  const DistanceRule rule(metric, p.exponent);
  const Thresholds thresholds(p.scale, metric, rule);
  const std::vector<std::int32_t> none(
      static_cast<std::size_t>(p.rows.num_places), thresholds.keep_none());
  SecondTest again(kernels, p.rows, p.rows);
  const auto stays = [&](const Pair& pair,
                         const std::vector<std::int32_t>& of_row,
                         const std::vector<std::int32_t>& of_column) {
    std::vector<Pair> hits = {pair};
    again.drop(0, 0, of_row.data(), of_column.data(), hits);
    return hits.size() == 1;
  };
  Found found;
  const std::int32_t n = static_cast<std::int32_t>(p.points.size());
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t i0 = i / Tile::rows * Tile::rows;
    alignas(64) std::int32_t sums[Tile::rows * Tile::columns];
    kernels.accumulate(p.scale.form->product, p.rows.row(i0), p.rows.panel(0),
                       1, p.rows.steps, sums);
    float keys[Tile::panel];
    std::fill_n(keys, Tile::panel, HUGE_VALF);
    kernels.lower_best(p.scale.form->test, sums + (i - i0) * Tile::columns, 1,
                       p.rows.upper_side(i), p.rows.upper_side(0), 0, 1, keys);
    for (std::int32_t j = 0; j < n; ++j) {
      if (i == j) continue;
      const Pair pair = {i, j};
      double sum;
      kernels.exact(metric.accumulation, p.points.rows.data(),
                    p.points.rows.data(), p.points.padded, &pair, 1, &sum);
      const double distance = rule(sum, p.points.sums[i], p.points.sums[j]);
      if (!(distance < HUGE_VAL)) continue;
      const std::int32_t t = thresholds.keep_up_to(distance);
      std::vector<std::int32_t> of_row = none, of_column = none;
      of_row[static_cast<std::size_t>(i)] = t;
      of_column[static_cast<std::size_t>(j)] = t;
      found.missed += !stays(pair, of_row, none);
      found.missed += !stays(pair, none, of_column);
      found.below +=
          thresholds.upper_distance(keys[j], p.rows.upper_side(i)) < distance;
      std::uint64_t keep[Tile::rows];
      kernels.test(p.scale.form->test, sums, 1,
                   p.rows.side(of_row.data() + i0, i0),
                   p.rows.side(none.data(), 0), keep);
      found.dropped += !(keep[i - i0] >> j & 1);
      std::int32_t parts;
      kernels.differences(p.rows.words.data(), p.rows.words.data(),
                          p.rows.words_wide, &pair, 1, &parts);
      if (t == thresholds.keep_all()) continue;
      const double w = static_cast<double>(as_float(p.rows.first[i])) +
                       static_cast<double>(as_float(p.rows.first[j]));
      found.least =
          std::min(found.least, w * static_cast<double>(as_float(t)) -
                                    parts / kPartsOfUnit +
                                    static_cast<double>(p.rows.words_error[i]) +
                                    static_cast<double>(p.rows.words_error[j]));
    }
  }
  return found;
}

void check_pairs(const MetricEntry& metric, const Matrix& m, double unit,
                 double centre, double* least) {
  Packed p;
  pack_rows(metric, m, unit, centre, p);
  for (const Kernels* kernels : available_kernels()) {
    const Found found = look_at_pairs(metric, p, *kernels);
    CAPTURE(metric.name);
    CAPTURE(m.name);
    CAPTURE(m.d);
    CAPTURE(unit);
    CAPTURE(centre);
    CAPTURE(kernels->name);
    CHECK(found.missed == 0);
    CHECK(found.dropped == 0);
    CHECK(found.below == 0);
    if (least != nullptr) *least = std::min(*least, found.least);
  }
}

std::vector<const MetricEntry*> subtracted() {
  return {&find_metric("manhattan", "signed"),
          &find_metric("proportional", "signed")};
}

}  // namespace

TEST_CASE("bytes and words keep rows that their unit was not made for") {
  for (const MetricEntry* metric : subtracted())
    for (const double unit : {1.0, 0.37, 0x1p-962, 0x1p961})
      for (const double centre : {0.0, 2048.0, 1e12})
        for (const std::int64_t d : {1, 13, 64})
          for (const Entries& entries : kEntries) {
            Matrix m = make(entries.name, kRows, d);
            for (std::int64_t i = 0; i < kRows; ++i)
              for (std::int64_t f = 0; f < d; ++f) {
                const double x =
                    unit * (centre + entries.at(i, f) / kPartsOfUnit);
                m.at(i, f) =
                    metric->least_overlap != nullptr ? std::fabs(x) : x;
              }
            check_pairs(*metric, m, unit, centre, nullptr);
          }
}

TEST_CASE("nothing but what was added for rounding is left of words' bound") {
  for (const MetricEntry* metric : subtracted()) {
    // Proportions of rows far from 0 have their own slack.
    const double centre = metric->least_overlap != nullptr ? 1.0 : 0.0;
    Matrix m = make("rounded away", kRows, 16);
    for (std::int64_t i = 0; i < kRows; ++i)
      for (std::int64_t f = 0; f < m.d; ++f)
        m.at(i, f) = centre + side(i) * (0.5 + 1e-6) / kPartsOfUnit;
    double least = HUGE_VAL;
    check_pairs(*metric, m, 1.0, centre, &least);
    CAPTURE(metric->name);
    CHECK(least > 0.002);
    CHECK(least < 0.0022);
  }
}

TEST_CASE("subnormal rows keep their pairs beside others, and scaled down") {
  for (const MetricEntry* metric : subtracted())
    for (const double largest : {1.0, 1e290, 1e308})
      for (const double unit : {1.01e-290, 1.0, 0.99e290}) {
        Matrix m =
            make("subnormal beside " + std::to_string(largest), kRows, 9);
        for (std::int64_t i = 0; i < kRows; ++i)
          for (std::int64_t f = 0; f < m.d; ++f) {
            const double x = 5e-324 * static_cast<double>((3 * i + f) % 7 + 1);
            // Scaling by the matrix's power of two rounds these values.
            m.at(i, f) =
                i % 4 == 3
                    ? largest * (0.5 + 0.01 * static_cast<double>((i + f) % 5))
                    : std::ldexp(x, static_cast<int>(43 * (i % 2)));
          }
        try {
          check_pairs(*metric, m, unit, 0.0, nullptr);
        } catch (const RangeFailure&) {
          // Rows that become 0 by scaling have no proportion.
          CHECK(std::string(metric->name) == "proportional");
          CHECK(largest == 1e308);
        }
      }
}
