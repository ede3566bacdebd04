// Studentized statistics of permuted outcomes, against their definitions.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/search/permuted_statistics.hpp"

using namespace fsknn;

namespace {

using Values = std::vector<double>;

std::size_t size_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a * b);
}

Values draw(std::int64_t count, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<double> normal;
  Values out(static_cast<std::size_t>(count));
  for (double& one : out) one = normal(random);
  return out;
}

/// Points, outcomes and places of some shape. Rows are centred and have length
/// 1.
struct Case {
  std::int64_t rows, samples, outcomes;
  Values x, y;
  std::vector<int> place;
  std::int64_t num_kept = 0;

  Case(std::int64_t r, std::int64_t s, std::int64_t o, int seed)
      : rows(r),
        samples(s),
        outcomes(o),
        x(draw(r * s, seed)),
        y(draw(s * o, seed + 1)) {
    for (std::int64_t row = 0; row < rows; ++row) {
      double mean = 0.0, square = 0.0;
      for (std::int64_t f = 0; f < s; ++f) mean += x[at(row, f)];
      mean /= static_cast<double>(s);
      for (std::int64_t f = 0; f < s; ++f) {
        x[at(row, f)] -= mean;
        square += x[at(row, f)] * x[at(row, f)];
      }
      for (std::int64_t f = 0; f < s; ++f) x[at(row, f)] /= std::sqrt(square);
      // Every seventh is kept, and every eleventh does not count.
      place.push_back(row % 7 == 3    ? static_cast<int>(num_kept++)
                      : row % 11 == 5 ? -2
                                      : -1);
    }
  }
  std::size_t at(std::int64_t row, std::int64_t f) const {
    return static_cast<std::size_t>(f * rows + row);
  }
  double value(std::int64_t row, std::int64_t f) const { return x[at(row, f)]; }
  PointRows points() const { return {x.data(), rows, samples}; }

  /// Compares with statistic(row, outcome).
  template <class Outcomes, class Statistic>
  void check(const Outcomes& asked, Statistic statistic) const {
    for (const int threads : {1, 3}) {
      Values kept(size_of(num_kept, outcomes), 0.0);
      Values largest(static_cast<std::size_t>(outcomes),
                     -std::numeric_limits<double>::infinity());
      LargestStatistics out;
      out.num_outcomes = outcomes;
      out.place = place.data();
      out.kept = kept.data();
      out.num_kept = num_kept;
      out.largest = largest.data();
      permuted_statistics(points(), asked, threads, nullptr, out);
      for (std::int64_t one = 0; one < outcomes; ++one) {
        double most = -std::numeric_limits<double>::infinity();
        for (std::int64_t row = 0; row < rows; ++row) {
          const int to = place[static_cast<std::size_t>(row)];
          if (to == -2) continue;
          const double expected = statistic(row, one);
          if (to == -1)
            most = std::max(most, expected);
          else
            CHECK(kept[static_cast<std::size_t>(one * num_kept + to)] ==
                  doctest::Approx(expected).epsilon(1e-9));
        }
        const double found = largest[static_cast<std::size_t>(one)];
        if (std::isinf(most))
          CHECK(found == most);
        else
          CHECK(found == doctest::Approx(most).epsilon(1e-9));
      }
    }
  }
};

}  // namespace

TEST_CASE("robust statistics of slopes are those of their definition") {
  for (const auto& shape : {std::array<std::int64_t, 3>{1, 3, 1},
                            {9, 5, 3},
                            {130, 17, 70},
                            {700, 40, 65}}) {
    const Case one(shape[0], shape[1], shape[2], 5);
    // Weights differ, or all are equal.
    for (const bool equal : {false, true}) {
      Values y = one.y, weight(y.size()), weighted(y.size()),
             last(static_cast<std::size_t>(one.outcomes), 0.0);
      for (std::int64_t p = 0; p < one.outcomes; ++p) {
        double square = 0.0;
        for (std::int64_t f = 0; f < one.samples; ++f) {
          double& value = y[static_cast<std::size_t>(p * one.samples + f)];
          if (equal) value = value > 0 ? 1.0 : -1.0;
          square += value * value;
        }
        for (std::int64_t f = 0; f < one.samples; ++f) {
          const auto at = static_cast<std::size_t>(p * one.samples + f);
          y[at] /= std::sqrt(square);
          weight[at] = equal ? 0.25 : static_cast<double>(f % 3 + 1) / 4.0;
          weighted[at] = weight[at] * y[at];
          last[static_cast<std::size_t>(p)] += weighted[at] * y[at];
        }
      }
      RobustOutcomes asked;
      asked.columns = y.data();
      asked.weight = weight.data();
      asked.weighted = weighted.data();
      asked.last = last.data();
      for (const StatisticSide side :
           {StatisticSide::signed_t, StatisticSide::absolute,
            StatisticSide::negative}) {
        asked.side = side;
        one.check(asked, [&](std::int64_t row, std::int64_t p) {
          double slope = 0.0, variance = 0.0;
          for (std::int64_t f = 0; f < one.samples; ++f)
            slope += one.value(row, f) *
                     y[static_cast<std::size_t>(p * one.samples + f)];
          for (std::int64_t f = 0; f < one.samples; ++f) {
            const auto at = static_cast<std::size_t>(p * one.samples + f);
            const double left = one.value(row, f) - slope * y[at];
            variance += weight[at] * left * left;
          }
          const double t =
              slope * std::fabs(slope) / std::max(variance, kLeastVariance);
          return side == StatisticSide::absolute   ? std::fabs(t)
                 : side == StatisticSide::negative ? -t
                                                   : t;
        });
      }
    }
  }
}

TEST_CASE("groups have the normal score of Welch's t") {
  const Case one(300, 23, 67, 11);
  Values y(one.y.size()), weight(y.size()), inside(y.size(), 0.0),
      num_inside(static_cast<std::size_t>(one.outcomes)), unused(y.size(), 0.0);
  std::mt19937 random(4);
  const auto n = static_cast<double>(one.samples);
  for (std::int64_t p = 0; p < one.outcomes; ++p) {
    const std::int64_t count = 2 + p % 20;
    const auto n_2 = static_cast<double>(count), n_1 = n - n_2;
    num_inside[static_cast<std::size_t>(p)] = n_2;
    const auto from = inside.begin() + p * one.samples;
    std::fill(from, from + count, 1.0);
    std::shuffle(from, from + one.samples, random);
    for (std::int64_t f = 0; f < one.samples; ++f) {
      const auto at = static_cast<std::size_t>(p * one.samples + f);
      const bool is_in = inside[at] > 0.0;
      y[at] = (inside[at] - n_2 / n) / std::sqrt(n_1 * n_2 / n);
      weight[at] = y[at] * y[at] / (1.0 - 1.0 / (is_in ? n_2 : n_1));
    }
  }
  RobustOutcomes asked;
  asked.columns = y.data();
  asked.weight = weight.data();
  asked.weighted = unused.data();
  asked.last = unused.data();
  asked.inside = inside.data();
  asked.num_inside = num_inside.data();
  one.check(asked, [&](std::int64_t row, std::int64_t p) {
    double count[2] = {0, 0}, mean[2] = {0, 0}, part[2] = {0, 0};
    const auto group = [&](std::int64_t f) {
      return inside[static_cast<std::size_t>(p * one.samples + f)] > 0 ? 1 : 0;
    };
    for (std::int64_t f = 0; f < one.samples; ++f) {
      count[group(f)] += 1.0;
      mean[group(f)] += one.value(row, f);
    }
    for (int at = 0; at < 2; ++at) mean[at] /= count[at];
    for (std::int64_t f = 0; f < one.samples; ++f) {
      const double left = one.value(row, f) - mean[group(f)];
      part[group(f)] += left * left;
    }
    double freedom = 0.0;
    for (int at = 0; at < 2; ++at) {
      part[at] /= count[at] * (count[at] - 1.0);
      freedom += part[at] * part[at] / (count[at] - 1.0);
    }
    const double variance = part[0] + part[1], gap = mean[1] - mean[0];
    freedom = variance * variance / freedom;
    return std::copysign(normal_score(gap * gap / variance, freedom), gap);
  });
}

TEST_CASE("Welch's F is that of its definition") {
  for (const int num : {2, 3, 5}) {
    const Case one(140, 23, 67, 9);
    std::vector<int> levels(size_of(one.samples, one.outcomes));
    std::mt19937 random(3);
    for (std::int64_t p = 0; p < one.outcomes; ++p) {
      const auto from = levels.begin() + p * one.samples;
      for (std::int64_t f = 0; f < one.samples; ++f)
        from[f] = static_cast<int>(f % num) + 1;
      std::shuffle(from, from + one.samples, random);
    }
    LevelOutcomes asked;
    asked.levels = levels.data();
    one.check(asked, [&](std::int64_t row, std::int64_t p) {
      Values count(static_cast<std::size_t>(num), 0.0), mean = count,
                                                        variance = count;
      const auto level = [&](std::int64_t f) {
        return static_cast<std::size_t>(
            levels[static_cast<std::size_t>(p * one.samples + f)] - 1);
      };
      for (std::int64_t f = 0; f < one.samples; ++f) {
        count[level(f)] += 1.0;
        mean[level(f)] += one.value(row, f);
      }
      for (std::size_t at = 0; at < mean.size(); ++at) mean[at] /= count[at];
      for (std::int64_t f = 0; f < one.samples; ++f) {
        const double left = one.value(row, f) - mean[level(f)];
        variance[level(f)] += left * left / (count[level(f)] - 1.0);
      }
      double all = 0.0, centre = 0.0, between = 0.0, apart = 0.0;
      for (std::size_t at = 0; at < mean.size(); ++at)
        all += count[at] / variance[at];
      for (std::size_t at = 0; at < mean.size(); ++at)
        centre += count[at] / variance[at] / all * mean[at];
      for (std::size_t at = 0; at < mean.size(); ++at) {
        const double weight = count[at] / variance[at];
        between += weight * (mean[at] - centre) * (mean[at] - centre);
        apart +=
            (1.0 - weight / all) * (1.0 - weight / all) / (count[at] - 1.0);
      }
      return between / (num - 1.0) /
             (1.0 + 2.0 * (num - 2.0) / (num * num - 1.0) * apart);
    });
  }
}
