// The GPUs' filter of pairs with missing values by products of halves, on the
// host. With any error that a tensor core may have within its bound, no pair is
// dropped at its own distance.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "cases.hpp"
#include "core/contract/masked.hpp"
#include "core/rows/masked_points.hpp"
#include "cuda/missing/product_bound.hpp"
#include "halves.hpp"
#include "masked_cases.hpp"
#include "masked_searches.hpp"

using namespace fsknn;

namespace {

/// A row as in product_rows.cu.
struct HalfRow {
  std::vector<double> h, s;  // NaN: missing
  float known = 0.0f;
  cuda::ProductBounds bounds;
};

class ProductFilter {
 public:
  ProductFilter(const Matrix& m, const MetricEntry& metric)
      : request_(masked_request(metric, 1, metric.is_unit_dot() ? 3 : 1)),
        rule_(request_, m.source(), nullptr),
        points_(prepare_masked(m.source(), rule_, {}, false, 1)) {
    if (!rule_.correlates())
      units_ = masked_units(points_, rule_, cuda::kProductHeadroom);
    for (std::int64_t i = 0; i < points_.size(); ++i)
      rows_.push_back(row(points_.row(Place{i})));
  }

  /// Counts pairs that are dropped if their row's farthest neighbour is at
  /// their distance.
  std::int64_t wrongly_dropped() const {
    std::int64_t dropped = 0;
    for (std::int64_t i = 0; i < points_.size(); ++i)
      for (std::int64_t j = 0; j < points_.size(); ++j) {
        const double value = rule_.value(
            masked_pair<ScalarLanes>(rule_.terms(), points_.row(Place{i}),
                                     points_.row(Place{j}), points_.padded));
        if (has_value(value)) dropped += !keeps(i, j, rule_.distance(value));
      }
    return dropped;
  }

  /// Counts the pairs that pass at a threshold of this distance.
  double kept_at(double distance) const {
    double kept = 0.0;
    for (std::int64_t i = 0; i < points_.size(); ++i)
      for (std::int64_t j = 0; j < points_.size(); ++j)
        kept += i != j && keeps(i, j, distance);
    return kept;
  }
  double within(double distance) const {
    double near = 0.0;
    for (std::int64_t i = 0; i < points_.size(); ++i)
      for (std::int64_t j = 0; j < points_.size(); ++j)
        near +=
            i != j && rule_.distance(rule_.value(masked_pair<ScalarLanes>(
                          rule_.terms(), points_.row(Place{i}),
                          points_.row(Place{j}), points_.padded))) <= distance;
    return near;
  }
  std::int64_t wild() const {
    std::int64_t count = 0;
    for (const HalfRow& one : rows_) count += std::isinf(one.bounds.second);
    return count;
  }

 private:
  std::int64_t depth() const { return (points_.num_features + 63) / 64 * 64; }

  HalfRow row(const double* x) const {
    const std::int64_t d = points_.num_features;
    double known = 0.0, sum = 0.0, square = 0.0;
    for (std::int64_t f = 0; f < d; ++f)
      if (has_value(x[f])) {
        known += 1.0;
        sum += x[f];
      }
    const double mean = sum / known;
    for (std::int64_t f = 0; f < d; ++f)
      if (has_value(x[f])) square += (x[f] - mean) * (x[f] - mean);
    const double length = std::sqrt(square) / cuda::kProductLength;
    HalfRow to;
    cuda::ProductTerms terms;
    bool fits = true;
    for (std::int64_t f = 0; f < d; ++f) {
      to.h.push_back(kNone);
      to.s.push_back(kNone);
      if (!has_value(x[f])) continue;
      const double v =
          rule_.correlates()
              ? (length > 0.0 ? (x[f] - mean) / length : 0.0)
              : units_(x[f] - units_.centre[static_cast<std::size_t>(f)]);
      const double h = to_half(v), s = to_half(h * h);
      fits = fits && std::fabs(v) <= cuda::kLargestFactor;
      to.h.back() = h;
      to.s.back() = s;
      terms.whole += v * v;
      terms.halves += h * h;
      terms.squares += s;
      terms.rounding += (v - h) * (v - h);
      terms.square_rounding += std::fabs(h * h - s);
    }
    to.known = static_cast<float>(known);
    to.bounds = rule_.correlates()
                    ? cuda::correlation_bounds(terms, depth(),
                                               rounding_of_sums(points_.padded))
                    : cuda::squared_difference_bounds(terms, depth());
    if (fits) return to;
    to.bounds = cuda::wild_bounds();
    for (std::vector<double>* all : {&to.h, &to.s})
      for (double& x : *all)
        if (has_value(x)) x = 0.0;
    return to;
  }

  bool keeps(std::int64_t i, std::int64_t j, double distance) const {
    const HalfRow& a = rows_[static_cast<std::size_t>(i)];
    const HalfRow& b = rows_[static_cast<std::size_t>(j)];
    return rule_.correlates() ? may_correlate(a, b, distance)
                              : may_be_close(a, b, distance);
  }

  /// The sums, each changed by its largest error in both directions.
  bool may_correlate(const HalfRow& a, const HalfRow& b,
                     double distance) const {
    const double tau = cuda::products_error(depth());
    double sums[5] = {}, sizes[5] = {}, n = 0.0;
    for (std::size_t f = 0; f < a.h.size(); ++f) {
      if (!has_value(a.h[f]) || !has_value(b.h[f])) continue;
      n += 1.0;
      const double terms[5] = {a.h[f] * b.h[f], a.h[f], b.h[f], a.s[f], b.s[f]};
      for (int t = 0; t < 5; ++t) {
        sums[t] += terms[t];
        sizes[t] += std::fabs(terms[t]);
      }
    }
    const Sign sign = request_.metric->sign;
    const float threshold = rounded_down((1.0 - distance) - 0x1p-50);
    const float all = static_cast<float>(points_.num_features);
    const float fewest = std::max(a.known + b.known - all, 3.0f);
    for (int which = 0; which < 32; ++which) {
      float moved[5];
      for (int t = 0; t < 5; ++t)
        moved[t] = static_cast<float>(sums[t] + (which >> t & 1 ? 1.0 : -1.0) *
                                                    tau * sizes[t]);
      const cuda::PairProducts s = {moved[0], moved[1], moved[2], moved[3],
                                    moved[4]};
      if (!cuda::products_may_be_near<false>(sign, s, fewest, threshold,
                                             a.bounds, b.bounds) ||
          !cuda::products_may_be_near<true>(sign, s, static_cast<float>(n),
                                            threshold, a.bounds, b.bounds))
        return false;
    }
    return true;
  }

  bool may_be_close(const HalfRow& a, const HalfRow& b, double distance) const {
    double sum = 0.0, size = 0.0, n = 0.0;
    for (std::size_t f = 0; f < a.h.size(); ++f) {
      if (!has_value(a.h[f]) || !has_value(b.h[f])) continue;
      n += 1.0;
      sum += a.s[f] / 2 + b.s[f] / 2 - a.h[f] * b.h[f];
      size += a.s[f] / 2 + b.s[f] / 2 + std::fabs(a.h[f] * b.h[f]);
    }
    const float half =
        static_cast<float>(sum + cuda::products_error(3 * depth()) * size);
    const double far = units_(rule_.distances().before_scaling(distance));
    const float threshold = cuda::float_at_least(
        far / std::sqrt(rule_.terms().num_features) * (1.0 + 1e-6));
    for (const float count : {a.known, static_cast<float>(n)})
      if (!cuda::squares_may_be_near(
              half, threshold * std::sqrt(count) + a.bounds.first, a.bounds,
              b.bounds))
        return false;
    return true;
  }

  static float rounded_down(double x) {
    const float y = static_cast<float>(x);
    return static_cast<double>(y) > x ? std::nextafter(y, -HUGE_VALF) : y;
  }

  Request request_;
  MaskedRule rule_;
  MaskedPoints points_;
  MaskedUnits units_;
  std::vector<HalfRow> rows_;
};

/// Rows of numbers whose halves, and whose squares' halves, are rounded away
/// from 0; of either sign.
Matrix rounded_away(bool squares) {
  double at = 1.0, most = 0.0;
  for (int step = 0; step < (1 << 12); ++step) {
    const double x = 1.0 + (squares ? (step / 4) * 0x1p-10 : step * 0x1p-12);
    const double h = to_half(x);
    const double off = squares ? to_half(h * h) / (x * x) - 1.0 : h / x - 1.0;
    if (off > most) {
      most = off;
      at = x;
    }
  }
  Matrix m = make("all rounded away from the origin", 40, 24);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) = (i % 2 == 0) == (f < m.d / 2) ? at : -at;
  return m;
}

/// Rows of exact halves, whose squares are exact halves as well. So the only
/// error is that of tensor cores.
Matrix halves_of_themselves(std::int64_t common) {
  Matrix m = make("halves of themselves", 80, 32);
  std::fill(m.values.begin(), m.values.end(), kNone);
  std::mt19937 random(static_cast<unsigned>(common));
  std::vector<std::int64_t> at(32);
  std::iota(at.begin(), at.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < m.n; ++i) {
    std::shuffle(at.begin(), at.begin() + common, random);
    // 16 values with mean 0.
    for (std::size_t e = 0; e < 16; ++e) m.at(i, at[e]) = e < 8 ? 1.0 : -1.0;
  }
  return m;
}

/// Rows of 32^2 squared, which are exact halves, as are their squares. A pair
/// has 8 samples in common. These hold most of either row and hardly vary. So
/// errors of tensor cores are large compared with the products less the means'.
Matrix steep_on_few() {
  constexpr std::int64_t few = 8, own = 56;
  Matrix m = make("steep on few in common", 24, few + 3 * own);
  std::fill(m.values.begin(), m.values.end(), kNone);
  std::mt19937 random(7);
  std::vector<double> common = {10, 10, 10, 10, 11, 11, 11, 11};
  for (std::int64_t i = 0; i < m.n; ++i) {
    std::shuffle(common.begin(), common.end(), random);
    const double sign = i % 4 < 2 ? 1.0 : -1.0;
    for (std::int64_t f = 0; f < few; ++f)
      m.at(i, f) = sign * common[static_cast<std::size_t>(f)];
    for (std::int64_t f = 0; f < own; ++f)
      m.at(i, few + i % 3 * own + f) = sign * (f % 2 == 0 ? -1.0 : -2.0);
  }
  return m;
}

std::vector<Matrix> product_cases() {
  std::vector<Matrix> cases = masked_cases(48, 37);
  for (const double gap : {1e-7, 1e-12, 1e-15})
    cases.push_back(with_holes(near_ties(48, 37, gap, 70), 0.1, 71));
  cases.push_back(normal("few features", 150, 5, 72));
  cases.push_back(with_holes(normal("few in common", 120, 8, 73), 0.5, 74));
  cases.push_back(with_holes(normal("counts", 60, 12, 75), 0.2, 76));
  for (double& x : cases.back().values)
    if (!std::isnan(x)) x = std::floor(std::exp(2.0 * x));
  for (const std::int64_t common : {16, 17, 20, 32})
    cases.push_back(halves_of_themselves(common));
  cases.push_back(steep_on_few());
  for (const bool squares : {false, true})
    cases.push_back(rounded_away(squares));
  // Rows of tiny values, at the columns' medians or off them.
  for (const int exponent : {-160, -70, -30, -12, -7}) {
    Matrix m = with_holes(normal("next to nothing", 60, 20, 77), 0.05, 78);
    for (std::int64_t i = 0; i < m.n; i += 3)
      for (std::int64_t f = 0; f < m.d; ++f)
        m.at(i, f) = std::ldexp(m.at(i, f), exponent);
    cases.push_back(m);
  }
  for (const double huge : {300.0, 1e5, 1e250}) {
    Matrix m = with_holes(normal("one huge entry", 48, 37, 79), 0.1, 80);
    m.at(24, 18) = huge;
    cases.push_back(m);
  }
  return cases;
}

}  // namespace

TEST_CASE("no pair is dropped at its own distance by products of halves") {
  const MetricEntry* metrics[] = {
      &find_metric("euclidean", "signed"), &find_metric("pearson", "signed"),
      &find_metric("pearson", "absolute"), &find_metric("pearson", "negative"),
      &find_metric("spearman", "signed")};
  for (const Matrix& m : product_cases())
    for (const MetricEntry* metric : metrics) {
      INFO(m.name << ", " << metric->name);
      CHECK(ProductFilter(m, *metric).wrongly_dropped() == 0);
    }
}

TEST_CASE("products of halves drop nearly all that is farther") {
  const Matrix m = with_holes(normal("holes", 200, 300, 81), 0.05, 82);
  const ProductFilter correlations(m, find_metric("pearson", "signed"));
  CHECK(correlations.kept_at(0.9) <= 1.1 * correlations.within(0.9));
  const ProductFilter differences(m, find_metric("euclidean", "signed"));
  CHECK(differences.wild() == 0);
  CHECK(differences.kept_at(24.0) <= 1.1 * differences.within(24.0) + 10.0);
}

TEST_CASE("rows beyond the others' unit are wild, and few where sizes differ") {
  Matrix m = normal("one huge entry", 100, 20, 83);
  m.at(7, 3) = 1e6;
  const MetricEntry& metric = find_metric("euclidean", "signed");
  CHECK(ProductFilter(m, metric).wild() == 1);
  m = normal("sizes of 2^10 to one another", 1000, 20, 84);
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) = std::ldexp(m.at(i, f), static_cast<int>(i % 11));
  CHECK(ProductFilter(m, metric).wild() == 0);
}
