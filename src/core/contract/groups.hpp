#pragma once

// Points in groups (R's `block`), for searches whose lists depend on groups.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/base/kinds.hpp"
#include "core/base/numbers.hpp"

namespace fsknn {

class PointGroups {
 public:
  enum class Lists {
    each,      ///< the k nearest in each group
    others,    ///< in each group except the row's own
    together,  ///< among the points of all groups except the row's own
  };

  /// of: [points] the group of each, from 0. of_row: [queries] the group of
  /// each, -1 for none; empty if the rows are the points.
  PointGroups(Lists lists, std::int32_t count, std::vector<std::int32_t> of,
              std::vector<std::int32_t> of_row)
      : lists_(lists),
        count_(count),
        of_(std::move(of)),
        of_row_(std::move(of_row)) {
    for (const std::int32_t g : of_)
      if (g < 0 || g >= count)
        throw std::invalid_argument("a point is in no group");
  }

  Lists lists() const { return lists_; }
  std::int32_t count() const { return count_; }
  /// [points]
  const std::vector<std::int32_t>& of() const { return of_; }
  std::int32_t of_row(AnswerRow row) const {
    const std::vector<std::int32_t>& all = of_row_.empty() ? of_ : of_row_;
    return all[static_cast<std::size_t>(row.value)];
  }
  /// Lists for each row.
  std::int64_t num_lists() const {
    switch (lists_) {
      case Lists::each: return count_;
      case Lists::others: return count_ - 1;
      case Lists::together: return 1;
    }
    throw_unknown("lists", static_cast<int>(lists_));
  }
  /// The list of a row of group `own` that receives points of `group`; -1:
  /// none.
  std::int64_t list_of(std::int32_t own, std::int32_t group) const {
    switch (lists_) {
      case Lists::each: return group;
      case Lists::others:
        return group == own ? -1 : group - (own >= 0 && group > own);
      case Lists::together: return group == own ? -1 : 0;
    }
    throw_unknown("lists", static_cast<int>(lists_));
  }

 private:
  Lists lists_;
  std::int32_t count_;
  std::vector<std::int32_t> of_, of_row_;
};

}  // namespace fsknn
