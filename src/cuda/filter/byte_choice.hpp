#pragma once

// Whether products of bytes pay, from some of the points. Nothing here is part
// of a proof: any choice gives the same answer. Plain C++, for the host.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// How many rows a sample has whose products with each other are looked at, and
/// how many, with how many points, where bytes seem to pay by these.
static constexpr std::int64_t kByteSample = 64;
static constexpr std::int64_t kDuplicateSample = 128, kDuplicatePoints = 2048;

/// What bytes are chosen for.
struct ByteSearch {
  std::int64_t num_points = 0;  ///< that a row meets
  std::int64_t k = 0;
  std::int64_t depth = 0;  ///< of the rows in bytes
  double candidate_cost = byte_candidate_cost(kMostReranked);
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

/// Of all points, those that are neighbours.
inline double neighbours_part(const ByteSearch& search) {
  return std::min(0.4, static_cast<double>(search.k) /
                           static_cast<double>(search.num_points));
}

/// How many candidates a row may be expected to have at last, if each row's
/// similarities are normal: most real ones have longer tails, and fewer
/// candidates; duplicate_candidates() has the others. products [count x count]:
/// of a sample's rows. gap: by how much less similar than the k-th a candidate
/// may be.
inline double expected_candidates(const std::vector<double>& products,
                                  std::int64_t count, const ByteSearch& search,
                                  double gap) {
  const double part = neighbours_part(search);
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

/// A row's similarities with some points, no fewer than `few`.
struct SampledRow {
  static constexpr std::size_t few = 8;
  double mean = 0.0, spread = 0.0;
  std::array<double, few> largest = {};  ///< the first is the largest

  explicit SampledRow(const std::vector<double>& similarities) {
    double sum = 0.0, squares = 0.0;
    for (const double r : similarities) {
      sum += r;
      squares += r * r;
    }
    std::partial_sort_copy(similarities.begin(), similarities.end(),
                           largest.begin(), largest.end(), std::greater<>());
    const double count = static_cast<double>(similarities.size());
    mean = sum / count;
    spread = std::sqrt(std::max(0.0, squares / count - mean * mean));
  }
  /// What this part of all points, less than `few` of these, may be as similar
  /// as: their largest similarities fall off exponentially, or all as a normal
  /// distribution, whichever is nearer.
  double nearest(double part, double count) const {
    double sum = 0.0;
    for (const double r : largest) sum += r;
    const double eighth = largest.back();
    const double fall = sum / static_cast<double>(few) - eighth;
    const double by_largest =
        eighth + fall * std::log(static_cast<double>(few) / (count * part));
    return std::min(1.0,
                    std::max(by_largest, mean + tail_begins(part) * spread));
  }
};

/// How many candidates a row has on average because it stands in a crowd: where
/// its neighbours are as near as can be, many of a sample's points may be no
/// farther than the gap below them. Those that halves would not tell apart
/// either are not counted. Nothing is said of the others: where no point of the
/// sample is so near, too few are to be seen. Where some are as normal rows
/// have them, expected_candidates() has counted these too. similarities [rows
/// x points]: the first of the sample's with it, each one's own in between.
inline double duplicate_candidates(const std::vector<double>& similarities,
                                   std::int64_t rows, std::int64_t points,
                                   const ByteSearch& search, double gap) {
  if (search.k < 1 || rows < 1 ||
      points <= static_cast<std::int64_t>(SampledRow::few))
    return 0.0;
  constexpr double gap_of_halves = 0x1p-10;
  const double part = neighbours_part(search);
  const double others = static_cast<double>(points - 1);
  double all = 0.0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto first = similarities.begin() + i * points;
    std::vector<double> of_row(first, first + points);
    of_row.erase(of_row.begin() + i);
    const SampledRow row(of_row);
    const double nearest = row.nearest(part, others);
    if (row.largest.front() < nearest - gap) continue;
    all += static_cast<double>(
        std::count_if(of_row.begin(), of_row.end(), [&](double r) {
          return r >= nearest - gap && r < nearest - gap_of_halves;
        }));
  }
  return all / others * static_cast<double>(search.num_points) /
         static_cast<double>(rows);
}

/// What rounding changes in a row of length 1, about.
inline double typical_error(double step, std::int64_t depth) {
  return step * std::sqrt(static_cast<double>(depth) / 12);
}

/// By how much less similar than the k-th a candidate may be: by what rounding
/// changes in both rows, once where thresholds are of exact distances, else
/// twice.
inline double byte_gap(const ByteSearch& search, double step) {
  const double rows = search.k <= kMostReranked ? 2 : 4;
  return rows * typical_error(step, search.depth);
}

/// Half of the pairs are saved half of their time; a candidate more costs some
/// time in each round, and the exact step at last. expected: of a row.
inline bool bytes_pay(double expected, const ByteSearch& search) {
  const double saved = static_cast<double>(search.num_points) *
                       static_cast<double>(search.depth);
  return (expected - static_cast<double>(search.k)) * search.candidate_cost <=
         saved;
}

}  // namespace cuda
}  // namespace fsknn
