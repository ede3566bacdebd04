#pragma once

// Named matrices that are hard for a filter or for an order.

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/contract/metric.hpp"
#include "core/rows/source.hpp"

/// All metrics except those of tables of alleles, whose rows are small whole
/// numbers and whose entries need the number of samples (test_tables.cpp).
inline const std::vector<fsknn::MetricEntry>& metrics_of_numbers() {
  static const std::vector<fsknn::MetricEntry> some = [] {
    std::vector<fsknn::MetricEntry> found;
    for (const fsknn::MetricEntry& metric : fsknn::all_metrics())
      if (!metric.is_table()) found.push_back(metric);
    return found;
  }();
  return some;
}

struct Matrix {
  std::string name;
  std::int64_t n = 0, d = 0;
  std::vector<double> values;  // column-major, as R's
  double& at(std::int64_t i, std::int64_t f) {
    return values[static_cast<std::size_t>(f * n + i)];
  }
  fsknn::MatrixSource<double> source() const {
    return fsknn::MatrixSource<double>(values.data(), n, d);
  }
};

inline Matrix make(const std::string& name, std::int64_t n, std::int64_t d) {
  Matrix m;
  m.name = name;
  m.n = n;
  m.d = d;
  m.values.assign(static_cast<std::size_t>(n * d), 0.0);
  return m;
}

inline Matrix normal(const std::string& name, std::int64_t n, std::int64_t d,
                     unsigned seed) {
  Matrix m = make(name, n, d);
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  for (double& x : m.values) x = draw(random);
  return m;
}

/// Small whole numbers: full of ties, rows equal bit for bit.
inline Matrix ties(std::int64_t n, std::int64_t d, int levels, unsigned seed) {
  Matrix m = make("ties", n, d);
  std::mt19937 random(seed);
  for (double& x : m.values)
    x = static_cast<double>(random() % static_cast<unsigned>(levels));
  return m;
}

/// Each row is a base row plus `gap` times noise, which makes near-ties.
inline Matrix near_ties(std::int64_t n, std::int64_t d, double gap,
                        unsigned seed) {
  Matrix m = normal("near ties", n, d, seed);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = m.at(i % 3, f) + gap * m.at(i, f);
  return m;
}

/// Rows that are far from 0 compared with their differences. The last `tiny`
/// rows have one entry close to 0.
inline Matrix near_empty(std::int64_t n, std::int64_t d, double level,
                         std::int64_t tiny) {
  Matrix m =
      normal("near-empty rows beside " + std::to_string(level), n, d, 18);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f) {
      if (i < n - tiny)
        m.at(i, f) =
            level + std::fmax(1.0, 1e-10 * level) * std::fabs(m.at(i, f));
      else
        m.at(i, f) = f == i % d ? std::pow(10.0, -40.0 - i % 4 * 80.0) : 0.0;
    }
  return m;
}

/// Rows that are nearly the same after an offset, so that a filter centres
/// them. Some have entries, rows or columns far larger than all others.
inline std::vector<Matrix> offset_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all;
  const auto take = [&](const std::string& name, unsigned seed, auto change) {
    Matrix m = normal(name, n, d, seed);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t f = 0; f < d; ++f)
        m.at(i, f) = change(m.at(i, f), i, f);
    all.push_back(m);
  };
  using At = std::int64_t;
  for (const double level : {30.0, 1e3, 1e6, 1e12, -1e6})
    take("shifted by " + std::to_string(level), 30,
         [&](double x, At, At) { return x + level; });
  take("shifted, and some rows not, or the other way", 31,
       [&](double x, At i, At) {
         return i % 9 == 0 ? x : i % 9 == 1 ? x - 1e4 : x + 1e4;
       });
  take("a profile of columns", 32, [&](double x, At, At f) {
    return 0.01 * x + std::cos(3.0 * static_cast<double>(f));
  });
  take("one huge column", 33,
       [&](double x, At, At f) { return f == d / 2 ? 1e8 * x : x; });
  take("one huge column of one sign", 34,
       [&](double x, At, At f) { return f == d / 2 ? 1e8 + x : x; });
  take("rows along a line", 35, [&](double x, At i, At f) {
    return 1.0 + 1e-3 * static_cast<double>(i * (f % 2)) + 1e-9 * x;
  });
  take("all rows alike", 36, [&](double, At, At f) {
    return std::sin(static_cast<double>(f) + 1.0);
  });
  take("all rows alike but one", 37, [&](double x, At i, At f) {
    return i == n / 3 ? x : std::sin(static_cast<double>(f) + 1.0);
  });
  take("constant rows", 38,
       [&](double, At i, At) { return 1e6 + static_cast<double>(i % 5); });
  take("shifted, with one huge entry", 39, [&](double x, At i, At f) {
    return i == n / 2 && f == d / 2 ? 1e15 : x + 1e5;
  });
  for (const double huge : {1e8, 1e12, 1e14, 1e100, 1e300})
    take("some entries at " + std::to_string(huge), 40,
         [&](double x, At i, At f) {
           return i % 11 == 3 && f == i % d ? (i % 2 == 0 ? huge : -huge) : x;
         });
  take("shifted subnormal", 41,
       [&](double x, At, At) { return 4e-320 + 1e-322 * x; });
  return all;
}

/// Everything that the contract must survive, about n points each.
inline std::vector<Matrix> hard_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all;
  all.push_back(normal("normal", n, d, 1));
  all.push_back(ties(n, d, 3, 2));
  all.push_back(ties(n, d, 2, 17));
  all.back().name = "zeros and ones";
  all.push_back(near_ties(n, d, 1e-7, 3));
  all.push_back(near_ties(n, d, 1e-12, 4));
  all.push_back(near_ties(n, d, 1e-15, 5));
  Matrix m = normal("duplicates and opposites", n, d, 6);
  for (std::int64_t i = 0; i + 2 < n; i += 3)
    for (std::int64_t f = 0; f < d; ++f) {
      m.at(i + 1, f) = m.at(i, f);
      m.at(i + 2, f) = -m.at(i, f);
    }
  all.push_back(m);
  m = normal("one huge entry", n, d, 7);
  m.at(n / 2, d / 2) = 1e30;
  all.push_back(m);
  m = normal("rows at 1e300, 1e-300 and subnormal", n, d, 8);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) *= i % 4 == 0   ? 1e300
                    : i % 4 == 1 ? 1e-300
                    : i % 4 == 2 ? 1e-318
                                 : 1.0;
  all.push_back(m);
  m = ties(n, d, 4, 16);
  m.name = "ties at 1e-31 to 1e31";
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) *= std::pow(10.0, static_cast<double>(i % 63 - 31));
  all.push_back(m);
  m = normal("all at 1e-300", n, d, 9);
  for (double& x : m.values) x *= 1e-300;
  all.push_back(m);
  m = normal("all subnormal", n, d, 10);
  for (double& x : m.values) x *= 1e-321;
  all.push_back(m);
  m = normal("all at 1e300", n, d, 11);
  for (double& x : m.values) x *= 1e300;
  all.push_back(m);
  m = normal("shifted by 1e9", n, d, 12);
  for (double& x : m.values) x += 1e9;
  all.push_back(m);
  m = normal("rows that differ in one bit", n, d, 13);
  for (std::int64_t i = 1; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = f == i % d ? std::nextafter(m.at(0, f), 10.0) : m.at(0, f);
  all.push_back(m);
  m = normal("heavy tails", n, d, 14);
  for (double& x : m.values) x = std::exp(5.0 * x);
  all.push_back(m);
  m = normal("tight clusters far apart", n, d, 15);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) = 1e-4 * m.at(i, f) + 100.0 * std::cos(7.0 * (i % 5) + f);
  all.push_back(m);
  all.push_back(near_empty(n, d, 1e10, n / 3));
  return all;
}
