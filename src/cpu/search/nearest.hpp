#pragma once

// Selects the k nearest of many by (distance, index), in time linear in their
// number. It sorts distances into cells of equal width and compares only within
// a cell.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/select.hpp"

namespace fsknn {
namespace cpu {

/// A neighbour and its distance.
struct Offered {
  double distance;
  std::int32_t index;
  bool operator<(const Offered& other) const {
    return nearer(distance, index, other.distance, other.index);
  }
};

/// Maps a distance to a cell. The map is monotone: a larger distance is never
/// in a nearer cell.
class DistanceCells {
 public:
  static constexpr int kMost = 1024;

  DistanceCells(const double* distance, std::int64_t size)
      : count_(static_cast<int>(std::min<std::int64_t>(size, kMost))),
        lowest_(distance[0]) {
    double highest = lowest_;
    for (std::int64_t i = 1; i < size; ++i) {
      lowest_ = distance[i] < lowest_ ? distance[i] : lowest_;
      highest = distance[i] > highest ? distance[i] : highest;
    }
    const double width = highest - lowest_;
    by_ = width > 0.0 && width < HUGE_VAL ? count_ / width : 0.0;
  }
  int count() const { return count_; }
  int operator()(double distance) const {
    const double at = (distance - lowest_) * by_;
    // A NaN, which an infinity causes, goes to the last cell: then it is the
    // farthest, or all distances go there.
    return at < count_ - 1 ? static_cast<int>(at) : count_ - 1;
  }

 private:
  int count_;
  double lowest_, by_;
};

/// Puts the k nearest first, the farthest of these at k - 1, and the others in
/// any order. 0 < k <= size.
inline void put_nearest_first(double* distance, std::int32_t* index,
                              std::int64_t size, std::int64_t k,
                              std::vector<Offered>& some) {
  const DistanceCells cell_of(distance, size);
  std::int32_t count[DistanceCells::kMost];
  std::fill_n(count, cell_of.count(), 0);
  for (std::int64_t i = 0; i < size; ++i) ++count[cell_of(distance[i])];
  int last = 0;  // the cell of the k-th
  for (std::int64_t before = 0; before + count[last] < k; ++last)
    before += count[last];
  some.clear();
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const int cell = cell_of(distance[i]);
    if (cell == last) some.push_back({distance[i], index[i]});
    if (cell >= last) continue;
    distance[kept] = distance[i];
    index[kept++] = index[i];
  }
  std::nth_element(some.begin(), some.begin() + (k - kept - 1), some.end());
  for (auto it = some.begin(); kept < k; ++it, ++kept) {
    distance[kept] = it->distance;
    index[kept] = it->index;
  }
}

/// Sorts by (distance, index).
inline void sort_nearest(double* distance, std::int32_t* index,
                         std::int64_t size, std::vector<Offered>& some) {
  if (size == 0) return;
  const DistanceCells cell_of(distance, size);
  std::int32_t end[DistanceCells::kMost];
  std::fill_n(end, cell_of.count(), 0);
  for (std::int64_t i = 0; i < size; ++i) ++end[cell_of(distance[i])];
  std::int32_t first = 0;
  for (int cell = 0; cell < cell_of.count(); ++cell) {
    const std::int32_t size_of_cell = end[cell];
    end[cell] = first;
    first += size_of_cell;
  }
  some.resize(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i)
    some[static_cast<std::size_t>(end[cell_of(distance[i])]++)] = {distance[i],
                                                                   index[i]};
  first = 0;
  for (int cell = 0; cell < cell_of.count(); ++cell) {
    if (end[cell] - first > 1)
      std::sort(some.begin() + first, some.begin() + end[cell]);
    first = end[cell];
  }
  for (std::int64_t i = 0; i < size; ++i) {
    distance[i] = some[static_cast<std::size_t>(i)].distance;
    index[i] = some[static_cast<std::size_t>(i)].index;
  }
}

}  // namespace cpu
}  // namespace fsknn
