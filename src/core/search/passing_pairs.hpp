#pragma once

// How many pairs a filter lets pass, from a sample of them. Nothing here is
// part of a proof: any choice of a filter gives the same answers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace fsknn {

/// A pair of a sample: how far apart it is, as a filter compares it, and by how
/// much less it may seem to be.
struct SeenPair {
  double distance, bound;
};

/// How many times as many pairs pass once limits are final: per row, those that
/// may be as near as its farthest neighbour, the `nearest`-th of the sample,
/// against those that are. Reorders the rows' pairs; infinity: nothing is
/// known.
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
