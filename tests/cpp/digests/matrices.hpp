#pragma once

// Matrices from integer arithmetic, products with powers of two and single
// additions. So every machine makes the same bits, without libm or the
// generators of the standard library.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../cases.hpp"

/// Numbers from 0 to 2^31 - 1 from a linear congruential generator.
class Draw {
 public:
  explicit Draw(std::uint64_t seed)
      : state_(seed * 2654435761u + 88172645463325252u) {}
  std::int64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(state_ >> 33);
  }
  /// A sum of four numbers around 0, nearly normal: a whole number times 2^-31.
  double bell() {
    std::int64_t sum = -(std::int64_t{1} << 32);
    for (int i = 0; i < 4; ++i) sum += next();
    return std::ldexp(static_cast<double>(sum), -31);
  }
  std::int64_t below(std::int64_t end) { return (next() >> 8) % end; }

 private:
  std::uint64_t state_;
};

inline Matrix generic(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  Matrix m = make("generic", n, d);
  Draw draw(seed);
  for (double& x : m.values) x = draw.bell();
  return m;
}

/// Whole numbers from 0 to 3, with ties and equal rows.
inline Matrix small_whole(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  Matrix m = make("ties", n, d);
  Draw draw(seed);
  for (double& x : m.values) x = static_cast<double>(draw.below(4));
  return m;
}

inline std::vector<Matrix> all_matrices() {
  std::vector<Matrix> all;
  all.push_back(generic(331, 37, 1));
  all.push_back(small_whole(260, 11, 2));

  Matrix m = generic(301, 23, 3);
  m.name = "duplicates";
  for (std::int64_t i = 40; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) = (i % 3 == 0 ? -1.0 : 1.0) * m.at(i % 40, f);
  all.push_back(m);

  m = generic(203, 29, 4);
  m.name = "scales";
  for (std::int64_t i = 0; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) =
          std::ldexp(m.at(i, f), i % 3 == 0 ? 600 : (i % 3 == 1 ? -700 : 0));
  all.push_back(m);

  m = generic(230, 19, 5);
  m.name = "one-huge";
  m.at(115, 9) = 0x1p100;
  all.push_back(m);

  m = generic(280, 33, 6);
  m.name = "near-ties";
  for (std::int64_t i = 3; i < m.n; ++i)
    for (std::int64_t f = 0; f < m.d; ++f)
      m.at(i, f) = m.at(i % 3, f) + std::ldexp(m.at(i, f), -38);
  all.push_back(m);

  all.push_back(generic(67, 2309, 7));
  all.back().name = "long-rows";
  all.push_back(generic(701, 21, 9));
  all.back().name = "more-points";
  all.push_back(small_whole(150, 2, 8));
  all.back().name = "two-features";
  m = generic(180, 24, 10);
  m.name = "even-and-far";
  for (double& x : m.values) x += 0x1p40;
  all.push_back(m);
  return all;
}

/// About every fifth value is missing; some rows have few values or none.
inline Matrix with_gaps(Matrix m, std::uint64_t seed) {
  Draw draw(seed);
  for (double& x : m.values)
    if (draw.below(5) == 0) x = std::nan("");
  for (std::int64_t f = 0; f < m.d; ++f) {
    if (f > 1) m.at(10, f) = std::nan("");
    m.at(20, f) = std::nan("");
    if (f % 2 == 0) m.at(30, f) = std::nan("");
    if (f % 2 == 1) m.at(31, f) = std::nan("");
  }
  return m;
}
