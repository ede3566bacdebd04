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
      // Some are kept, so that other tiles have none. Every eleventh does not
      // count.
      place.push_back(row % 7 == 3 && row < 50 ? static_cast<int>(num_kept++)
                      : row % 11 == 5          ? -2
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
  void check(const Outcomes& asked, const VarianceParts& parts,
             StatisticForm form, Statistic statistic) const {
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
      out.form = form;
      permuted_statistics(points(), asked, parts, threads, nullptr, out);
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

  /// Compares moments with those of sums(row, outcome), a sum for each part.
  template <class Outcomes, class PartSums>
  void check_moments(const Outcomes& asked, const VarianceParts& parts,
                     PartSums sums) const {
    const auto num = static_cast<std::size_t>(parts.num_parts);
    Values moments(4 * num * static_cast<std::size_t>(outcomes), 0.0);
    Values largest(static_cast<std::size_t>(outcomes), 0.0);
    LargestStatistics out;
    out.num_outcomes = outcomes;
    out.place = place.data();
    out.largest = largest.data();
    out.moments = moments.data();
    permuted_statistics(points(), asked, parts, 3, nullptr, out);
    for (std::int64_t one = 0; one < outcomes; ++one)
      for (std::size_t part = 0; part < num; ++part) {
        const std::size_t at = static_cast<std::size_t>(one) * num + part;
        double expected[4] = {0, 0, 0, 0};
        for (std::int64_t row = 0; row < rows; ++row) {
          if (place[static_cast<std::size_t>(row)] == -2) continue;
          const Values of = sums(row, one);
          const double ratio =
              of[part] / of[num] * parts.freedom / parts.expected[at];
          const double log = std::log(std::max(ratio, kLeastRatio));
          expected[0] += 1.0;
          expected[1] += ratio;
          expected[2] += log;
          expected[3] += log * log;
        }
        for (std::size_t m = 0; m < 4; ++m)
          CHECK(moments[4 * at + m] ==
                doctest::Approx(expected[m]).epsilon(1e-8));
      }
  }
};

/// Parts with a prior, all of it in every third outcome.
struct Prior {
  Values expected, of_prior, of_sum, of_freedom;
  VarianceParts parts;
  Prior(int num_parts, std::int64_t outcomes, double freedom)
      : expected(size_of(num_parts, outcomes)),
        of_prior(expected.size()),
        of_sum(expected.size()),
        of_freedom(expected.size()) {
    for (std::size_t at = 0; at < expected.size(); ++at) {
      const bool all = at / static_cast<std::size_t>(num_parts) % 3 == 0;
      expected[at] = 1.0 + static_cast<double>(at % 7);
      of_prior[at] = 0.01 * (1.0 + static_cast<double>(at % 5));
      of_sum[at] = all ? 0.0 : 0.02 * static_cast<double>(at % 4);
      of_freedom[at] = all ? HUGE_VAL : 4.0 + static_cast<double>(at % 6);
    }
    parts.num_parts = num_parts;
    parts.freedom = freedom;
    parts.expected = expected.data();
    parts.of_prior = of_prior.data();
    parts.of_sum = of_sum.data();
    parts.of_freedom = of_freedom.data();
  }
  double variance(std::size_t at, double sum, double all) const {
    return of_prior[at] * all + of_sum[at] * sum;
  }
};

}  // namespace

TEST_CASE("studentized slopes have moderated variances") {
  for (const auto& shape : {std::array<std::int64_t, 3>{1, 3, 1},
                            {9, 5, 3},
                            {130, 17, 70},
                            {700, 40, 65}}) {
    const Case one(shape[0], shape[1], shape[2], 5);
    Values y = one.y, weight(y.size()), weighted(y.size()),
           last(static_cast<std::size_t>(one.outcomes), 0.0);
    for (std::int64_t p = 0; p < one.outcomes; ++p) {
      double square = 0.0;
      for (std::int64_t f = 0; f < one.samples; ++f) {
        const double value = y[static_cast<std::size_t>(p * one.samples + f)];
        square += value * value;
      }
      for (std::int64_t f = 0; f < one.samples; ++f) {
        const auto at = static_cast<std::size_t>(p * one.samples + f);
        y[at] /= std::sqrt(square);
        weight[at] = f % 2 == 0 ? 1.0 : 0.0;
        weighted[at] = weight[at] * y[at];
        last[static_cast<std::size_t>(p)] += weighted[at] * y[at];
      }
    }
    SlopeOutcomes asked;
    asked.columns = y.data();
    asked.weight = weight.data();
    asked.weighted = weighted.data();
    asked.last = last.data();
    const auto slope_of = [&](std::int64_t row, std::int64_t p) {
      double slope = 0.0;
      for (std::int64_t f = 0; f < one.samples; ++f)
        slope += one.value(row, f) *
                 y[static_cast<std::size_t>(p * one.samples + f)];
      return slope;
    };
    // Sums of both parts, and of all.
    const auto sums_of = [&](std::int64_t row, std::int64_t p) {
      const double slope = slope_of(row, p);
      Values sums(3, 0.0);
      for (std::int64_t f = 0; f < one.samples; ++f) {
        const auto at = static_cast<std::size_t>(p * one.samples + f);
        const double left = one.value(row, f) - slope * y[at];
        sums[weight[at] > 0.0 ? 0 : 1] += left * left;
        sums[2] += left * left;
      }
      return sums;
    };
    for (const int num : {1, 2}) {
      const Prior prior(num, one.outcomes,
                        static_cast<double>(one.samples) - 2.0);
      if (one.samples > 3)
        one.check_moments(asked, prior.parts,
                          [&](std::int64_t row, std::int64_t p) {
                            Values sums = sums_of(row, p);
                            if (num == 1) sums.erase(sums.begin() + 1);
                            return sums;
                          });
      for (const StatisticForm form :
           {StatisticForm::score, StatisticForm::plain, StatisticForm::freedom})
        for (const StatisticSide side :
             {StatisticSide::signed_t, StatisticSide::absolute,
              StatisticSide::negative}) {
          asked.side = side;
          one.check(
              asked, prior.parts, form, [&](std::int64_t row, std::int64_t p) {
                const double slope = slope_of(row, p);
                const Values sums = sums_of(row, p);
                double variance = 0.0, share = 0.0;
                for (int part = 0; part < num; ++part) {
                  const auto at =
                      size_of(p, num) + static_cast<std::size_t>(part);
                  const double of = prior.variance(
                      at, sums[static_cast<std::size_t>(part)], sums[2]);
                  variance += of;
                  share += of * of / prior.of_freedom[at];
                }
                variance = std::max(variance, kLeastVariance);
                double t = std::fabs(slope) / std::sqrt(variance);
                const double freedom =
                    std::min(prior.parts.freedom, variance * variance / share);
                if (form == StatisticForm::freedom) return freedom;
                if (form == StatisticForm::score)
                  t = normal_score(t * t, freedom);
                t = std::copysign(t, slope);
                return side == StatisticSide::absolute   ? std::fabs(t)
                       : side == StatisticSide::negative ? -t
                                                         : t;
              });
        }
    }
  }
}

TEST_CASE("a statistic of 0 is larger than none") {
  Case one(1, 4, 1, 5);
  const double part = std::sqrt(0.5);
  one.x = {part, -part, 0.0, 0.0};
  const Values y = {0.0, 0.0, part, -part}, weight(4, 1.0);
  const double last = 1.0;
  SlopeOutcomes asked;
  asked.columns = y.data();
  asked.weight = weight.data();
  asked.last = &last;
  Prior prior(1, 1, 2.0);
  prior.of_sum[0] = 0.25;
  prior.of_freedom[0] = 2.0;
  const double variance = prior.variance(0, 1.0, 1.0);
  for (const StatisticSide side :
       {StatisticSide::signed_t, StatisticSide::absolute,
        StatisticSide::negative}) {
    asked.side = side;
    for (const StatisticForm form :
         {StatisticForm::score, StatisticForm::plain, StatisticForm::freedom})
      one.check(asked, prior.parts, form, [&](std::int64_t, std::int64_t) {
        return form == StatisticForm::freedom
                   ? std::min(2.0,
                              variance * variance / (variance * variance / 2.0))
                   : 0.0;
      });
  }
}

TEST_CASE("a product that is known need not be given") {
  const Case one(50, 12, 9, 3);
  Values y(one.y.size()), weight(y.size(), 0.0), weighted(y.size()),
      last(static_cast<std::size_t>(one.outcomes), 0.0);
  // Groups of 4 and 8: the slope of a centred row is that of either group.
  for (std::size_t at = 0; at < y.size(); ++at) {
    const bool is_in = (at % 12 + at / 12) % 3 == 0;
    weight[at] = is_in ? 1.0 : 0.0;
    y[at] = (weight[at] - 4.0 / 12.0) / std::sqrt(8.0 * 4.0 / 12.0);
    weighted[at] = weight[at] * y[at];
    last[at / 12] += weighted[at] * y[at];
  }
  SlopeOutcomes asked;
  asked.columns = y.data();
  asked.weight = weight.data();
  asked.last = last.data();
  const Prior prior(2, one.outcomes, 10.0);
  Values kept[2], largest[2];
  for (const int given : {0, 1}) {
    asked.weighted = given == 1 ? weighted.data() : nullptr;
    kept[given].resize(size_of(one.num_kept, one.outcomes));
    largest[given].resize(static_cast<std::size_t>(one.outcomes), -HUGE_VAL);
    LargestStatistics out;
    out.num_outcomes = one.outcomes;
    out.place = one.place.data();
    out.kept = kept[given].data();
    out.num_kept = one.num_kept;
    out.largest = largest[given].data();
    permuted_statistics(one.points(), asked, prior.parts, 1, nullptr, out);
  }
  for (std::size_t at = 0; at < kept[0].size(); ++at)
    CHECK(kept[0][at] == doctest::Approx(kept[1][at]).epsilon(1e-9));
  for (std::size_t at = 0; at < largest[0].size(); ++at)
    CHECK(largest[0][at] == doctest::Approx(largest[1][at]).epsilon(1e-9));
}

TEST_CASE("Welch's F is that of its definition, with moderated variances") {
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
    Values root;
    for (std::int64_t f = 0; f < one.samples; ++f)
      root.push_back(1.0 + static_cast<double>(f % 3) / 4.0);
    LevelOutcomes asked;
    asked.levels = levels.data();
    asked.root = root.data();
    const Prior prior(num, one.outcomes,
                      static_cast<double>(one.samples - num));
    struct Groups {
      Values weight, mean, sum;
    };
    const auto groups_of = [&](std::int64_t row, std::int64_t p) {
      Groups of;
      of.weight.resize(static_cast<std::size_t>(num) + 1, 0.0);
      of.mean = of.sum = of.weight;
      const auto level = [&](std::int64_t f) {
        return static_cast<std::size_t>(
            levels[static_cast<std::size_t>(p * one.samples + f)] - 1);
      };
      const auto at = [&](std::int64_t f) {
        return root[static_cast<std::size_t>(f)];
      };
      for (std::int64_t f = 0; f < one.samples; ++f) {
        of.weight[level(f)] += at(f) * at(f);
        of.mean[level(f)] += at(f) * one.value(row, f);
      }
      for (std::size_t g = 0; g < static_cast<std::size_t>(num); ++g)
        of.mean[g] /= of.weight[g];
      for (std::int64_t f = 0; f < one.samples; ++f) {
        const double left = one.value(row, f) - at(f) * of.mean[level(f)];
        of.sum[level(f)] += left * left;
        of.sum.back() += left * left;
      }
      return of;
    };
    one.check_moments(asked, prior.parts,
                      [&](std::int64_t row, std::int64_t p) {
                        return groups_of(row, p).sum;
                      });
    for (const StatisticForm form :
         {StatisticForm::score, StatisticForm::plain, StatisticForm::freedom})
      one.check(
          asked, prior.parts, form, [&](std::int64_t row, std::int64_t p) {
            const Groups of = groups_of(row, p);
            const auto count = static_cast<std::size_t>(num);
            Values weight(count);
            double all = 0.0, centre = 0.0, between = 0.0, apart = 0.0;
            for (std::size_t g = 0; g < count; ++g) {
              weight[g] =
                  of.weight[g] /
                  prior.variance(size_of(p, num) + g, of.sum[g], of.sum.back());
              all += weight[g];
              centre += weight[g] * of.mean[g];
            }
            centre /= all;
            for (std::size_t g = 0; g < count; ++g) {
              between += weight[g] * std::pow(of.mean[g] - centre, 2);
              apart += std::pow(1.0 - weight[g] / all, 2) /
                       prior.of_freedom[size_of(p, num) + g];
            }
            const double k = num - 1.0;
            const double f =
                between / k /
                (1.0 + 2.0 * (num - 2.0) / (num * num - 1.0) * apart);
            if (form == StatisticForm::plain) return f;
            const double freedom = std::min(prior.parts.freedom,
                                            (num * num - 1.0) / (3.0 * apart));
            if (form == StatisticForm::freedom) return freedom;
            return (freedom + k / 2.0 - 1.0) * std::log1p(k * f / freedom);
          });
  }
}
