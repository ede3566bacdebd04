#pragma once

// Estimates from a sample how many pairs pass a filter. No proof depends on it:
// any choice of a filter gives the same answers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace fsknn {

/// A sampled pair: its distance as a filter compares it, and how much a filter
/// may underestimate it.
struct SeenPair {
  double distance, bound;
};

/// The ratio of pairs that pass to pairs that are near once limits are final.
/// Per row, a pair is near up to the distance of the `nearest`-th of the
/// sample, and passes if it may be that near. Reorders the rows' pairs.
/// Infinity: unknown.
inline double times_as_many(std::vector<std::vector<SeenPair>>& of_rows,
                            std::int64_t nearest) {
  double pass = 0.0, near = 0.0;
  for (std::vector<SeenPair>& of_row : of_rows) {
    if (static_cast<std::int64_t>(of_row.size()) < nearest) continue;
    const auto farthest = of_row.begin() + (nearest - 1);
    std::nth_element(of_row.begin(), farthest, of_row.end(),
                     [](const SeenPair& a, const SeenPair& b) {
                       return a.distance < b.distance;
                     });
    const double limit = farthest->distance;
    for (const SeenPair& s : of_row) {
      near += s.distance <= limit;
      pass += s.distance <= limit + s.bound;
    }
  }
  return near > 0.0 ? pass / near : HUGE_VAL;
}

}  // namespace fsknn
