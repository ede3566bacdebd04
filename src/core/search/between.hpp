#pragma once

// The pairs of two blocks of the points, or of one with itself: a part of a
// search of all points among themselves, which is put together of such parts
// (core/search/merged_lists.hpp). Each pair is met once, for both its points.

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

/// What is asked for besides the Request, whose points are all there are:
/// `skip` has numbers among all of them, and `largest` is of all of them.
struct Between {
  Block a, b;  ///< b empty: a with itself; else b comes after a
  /// Of the k nearest, for each point of a, then of b: a pair that is strictly
  /// farther need not be told of to that point. Infinity: all are told of;
  /// -infinity: none; no limit is NaN. Empty: all infinity.
  std::vector<double> limits;

  std::int64_t num_rows() const { return a.count + b.count; }
  double limit(std::int64_t row) const {
    return limits.empty() ? HUGE_VAL : limits[static_cast<std::size_t>(row)];
  }
};

/// Throws std::invalid_argument where that is not so, or where the request is
/// one that is not met by blocks (groups, common samples, queries).
void check_between(const Request& request, const Between& between,
                   const RowSource& points);

/// The request as it is of the blocks' rows: `skip` has numbers of these, and
/// `largest` is known where the metric needs it.
Request request_of_blocks(const Request& request, const RowSource& points,
                          const BlockRows& rows);

/// How much of a sorted list of distances goes to the answer: one that is
/// beyond a double's range ends it, since it counts only where the whole search
/// finds no other. Throws RangeFailure for one below: it is among the nearest
/// of whatever row it is of.
std::int64_t length_within_range(const double* distance, std::int64_t size);

/// The answer by definition, of the k nearest: for each point of a, then of b,
/// at most k of the other block (of a itself, where that is alone), those that
/// are at most its limit away, by (distance, index). Indices are those of all
/// points, from 1; correlations where the answer has room for them.
void brute_between(const Request& asked, const Between& between,
                   const RowSource& points, WithinRows& answer);

/// find_within() of an engine, or brute_within().
using FindWithin = std::function<void(
    const Request& request, const Within& within, const RowSource& points,
    const RowSource* queries, WithinAnswer& answer)>;

/// All pairs of the blocks that are within a distance, by an engine: each once,
/// as an entry of its point of a (of a alone: of the lower number). Limits are
/// those of all points, or one. Indices are those *of b* (of a alone: of a).
void within_between(const Request& asked, const Between& between,
                    const Within& within, const RowSource& points,
                    const FindWithin& find, WithinAnswer& answer);

}  // namespace fsknn
