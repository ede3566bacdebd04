#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/source.hpp"

namespace fsknn {
namespace cpu {

/// What is known of the pairs (from[i], to[i]), by number, from 0.
struct ListedPairs {
  std::vector<std::int32_t> from, to;
  // NaN where one of the points is left out, or a pair has no distance:
  std::vector<double> distance;
  std::vector<double> correlation;  ///< of products of rows of length 1
  std::vector<double> similarity;   ///< of metrics of sum min(a, b)
  /// Samples that both have, where values are missing and pairs are compared
  /// over those; else empty.
  std::vector<std::int32_t> common;
};

/// Fills in the distances of listed pairs, which are those that any search of
/// the points finds, to the last bit.
void measure_pairs(const Request& request, const RowSource& points,
                   ListedPairs& pairs, Progress* progress);

}  // namespace cpu
}  // namespace fsknn
