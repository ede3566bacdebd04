#pragma once

// Each row's k nearest so far, offered to by all threads at once. Rows are
// meant by their places.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

#include "core/buffer.hpp"
#include "core/numbers.hpp"
#include "core/select.hpp"

namespace fsknn {
namespace cpu {

class NeighbourLists {
 public:
  NeighbourLists(std::int64_t num_rows, std::int64_t k)
      : k_(k),
        distance_(num_rows * k),
        index_(num_rows * k),
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
    NeighbourHeap list = heap(row);
    if (!list.offer(distance, neighbour)) return false;
    size_[row.value] = static_cast<std::int32_t>(list.size());
    if (!list.full() || !(list.farthest() < limit(row))) return false;
    set_limit(row, list.farthest());
    return true;
  }

  NeighbourHeap heap(Place row) {
    return NeighbourHeap(distances(row), indices(row), k_, size_[row.value]);
  }
  double* distances(Place row) { return distance_.data() + row.value * k_; }
  std::int32_t* indices(Place row) { return index_.data() + row.value * k_; }

 private:
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

  std::int64_t k_;
  Buffer<double> distance_;
  Buffer<std::int32_t> index_;
  Buffer<std::int32_t> size_;
  std::unique_ptr<std::atomic<double>[]> limit_;
  std::unique_ptr<std::atomic<bool>[]> lock_;
};

}  // namespace cpu
}  // namespace fsknn
