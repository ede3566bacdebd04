#pragma once

// Triples of points on the CPU.

#include <cstdint>
#include <vector>

#include "core/progress.hpp"
#include "core/request.hpp"
#include "core/source.hpp"
#include "core/triples.hpp"

namespace fsknn {
namespace cpu {

struct TriplesFound {
  std::vector<Triple> triples;  ///< in order
  std::vector<TriplePairs> pairs;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// All triples of at least that similarity. Throws TooManyTriples.
TriplesFound find_triples(const Request& request,
                          const TripleQuestion& question,
                          const RowSource& points, Progress* progress);

/// Of a point: the others of a triple, the lower first.
struct TripleOfPoint {
  std::int32_t second, third;  ///< from 0
  double similarity;
};

struct NearestTriples {
  /// [points that are asked for] by similarity, the largest first, second,
  /// third.
  std::vector<std::vector<TripleOfPoint>> lists;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// The request's k triples of each point (of `contains`, in its order, or all).
NearestTriples nearest_triples(const Request& request,
                               const std::vector<std::int32_t>& contains,
                               TriplePath path, const RowSource& points,
                               Progress* progress);

struct TripleCounts {
  std::vector<double> counts;  ///< of the bins [breaks[i], breaks[i + 1])
  double below = 0, above = 0;
  std::uint64_t checksum = 0;
  TripleStats stats;
};

/// breaks: ascending, two or more; the last bin has its upper end too.
TripleCounts count_triples(const Request& request,
                           const std::vector<double>& breaks,
                           std::int64_t stage, std::int64_t stages,
                           const RowSource& points, Progress* progress);

}  // namespace cpu
}  // namespace fsknn
