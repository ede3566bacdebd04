#pragma once

// Who goes through triples, where that is not the CPU.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/progress.hpp"
#include "core/contract/request.hpp"
#include "core/search/triples.hpp"

namespace fsknn {

/// A triple by places, as a scanner found it: of the other two the lower first.
struct TripleHit {
  std::int32_t apex, lower, higher;
  std::int32_t number;  ///< of the apex in the task
  double similarity;
};

/// Triples of prepared points, gone through by the devices of a request.
class TripleScanner {
 public:
  virtual ~TripleScanner() = default;

  /// What to go through, and how.
  struct Task {
    std::vector<TripleApex> apexes;
    /// [points] by place: those that are others of whatever apex, but for
    /// itself, have 0, the rest are of lower apexes alone
    /// (TripleOwners::has()). Empty: all are so.
    std::vector<char> contained;
    /// Where it is not empty: lowers of this part of so many alone
    /// (is_in_stage() by blocks).
    std::int64_t stage = 0, stages = 1;
    /// Others that a bound on the pair with the apex leaves no room for are
    /// left out.
    bool by_pairs = true;
  };
  /// Called with triples that are at least as similar as their apex asks for,
  /// by one thread at a time.
  using Take = std::function<void(const std::vector<TripleHit>&)>;

  /// Of the statistics it adds to candidates, settled and comparisons.
  virtual void find(const Task& task, const Take& take, TripleStats& stats,
                    Progress* progress) = 0;

  /// [apexes x count] places of the points whose pairs with each apex are the
  /// most alike by a rough measure, as a start; count: below that of the
  /// points.
  virtual std::vector<std::int32_t> most_alike(const Task& task,
                                               std::int64_t count,
                                               Progress* progress) = 0;

  /// counts: below the breaks, of each bin, above; added to. No similarity is
  /// asked for, nothing is left out.
  virtual void count(const Task& task, const std::vector<double>& breaks,
                     std::vector<std::int64_t>& counts, TripleStats& stats,
                     Progress* progress) = 0;
};

/// Makes one; empty: the CPU itself goes through them. The points must outlive
/// it.
using MakeTripleScanner = std::function<std::unique_ptr<TripleScanner>(
    const Request&, const PreparedPoints&)>;

}  // namespace fsknn
