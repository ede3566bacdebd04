#pragma once

// Holds the results of a search of two blocks on the host: for each row a list
// of any length, as devices deliver them, one range of rows after another.

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/search/between.hpp"

namespace fsknn {
namespace cuda {

/// Used by one thread. Rows are those of the answer, and so are the numbers of
/// points.
class PairLists {
 public:
  explicit PairLists(const Between& between)
      : between_(between),
        first_(static_cast<std::size_t>(between.num_rows()), 0),
        count_(first_.size(), 0) {}

  /// Takes the part of a row's list, by (distance, index), that belongs to the
  /// answer. correlation: may be null.
  void take(std::int64_t row, std::int64_t size, const double* distance,
            const std::int32_t* points, const double* correlation) {
    const double limit = between_.limit(row);
    if (limit == -HUGE_VAL) size = 0;  // not even distances out of range
    while (size > 0 && !(distance[size - 1] <= limit)) --size;
    size = length_within_range(distance, size);
    const std::size_t at = static_cast<std::size_t>(row);
    first_[at] = static_cast<std::int64_t>(distance_.size());
    count_[at] = static_cast<std::int32_t>(size);
    distance_.insert(distance_.end(), distance, distance + size);
    point_.insert(point_.end(), points, points + size);
    if (correlation != nullptr)
      correlation_.insert(correlation_.end(), correlation, correlation + size);
  }

  /// Writes the answer, whose indices are those of all points, from 1.
  void write(const BlockRows& blocks, WithinRows& answer) const {
    answer.allocate(count_);
    for (std::size_t row = 0; row < count_.size(); ++row) {
      if (count_[row] == 0) continue;
      const WithinRows::Row to = answer.row(static_cast<std::int64_t>(row));
      for (std::int32_t e = 0; e < count_[row]; ++e) {
        const std::size_t from = static_cast<std::size_t>(first_[row] + e);
        to.index[e] = blocks.id_of(point_[from]).value + 1;
        to.distance[e] = distance_[from];
        if (to.correlation != nullptr)
          to.correlation[e] = correlation_.empty() ? 0.0 : correlation_[from];
      }
    }
  }

 private:
  const Between& between_;
  std::vector<std::int64_t> first_;
  WithinAnswer::Counts count_;
  std::vector<double> distance_, correlation_;
  std::vector<std::int32_t> point_;
};

}  // namespace cuda
}  // namespace fsknn
