#pragma once

// Matrices with missing values, and patterns that are hard for a masked filter.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "cases.hpp"

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

inline Matrix with_holes(Matrix m, double share, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw;
  for (double& x : m.values)
    if (draw(random) < share) x = kNone;
  return m;
}

/// Matrices and patterns that are hard for a masked filter.
inline std::vector<Matrix> masked_cases(std::int64_t n, std::int64_t d) {
  std::vector<Matrix> all;
  all.push_back(normal("nothing missing", n, d, 20));
  for (const double share : {0.02, 0.3, 0.8}) {
    all.push_back(with_holes(normal("random holes", n, d, 21), share, 22));
    all.push_back(with_holes(ties(n, d, 3, 23), share, 24));
    all.push_back(with_holes(near_ties(n, d, 1e-9, 25), share, 26));
  }
  Matrix m = normal("blocks: two batches, and few rows in both", n, d, 27);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      if (i % 7 != 0 && (f < d / 2) == (i % 2 == 0)) m.at(i, f) = kNone;
  all.push_back(m);
  m = normal("one value, two values, none", n, d, 28);
  for (std::int64_t i = 0; i < n; i += 3)
    for (std::int64_t f = 0; f < d; ++f)
      if (f >= i % 4) m.at(i, f) = kNone;
  all.push_back(m);
  m = normal("constant where others have values", n, d, 29);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f) {
      if (i % 3 == 0 && f < d - 2) m.at(i, f) = 0.1 * static_cast<double>(i);
      if (i % 3 == 1 && f >= d - 2) m.at(i, f) = kNone;
    }
  all.push_back(m);
  m = with_holes(normal("an offset far above the spread on most", n, d, 30),
                 0.1, 31);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      if (f % 5 != 0) m.at(i, f) = 1e9 + m.at(i, f);
  all.push_back(m);
  m = with_holes(normal("neighbouring doubles", n, d, 32), 0.1, 33);
  for (double& x : m.values)
    if (!std::isnan(x)) x = 1.0 + std::ceil(x) * 0x1p-52;
  all.push_back(m);
  m = with_holes(normal("1e300 to 1e-300 in a row", n, d, 34), 0.1, 35);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t f = 0; f < d; ++f)
      m.at(i, f) *= f % 3 == 0 ? 1e300 : f % 3 == 1 ? 1.0 : 1e-300;
  all.push_back(m);
  for (const double small : {1e-10, 1e-290}) {
    m = normal("1e300 in samples that most rows lack", n, d, 40);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t f = 0; f < d; ++f) {
        if (f % 4 == i % 4 && i % 5 == 0)
          m.at(i, f) *= i % 2 == 0 ? 1e300 : 4e307;
        else
          m.at(i, f) = f % 4 == 0 ? kNone : m.at(i, f) * small;
      }
    all.push_back(m);
  }
  m = with_holes(normal("subnormal", n, d, 36), 0.1, 37);
  for (double& x : m.values) x *= 1e-321;
  all.push_back(m);
  m = with_holes(normal("heavy tails", n, d, 38), 0.2, 39);
  for (double& x : m.values) x = std::exp(5.0 * x);
  all.push_back(m);
  return all;
}
