#pragma once

// Stage "select": the k smallest in the total order by (distance, index).

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/numbers.hpp"

namespace fsknn {

constexpr bool nearer(double distance_a, std::int32_t index_a,
                      double distance_b, std::int32_t index_b) {
  return distance_a < distance_b ||
         (distance_a == distance_b && index_a < index_b);
}

/// Longer lists on the CPU are not kept in order.
constexpr std::int64_t kLongestInOrder = 64;

/// The room of a list of k before it is cut, if at most `most` neighbours are
/// offered. It exceeds k for lists that are cut.
inline std::int64_t list_room(std::int64_t k, std::int64_t most) {
  return k > kLongestInOrder ? std::min(k + k / 2, std::max(k + 1, most)) : k;
}

/// A heap of k neighbours with the farthest on top (the paper's Maxk). The
/// caller owns the memory: k distances and k indices.
class NeighbourHeap {
 public:
  NeighbourHeap(double* distance, std::int32_t* index, std::int64_t k,
                std::int64_t size)
      : distance_(distance), index_(index), k_(k), size_(size) {}

  std::int64_t size() const { return size_; }
  bool full() const { return size_ == k_; }
  double farthest() const { return distance_[0]; }

  /// Adds the neighbour if it is among the k nearest so far. Returns whether it
  /// did.
  bool offer(double distance, PointId neighbour) {
    const std::int32_t index = neighbour.value;
    if (size_ < k_) {
      lift(size_++, distance, index);
      return true;
    }
    if (!nearer(distance, index, distance_[0], index_[0])) return false;
    sink(0, size_, distance, index);
    return true;
  }

  /// Sorts by (distance, index); afterwards this is not a heap.
  void sort() {
    for (std::int64_t last = size_ - 1; last > 0; --last) {
      const double d = distance_[last];
      const std::int32_t i = index_[last];
      distance_[last] = distance_[0];
      index_[last] = index_[0];
      sink(0, last, d, i);
    }
  }

 private:
  void lift(std::int64_t at, double distance, std::int32_t index) {
    while (at > 0) {
      const std::int64_t parent = (at - 1) / 2;
      if (!nearer(distance_[parent], index_[parent], distance, index)) break;
      distance_[at] = distance_[parent];
      index_[at] = index_[parent];
      at = parent;
    }
    distance_[at] = distance;
    index_[at] = index;
  }
  void sink(std::int64_t at, std::int64_t size, double distance,
            std::int32_t index) {
    for (;;) {
      std::int64_t child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && nearer(distance_[child], index_[child],
                                     distance_[child + 1], index_[child + 1]))
        ++child;
      if (!nearer(distance, index, distance_[child], index_[child])) break;
      distance_[at] = distance_[child];
      index_[at] = index_[child];
      at = child;
    }
    distance_[at] = distance;
    index_[at] = index;
  }

  double* distance_;
  std::int32_t* index_;
  std::int64_t k_;
  std::int64_t size_;
};

}  // namespace fsknn
