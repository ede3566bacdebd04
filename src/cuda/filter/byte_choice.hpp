#pragma once

// Whether products of bytes pay, from some of the points. Nothing here is part
// of a proof: any choice gives the same answer. Plain C++, for the host.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// What bytes are chosen for.
struct ByteSearch {
  std::int64_t num_points = 0;  ///< that a row meets
  std::int64_t k = 0;
  std::int64_t depth = 0;  ///< of the rows in bytes
  double candidate_cost = byte_candidate_cost(kMostSettled);
};

/// The step, from the sample's rows' largest entries: rows of many features,
/// once turned, have nearly normal entries, the largest of which is about three
/// times the typical one. A little more than that costs rows of small entries
/// less than it saves those of larger ones. 0: there is none.
inline double step_of(std::vector<double> largest) {
  constexpr double more = 1.4, most = 127.0;
  if (largest.empty()) return 0.0;
  const auto middle =
      largest.begin() + static_cast<std::ptrdiff_t>(largest.size() / 2);
  std::nth_element(largest.begin(), middle, largest.end());
  const double step =
      static_cast<double>(static_cast<float>(*middle * more / most));
  return step > 0x1p-30 && step < 1.0 ? step : 0.0;
}

/// The part of a normal distribution above x.
inline double normal_tail(double x) {
  return std::erfc(x * std::sqrt(0.5)) / 2;
}

/// And the x above which this part is, less than a half.
inline double tail_begins(double part) {
  double low = 0.0, high = 40.0;
  for (int i = 0; i < 60; ++i) {
    const double x = (low + high) / 2;
    (normal_tail(x) > part ? low : high) = x;
  }
  return low;
}

/// How many candidates a row may be expected to have at last, if each row's
/// similarities are normal: real ones have longer tails, and fewer candidates.
/// products [count x count]: of a sample's rows. gap: by how much less similar
/// than the k-th a candidate may be.
inline double expected_candidates(const std::vector<double>& products,
                                  std::int64_t count, const ByteSearch& search,
                                  double gap) {
  const double part = std::min(0.4, static_cast<double>(search.k) /
                                        static_cast<double>(search.num_points));
  const double x = tail_begins(part);
  double all = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0.0, squares = 0.0;
    for (std::int64_t j = 0; j < count; ++j) {
      if (j == i) continue;
      const double r = products[static_cast<std::size_t>(i * count + j)];
      sum += r;
      squares += r * r;
    }
    const double others = static_cast<double>(count - 1);
    const double mean = sum / others;
    const double spread =
        std::sqrt(std::max(1e-12, squares / others - mean * mean));
    all += normal_tail(x - gap / spread) / part;
  }
  return static_cast<double>(search.k) * all / static_cast<double>(count);
}

/// What rounding changes in a row of length 1, about.
inline double typical_error(double step, std::int64_t depth) {
  return step * std::sqrt(static_cast<double>(depth) / 12);
}

/// Half of the pairs are saved half of their time; a candidate more costs some
/// time in each round, and the exact step at last.
inline bool bytes_pay(const std::vector<double>& products, std::int64_t count,
                      const ByteSearch& search, double step) {
  if (count < 16 || step == 0.0) return false;
  const double depth = static_cast<double>(search.depth);
  // Both rows', once where thresholds are of exact distances, else twice.
  const double rows = search.k <= kMostSettled ? 2 : 4;
  const double expected = expected_candidates(
      products, count, search, rows * typical_error(step, search.depth));
  const double saved = static_cast<double>(search.num_points) * depth;
  return (expected - static_cast<double>(search.k)) * search.candidate_cost <=
         saved;
}

}  // namespace cuda
}  // namespace fsknn
