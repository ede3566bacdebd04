#pragma once

// The pairs of two blocks of the points, or of one block: a part of a search of
// all points, whose answer is merged from such parts
// (core/search/merged_lists.hpp). Each pair is compared once, for both of its
// points.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/rows/block_rows.hpp"
#include "core/rows/source.hpp"
#include "core/search/within.hpp"
#include "core/search/within_answer.hpp"

namespace fsknn {

/// Parameters besides the Request, whose points are all points of the search:
/// `skip` has their numbers, and `largest` is over all of them.
struct Between {
  Block a, b;  ///< b empty: a with itself; else b comes after a
  /// For the k nearest, the limit of each point of a, then of b: strictly
  /// farther pairs need not be reported to that point. Infinity reports all
  /// pairs, -infinity none; a limit is never NaN. Empty: all are infinity.
  std::vector<double> limits;

  std::int64_t num_rows() const { return a.count + b.count; }
  double limit(std::int64_t row) const {
    return limits.empty() ? HUGE_VAL : limits[static_cast<std::size_t>(row)];
  }
};

/// Throws std::invalid_argument if `between` is invalid, or if blocks do not
/// support the request (groups, common samples, queries).
void check_between(const Request& request, const Between& between,
                   const RowSource& points);

/// The request for the blocks' rows: `skip` has their numbers, and `largest` is
/// known if the metric needs it.
Request request_of_blocks(const Request& request, const RowSource& points,
                          const BlockRows& rows);

/// The length of a sorted list of distances that is part of the answer. A
/// distance above double's range ends it, because it counts only if the whole
/// search finds no other. Throws RangeFailure for a distance below the range,
/// which is among the nearest of its row.
std::int64_t length_within_range(const double* distance, std::int64_t size);

/// The answer by definition for the k nearest. For each point of a, then of b,
/// it has at most k points of the other block (of a itself if b is empty). They
/// are those within its limit, ordered by (distance, index). Indices are those
/// of all points, from 1. Correlations are stored if the answer has room for
/// them.
void brute_between(const Request& asked, const Between& between,
                   const RowSource& points, WithinRows& answer);

/// find_within() of an engine, or brute_within().
using FindWithin = std::function<void(
    const Request& request, const Within& within, const RowSource& points,
    const RowSource* queries, WithinAnswer& answer)>;

/// Finds all pairs of the blocks within a distance by an engine. Each is stored
/// once, as an entry of its point of a (of the lower number if a is alone).
/// Limits are those of all points, or one. Indices count *within b* (within a
/// if it is alone).
void within_between(const Request& asked, const Between& between,
                    const Within& within, const RowSource& points,
                    const FindWithin& find, WithinAnswer& answer);

}  // namespace fsknn
