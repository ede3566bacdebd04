#pragma once

// The interface to devices that scan triples instead of the CPU.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/search/triples.hpp"

namespace fsknn {

/// A triple by places, found by a scanner; the lower of the other two first.
struct TripleHit {
  std::int32_t apex, lower, higher;
  std::int32_t number;  ///< of the apex in the task
  double similarity;
};

/// Scans triples of prepared points on the devices of a request.
class TripleScanner {
 public:
  virtual ~TripleScanner() = default;

  /// The triples to scan, and how.
  struct Task {
    std::vector<TripleApex> apexes;
    /// [points] by place. 0: the point may be the other of any apex; 1: of
    /// lower apexes only (TripleOwners::has()). Empty: 1 for all.
    std::vector<char> contained;
    /// If `contained` is not empty: only lowers of part `stage` of `stages`
    /// (is_in_stage() by blocks).
    std::int64_t stage = 0, stages = 1;
    /// Prune others by a bound on their pair with the apex.
    bool by_pairs = true;
    /// So many of the most similar triples of each apex are wanted; a scanner
    /// may leave out others. 0: all.
    std::int64_t keep = 0;
  };
  /// Called with triples at least as similar as their apex requires, on one
  /// thread at a time.
  using Take = std::function<void(const std::vector<TripleHit>&)>;

  /// Adds to candidates, reranked and comparisons of the statistics.
  virtual void find(const Task& task, const Take& take, TripleStats& stats,
                    Progress* progress) = 0;

  /// [apexes x count] the places of the points most similar to each apex by an
  /// approximate measure, as a start. count: fewer than the points. Empty: the
  /// scanner needs no start.
  virtual std::vector<std::int32_t> most_alike(const Task& task,
                                               std::int64_t count,
                                               Progress* progress) = 0;

  /// Adds to counts: below the breaks, in each bin, above. Ignores the
  /// threshold and prunes nothing.
  virtual void count(const Task& task, const std::vector<double>& breaks,
                     std::vector<std::int64_t>& counts, TripleStats& stats,
                     Progress* progress) = 0;
};

/// Makes a scanner; empty: the CPU scans. The points must outlive it.
using MakeTripleScanner = std::function<std::unique_ptr<TripleScanner>(
    const Request&, const PreparedPoints&)>;

}  // namespace fsknn
