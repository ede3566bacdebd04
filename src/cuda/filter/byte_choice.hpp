#pragma once

// Decides from a sample of the points whether products of bytes pay. No proof
// depends on it: the answer is the same either way. Plain C++, for the host.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// The number of sampled rows whose products with each other are examined. If
/// bytes seem to pay by these, more rows are compared with more points.
static constexpr std::int64_t kByteSample = 64;
static constexpr std::int64_t kDuplicateSample = 128, kDuplicatePoints = 2048;

/// The search for which bytes are considered.
struct ByteSearch {
  std::int64_t num_points = 0;  ///< that are compared with a row
  std::int64_t k = 0;
  std::int64_t depth = 0;  ///< of the rows in bytes
  double candidate_cost = byte_candidate_cost(kMostReranked);
};

/// Returns the step, from the largest entries of the sampled rows; 0: there is
/// none. Rotated rows of many features have nearly normal entries, the largest
/// of which is about three times the typical one. A slightly larger step costs
/// rows of small entries less than it saves for rows of larger ones.
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

/// Returns the part of a normal distribution above x.
inline double normal_tail(double x) {
  return std::erfc(x * std::sqrt(0.5)) / 2;
}

/// Returns the x above which this part lies, if it is less than a half.
inline double tail_begins(double part) {
  double low = 0.0, high = 40.0;
  for (int i = 0; i < 60; ++i) {
    const double x = (low + high) / 2;
    (normal_tail(x) > part ? low : high) = x;
  }
  return low;
}

/// Returns the share of all points that are neighbours.
inline double neighbours_part(const ByteSearch& search) {
  return std::min(0.4, static_cast<double>(search.k) /
                           static_cast<double>(search.num_points));
}

/// Returns the expected number of candidates of a row at the end, if each row's
/// similarities are normal. Most real ones have longer tails, and fewer
/// candidates; duplicate_candidates() estimates those of near-duplicates.
/// products [count x count]: of a sample's rows. gap: how far below the k-th
/// similarity a candidate may be.
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

/// The similarities of a row with at least `few` points.
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
  /// Returns the similarity that this part of all points may reach, if it is
  /// less than `few` of these. It fits an exponential tail to the largest
  /// similarities, or a normal distribution to all, and returns the larger.
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

/// Returns the average number of candidates that a row has because of
/// near-duplicates: if its neighbours are as near as possible, many sampled
/// points may be within the gap below them. Points that halves could not tell
/// apart either are not counted. Rows without a sampled point within the gap
/// are skipped, since too few would be visible. Candidates that normal rows
/// have too are counted here and by expected_candidates(). similarities [rows x
/// points]: of the sample's first rows, including each row with itself.
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

/// Returns the typical rounding error of a row of length 1.
inline double typical_error(double step, std::int64_t depth) {
  return step * std::sqrt(static_cast<double>(depth) / 12);
}

/// Returns how far below the k-th similarity a candidate may be: the rounding
/// errors of both rows, once where thresholds come from exact distances,
/// otherwise twice.
inline double byte_gap(const ByteSearch& search, double step) {
  const double rows = search.k <= kMostReranked ? 2 : 4;
  return rows * typical_error(step, search.depth);
}

/// Bytes save half of the time of half of the pairs. Each additional candidate
/// costs time in every round, and in the exact step. expected: of a row.
inline bool bytes_pay(double expected, const ByteSearch& search) {
  const double saved = static_cast<double>(search.num_points) *
                       static_cast<double>(search.depth);
  return (expected - static_cast<double>(search.k)) * search.candidate_cost <=
         saved;
}

}  // namespace cuda
}  // namespace fsknn
