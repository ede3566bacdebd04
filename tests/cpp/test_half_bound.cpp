// The bound of the filter by products of halves for rows of any length, on the
// host. Tests the precision of a number in three halves, and its cost.

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/rows/prepared.hpp"
#include "cuda/filter/half_bound.hpp"

using namespace fsknn;
using namespace fsknn::cuda;

namespace {

/// Whether x is a half-precision number (IEEE 754).
bool is_half(double x) {
  const double in_steps = x * 0x1p24;
  if (std::fabs(x) > 65504.0 || in_steps != std::rint(in_steps)) return false;
  if (x == 0.0) return true;
  const double digits = std::fabs(x) / two_to(exponent_of(std::fabs(x)) - 10);
  return std::fabs(x) < 0x1p-14 || digits == std::rint(digits);
}

double magnitude(const NormParts& norm) {
  double m = 0.0;
  for (int p = 0; p < kNormParts; ++p)
    m += std::fabs(norm.part[p]) * part_unit(p);
  return m;
}

/// 1,000 numbers from 2^-60 to 2^29, and 0.
std::vector<double> numbers() {
  std::vector<double> all = {0.0};
  std::mt19937 random(5);
  std::uniform_real_distribution<double> draw(-60.0, 29.0);
  while (all.size() < 1000) all.push_back(std::exp2(draw(random)));
  return all;
}

}  // namespace

TEST_CASE("three halves hold a number, and little more") {
  for (const double x : numbers())
    for (const double sign : {1.0, -1.0}) {
      const NormParts norm = split_norm(sign * x);
      INFO(sign * x);
      for (const double part : norm.part) CHECK(is_half(part));
      const long double held =
          static_cast<long double>(norm.part[0]) * part_unit(0) +
          static_cast<long double>(norm.part[1]) * part_unit(1) +
          static_cast<long double>(norm.part[2]) * part_unit(2);
      CHECK(held <= sign * x);
      CHECK(held >= sign * x - x * 0x1p-20 - 0x1p-32);
      CHECK(magnitude(norm) <= 1.005 * x + 0x1p-20);
    }
}

TEST_CASE("a raw row's error covers what adding up its norm's parts may lose") {
  for (const std::int64_t padded : {8, 104, 1000, 4096, 262144})
    for (const double p : numbers())
      // Halves have 11 bits; a row with one entry may be exact.
      for (const double lost : {0.0, 0x1p-13, 0x1p-11, 1.0}) {
        RawRule rule;
        rule.padded = padded;
        rule.depth = (padded + kNormFeatures + 63) / 64 * 64;
        rule.contract = rounding_of_sums(padded) * 2 + 0x1p-47;
        RawTerms terms;
        terms.whole = 2 * p;
        terms.halves = 2 * p * (1 + lost);
        terms.rounding = 2 * p * lost * lost;
        const RawBounds row = raw_bounds(rule, terms);
        INFO("p = " << p << ", padded = " << padded << ", lost = " << lost);
        CHECK(row.wild == (p > 0x1p29 || row.error > kLargestError));
        if (row.wild) continue;
        const double tau = sums_error(rule.depth);
        CHECK(tau < 0x1p-8);
        CHECK(row.error >= row.rest + tau * magnitude(row.norm));
        CHECK(row.norm.sum() <= p - row.error);
        CHECK(static_cast<double>(row.slack) >=
              row.error + (p - row.norm.sum()));
        CHECK(static_cast<double>(row.slack) < HUGE_VAL);
      }
}

TEST_CASE("a raw row that is beyond all measure is wild") {
  RawRule rule;
  rule.padded = 8;
  rule.depth = 64;
  for (const double beyond : {0x1p31, 1e300, HUGE_VAL, std::nan("")}) {
    for (int which = 0; which < 3; ++which) {
      RawTerms terms;
      (which == 0   ? terms.whole
       : which == 1 ? terms.halves
                    : terms.rounding) = beyond;
      if (which == 1 && beyond == 0x1p31) continue;  // an error of 2^18
      const RawBounds row = raw_bounds(rule, terms);
      CHECK(row.wild);
      CHECK(row.slack == HUGE_VALF);
      CHECK(row.norm.sum() == -65504.0 * 0x1p14);
    }
  }
}
