// Tests the filters of rows of 0 and 1 pair by pair, with counts up to the most
// features that they take. No pair is dropped at its own distance, and only the
// slack of floats lets others pass.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/rows/prepared.hpp"
#include "cpu/filter/form_parts.hpp"
#include "cpu/filter/thresholds.hpp"
#include "cpu/kernels/kernels.hpp"

using namespace fsknn;
using namespace fsknn::cpu;

namespace {

/// Rows of one side of a tile: their numbers of bits, and the filter's numbers
/// as pack_row() computes them.
struct Rows {
  Rows(bool are_sums, std::vector<std::int32_t> counts)
      : count(std::move(counts)), threshold(count.size()) {
    for (const std::int32_t n : count) {
      const std::int32_t as_float_bits = as_bits(static_cast<float>(n));
      first.push_back(are_sums ? as_float_bits : n);
      upper.push_back(as_float_bits);
      second.push_back(are_sums ? as_bits(0x1p-100f) : 0);
    }
  }
  Side side() const { return {threshold.data(), first.data(), second.data()}; }
  Side upper_side() const { return {nullptr, upper.data(), second.data()}; }

  std::vector<std::int32_t> count, first, upper, second, threshold;
};

struct Tiles {
  const MetricEntry& metric;
  const Kernels& kernels;
  const DistanceRule rule;
  const bool are_sums = metric.least_overlap != nullptr;
  FilterScale scale;
  std::mt19937_64 random{1};
  int dropped = 0, needless = 0, wrong = 0, below = 0;

  Tiles(const MetricEntry& of, const Kernels& by, int exponent)
      : metric(of), kernels(by), rule(of, exponent) {
    scale.form = are_sums ? &kBitsOverlap : &kBitsDistance;
  }

  std::int32_t up_to(std::int32_t most) {
    return static_cast<std::int32_t>(random() %
                                     (static_cast<std::uint64_t>(most) + 1));
  }
  std::vector<std::int32_t> counts(int size, std::int32_t d) {
    std::vector<std::int32_t> some;
    for (int i = 0; i < size; ++i) {
      const std::int32_t kinds[] = {1, d, std::max(1, d - up_to(2)),
                                    1 + up_to(d - 1)};
      some.push_back(kinds[random() % 4]);
    }
    return some;
  }

  void try_features(std::int32_t d) {
    const Thresholds thresholds(scale, metric, rule);
    Rows rows(are_sums, counts(Tile::rows, d));
    Rows columns(are_sums, counts(Tile::columns, d));
    alignas(64) std::int32_t sums[Tile::rows * Tile::columns];
    std::vector<double> distance(Tile::rows * Tile::columns);
    for (std::size_t r = 0; r < Tile::rows; ++r)
      for (std::size_t c = 0; c < Tile::columns; ++c) {
        const std::int32_t p = rows.count[r], q = columns.count[c];
        const std::int32_t least = std::max(0, p + q - d),
                           most = std::min(p, q);
        const std::int32_t kinds[] = {least, most, least + up_to(most - least)};
        const std::size_t at = r * Tile::columns + c;
        sums[at] = kinds[random() % 3];
        const double m = sums[at];
        distance[at] = rule(are_sums ? m : p + q - 2.0 * m, p, q);
        const double told = scale.form->exact_sum(
            sums[at], rows.side().at(static_cast<std::int64_t>(r)),
            columns.side().at(static_cast<std::int64_t>(c)));
        wrong += rule(told, p, q) != distance[at];
      }
    const std::size_t r = random() % Tile::rows, c = random() % Tile::columns;
    const double limit = distance[r * Tile::columns + c];
    for (const bool by_row : {true, false}) {
      std::fill(rows.threshold.begin(), rows.threshold.end(),
                thresholds.keep_none());
      columns.threshold.assign(Tile::columns, thresholds.keep_none());
      (by_row ? rows.threshold[r] : columns.threshold[c]) =
          thresholds.keep_up_to(limit);
      std::uint64_t keep[Tile::rows];
      kernels.test(scale.form->test, sums, Tile::panels, rows.side(),
                   columns.side(), keep);
      for (std::size_t i = 0; i < Tile::rows; ++i)
        for (std::size_t j = 0; j < Tile::columns; ++j) {
          const bool kept = keep[i] >> j & 1;
          const double at = distance[i * Tile::columns + j];
          const bool sought = by_row ? i == r : j == c;
          dropped += sought && at <= limit && !kept;
          needless += kept && (!sought || at > limit + (are_sums ? 1e-5 : 0.0));
        }
    }
    std::vector<float> best(Tile::columns, HUGE_VALF);
    kernels.lower_best(scale.form->test, sums + r * Tile::columns, Tile::panels,
                       rows.upper_side().at(static_cast<std::int64_t>(r)),
                       columns.upper_side(), 0, Tile::panels, best.data());
    for (std::size_t j = 0; j < Tile::columns; ++j)
      below +=
          !(thresholds.upper_distance(
                best[j], rows.upper_side().at(static_cast<std::int64_t>(r))) >=
            distance[r * Tile::columns + j]);
  }
};

}  // namespace

TEST_CASE("counts of bits decide up to the most features") {
  for (const char* name : {"jaccard", "sorensen", "proportional", "manhattan"})
    for (const int exponent : {0, 20})
      for (const Kernels* kernels : available_kernels()) {
        Tiles tiles(find_metric(name, "signed"), *kernels, exponent);
        for (int round = 0; round < 200; ++round)
          for (const std::int32_t d : {1, 64, 1000, 65537, kMostBits - 1})
            tiles.try_features(d);
        CAPTURE(name);
        CAPTURE(kernels->name);
        CHECK(tiles.wrong == 0);
        CHECK(tiles.dropped == 0);
        CHECK(tiles.below == 0);
        CHECK(tiles.needless == 0);
      }
}

TEST_CASE("limits that no distance has keep all pairs of bits, or none") {
  for (const char* name : {"jaccard", "manhattan"})
    for (const Kernels* kernels : available_kernels()) {
      const MetricEntry& metric = find_metric(name, "signed");
      const DistanceRule rule(metric, 0);
      const bool are_sums = metric.least_overlap != nullptr;
      FilterScale scale;
      scale.form = are_sums ? &kBitsOverlap : &kBitsDistance;
      const Thresholds thresholds(scale, metric, rule);
      // The columns are like padding: no bits, and no neighbours wanted.
      Rows rows(are_sums, std::vector<std::int32_t>(Tile::rows, kMostBits - 1));
      Rows columns(are_sums, std::vector<std::int32_t>(Tile::columns, 0));
      std::fill(columns.second.begin(), columns.second.end(), 0);
      columns.threshold.assign(Tile::columns, thresholds.keep_none());
      const std::vector<std::int32_t> sums(Tile::rows * Tile::columns, 0);
      const auto kept = [&](std::int32_t threshold) {
        rows.threshold.assign(Tile::rows, threshold);
        std::uint64_t keep[Tile::rows];
        kernels->test(scale.form->test, sums.data(), Tile::panels, rows.side(),
                      columns.side(), keep);
        int count = 0;
        for (const std::uint64_t mask : keep)
          count += __builtin_popcountll(mask);
        return count;
      };
      CAPTURE(name);
      CAPTURE(kernels->name);
      const int all = Tile::rows * Tile::columns;
      CHECK(kept(thresholds.keep_none()) == 0);
      CHECK(kept(thresholds.keep_all()) == all);
      CHECK(kept(thresholds.keep_up_to(HUGE_VAL)) == all);
      CHECK(kept(thresholds.keep_up_to(std::nan(""))) == all);
      CHECK(kept(thresholds.keep_up_to(-1.0)) == 0);
      CHECK(kept(thresholds.keep_up_to(-HUGE_VAL)) == 0);
    }
}
