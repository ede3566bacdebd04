#pragma once

// Each row's k nearest so far, offered to by all threads at once. Rows are
// meant by their places.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/buffer.hpp"
#include "core/numbers.hpp"
#include "core/select.hpp"
#include "cpu/nearest.hpp"

namespace fsknn {
namespace cpu {

/// A short list is a heap. A long one takes half as many again as it is to
/// hold, in any order, before it is cut: a place in a heap costs log k steps
/// that wait for each other.
class NeighbourLists {
 public:
  /// most: neighbours that a row may be offered, or more.
  NeighbourLists(std::int64_t num_rows, std::int64_t k, std::int64_t most)
      : k_(k),
        room_(list_room(k, most)),
        distance_(num_rows * room_),
        index_(num_rows * room_),
        size_(num_rows),
        limit_(new std::atomic<double>[static_cast<std::size_t>(num_rows)]),
        lock_(new std::atomic<bool>[static_cast<std::size_t>(num_rows)]) {
    for (std::int64_t i = 0; i < num_rows; ++i) {
      size_[i] = 0;
      limit_[static_cast<std::size_t>(i)].store(
          std::numeric_limits<double>::infinity(), std::memory_order_relaxed);
      lock_[static_cast<std::size_t>(i)].store(false,
                                               std::memory_order_relaxed);
    }
  }

  /// No neighbour of the row is farther than this.
  double limit(Place row) const {
    return limit_[static_cast<std::size_t>(row.value)].load(
        std::memory_order_relaxed);
  }
  /// Known from elsewhere: k points are at most this far. Before any offer.
  void set_limit(Place row, double distance) {
    limit_[static_cast<std::size_t>(row.value)].store(
        distance, std::memory_order_relaxed);
  }

  /// Takes a neighbour that is not beyond the limit, if it is still among the
  /// nearest. Returns whether the row's limit became lower.
  bool offer(Place row, double distance, PointId neighbour) {
    const Held held(lock_[static_cast<std::size_t>(row.value)]);
    if (is_long()) return append(row, distance, neighbour);
    NeighbourHeap list = heap(row);
    if (!list.offer(distance, neighbour)) return false;
    size_[row.value] = static_cast<std::int32_t>(list.size());
    return list.full() && lower_limit(row, list.farthest());
  }

  /// Sorts the row's list, once all were offered. Returns how many it has.
  std::int64_t sort(Place row) {
    if (!is_long()) {
      heap(row).sort();
      return size_[row.value];
    }
    if (size_[row.value] > k_) cut(row);
    sort_nearest(distances(row), indices(row), size_[row.value], some());
    return size_[row.value];
  }
  double* distances(Place row) { return distance_.data() + row.value * room_; }
  std::int32_t* indices(Place row) { return index_.data() + row.value * room_; }

 private:
  bool is_long() const { return k_ > kLongestHeap; }
  NeighbourHeap heap(Place row) {
    return NeighbourHeap(distances(row), indices(row), k_, size_[row.value]);
  }
  /// From when it first has k, the farthest of the k nearest that it was last
  /// cut to is the k-th entry.
  bool append(Place row, double distance, PointId neighbour) {
    double* const of_row = distances(row);
    std::int32_t* const index = indices(row);
    const std::int32_t at = size_[row.value];
    if (at >= k_ &&
        !nearer(distance, neighbour.value, of_row[k_ - 1], index[k_ - 1]))
      return false;
    of_row[at] = distance;
    index[at] = neighbour.value;
    size_[row.value] = at + 1;
    if (at + 1 != k_ && at + 1 != room_) return false;
    cut(row);
    return lower_limit(row, of_row[k_ - 1]);
  }
  void cut(Place row) {
    put_nearest_first(distances(row), indices(row), size_[row.value], k_,
                      some());
    size_[row.value] = static_cast<std::int32_t>(k_);
  }
  bool lower_limit(Place row, double farthest) {
    if (!(farthest < limit(row))) return false;
    set_limit(row, farthest);
    return true;
  }
  static std::vector<Offered>& some() {
    static thread_local std::vector<Offered> of_thread;
    return of_thread;
  }

  class Held {
   public:
    explicit Held(std::atomic<bool>& lock) : lock_(lock) {
      while (lock_.exchange(true, std::memory_order_acquire))
        std::this_thread::yield();
    }
    ~Held() { lock_.store(false, std::memory_order_release); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    std::atomic<bool>& lock_;
  };

  std::int64_t k_, room_;
  Buffer<double> distance_;
  Buffer<std::int32_t> index_;
  Buffer<std::int32_t> size_;
  std::unique_ptr<std::atomic<double>[]> limit_;
  std::unique_ptr<std::atomic<bool>[]> lock_;
};

}  // namespace cpu
}  // namespace fsknn
