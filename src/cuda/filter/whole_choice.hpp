#pragma once

// Decides from a sample of the points whether differences of this many bits
// pay. No proof depends on it: the answer is the same either way. Plain C++,
// for the host.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/search/passing_pairs.hpp"
#include "cuda/filter/float_bound.hpp"
#include "cuda/filter/pair_seconds.hpp"
#include "cuda/plan/filter_shape.hpp"
#include "cuda/plan/number_forms.hpp"

namespace fsknn {
namespace cuda {

/// The search for which the form is considered.
struct WholeSearch {
  std::int64_t num_points = 0;  ///< that are compared with a row
  std::int64_t num_features = 0;
  std::int64_t k = 0;  ///< 0: all within a distance
  double limit = 0.0;  ///< then: the limit, as the filter compares it
  /// Otherwise the capacity of a list, and whether lists of few neighbours are
  /// re-ranked exactly before the last rounds.
  std::int64_t capacity = 0;
  bool reranks = true;
};

/// A sample of points, as the filter compares them: the first `rows` against
/// all.
struct WholeSample {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> distance;  ///< [rows x columns]
  std::vector<float> room, sum;  ///< [columns]
};

/// Returns the sample's pairs. times: how often both rows' rooms count.
inline std::vector<std::vector<SeenPair>> pairs_seen(const WholeSample& sample,
                                                     bool proportion,
                                                     double times) {
  std::vector<std::vector<SeenPair>> seen(
      static_cast<std::size_t>(sample.rows));
  for (std::int64_t r = 0; r < sample.rows; ++r)
    for (std::int64_t c = 0; c < sample.columns; ++c) {
      if (c == r) continue;
      const std::size_t i = static_cast<std::size_t>(r),
                        j = static_cast<std::size_t>(c);
      double bound = times * (static_cast<double>(sample.room[i]) +
                              static_cast<double>(sample.room[j]));
      if (proportion)
        bound /= static_cast<double>(sample.sum[i]) +
                 static_cast<double>(sample.sum[j]);
      seen[i].push_back(
          {sample.distance[static_cast<std::size_t>(r * sample.columns + c)],
           bound});
    }
  return seen;
}

/// The seconds that each point takes, by this form and at best by the next one.
struct WholeSeconds {
  double own, next;
};

inline WholeSeconds whole_seconds(const WholeSample& sample, NumberForm form,
                                  FilterKind kind, const WholeSearch& search) {
  const NumberForm wider = form == NumberForm::byte_difference
                               ? NumberForm::word_difference
                               : NumberForm::single;
  const double n = static_cast<double>(search.num_points);
  const double d = static_cast<double>(search.num_features);
  const double exact = kSecondsCandidate + kSecondsExactFeature * d;
  WholeSeconds seconds = {n / 2 * d * seconds_a_feature(form, kind),
                          n / 2 * d * seconds_a_feature(wider, kind)};
  if (search.k == 0) {
    // Limits are known, so rounding errors let pairs pass only once.
    double pass = 0.0, near = 0.0, all = 0.0;
    for (const auto& of_row : pairs_seen(sample, is_proportion(kind), 1.0))
      for (const SeenPair& s : of_row) {
        ++all;
        near += s.distance <= search.limit;
        pass += s.distance <= search.limit + s.bound;
      }
    all = std::max(all, 1.0);
    seconds.own += n / 2 * pass / all * exact;
    seconds.next += n / 2 * near / all * exact;
    return seconds;
  }
  const double k = static_cast<double>(search.k);
  const std::int64_t nearest = std::max<std::int64_t>(
      1,
      search.k * sample.columns / std::max<std::int64_t>(1, search.num_points));
  const auto candidates = [&](double times) {
    auto seen = pairs_seen(sample, is_proportion(kind), times);
    return k * times_as_many(seen, nearest);
  };
  // A pair passes if its upper bound reaches the threshold. Thresholds are the
  // lower bounds of k pairs in the filter's numbers. At the end, where lists
  // are re-ranked, they come from exact distances, and each such round computes
  // about k / 2 more.
  const double listed = candidates(2.0);
  const bool reranked = search.reranks && search.k <= kMostReranked;
  seconds.own += exact * (reranked ? candidates(1.0) +
                                         k * entry_of(form).reranked_rounds / 2
                                   : listed);
  seconds.next += k * exact;
  // Lists overflow, and many of their rows are recomputed in doubles.
  if (!(listed <= 0.6 * static_cast<double>(search.capacity)))
    seconds.own += n * d * kSecondsDoubleFeature;
  return seconds;
}

inline bool whole_pays(const WholeSample& sample, NumberForm form,
                       FilterKind kind, const WholeSearch& search) {
  const WholeSeconds seconds = whole_seconds(sample, form, kind, search);
  return seconds.own <= seconds.next;
}

}  // namespace cuda
}  // namespace fsknn
