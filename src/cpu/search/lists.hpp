#pragma once

// Each row's k nearest neighbours so far, to which all threads offer at once.
// Rows are numbered by their places.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/buffer.hpp"
#include "core/base/large_pages.hpp"
#include "core/base/numbers.hpp"
#include "core/base/select.hpp"
#include "cpu/search/nearest.hpp"

namespace fsknn {
namespace cpu {

/// A short list is sorted, so that its farthest neighbour is last. Insertion
/// costs a step for each farther neighbour. So a long list collects half as
/// many again as it keeps, in any order, before it is cut.
class NeighbourLists {
 public:
  /// most: an upper bound on the number of neighbours that a row may be
  /// offered.
  NeighbourLists(std::int64_t num_rows, std::int64_t k, std::int64_t most)
      : k_(k),
        room_(list_room(k, most)),
        distance_(num_rows * room_),
        index_(num_rows * room_),
        state_(new State[static_cast<std::size_t>(num_rows)]) {
    in_large_pages(distance_);
    in_large_pages(index_);
  }

  /// No neighbour of the row is farther than this.
  double limit(Place row) const {
    return state(row).limit.load(std::memory_order_relaxed);
  }
  /// Sets a limit known from elsewhere: k points are at most this far. Call it
  /// before any offer.
  void set_limit(Place row, double distance) {
    state(row).limit.store(distance, std::memory_order_relaxed);
  }

  /// Takes a neighbour that is not beyond the limit, if it is still among the
  /// nearest. Returns whether the row's limit became lower.
  bool offer(Place row, double distance, PointId neighbour) {
    const Offered one = {distance, neighbour.value};
    return offer_all(row, &one, &one + 1);
  }
  /// The same for several neighbours; those beyond the limit are ignored.
  bool offer_all(Place row, const Offered* first, const Offered* end) {
    State& of_row = state(row);
    const Held held(of_row.lock);
    const double limit = of_row.limit.load(std::memory_order_relaxed);
    double lower = limit;
    for (; first != end; ++first)
      if (!(first->distance > lower))
        lower = is_long() ? append(row, *first, lower)
                          : put_in_order(row, *first, lower);
    if (!(lower < limit)) return false;
    set_limit(row, lower);
    return true;
  }

  /// Whether the row has k neighbours, after all were offered.
  bool is_full(Place row) const { return state(row).size >= k_; }
  /// Removes the row's neighbours and its limit.
  void clear(Place row) {
    state(row).size = 0;
    set_limit(row, std::numeric_limits<double>::infinity());
  }

  /// Sorts the row's list after all neighbours were offered. Returns its
  /// length.
  std::int64_t sort(Place row) {
    std::int32_t& size = state(row).size;
    if (!is_long()) return size;
    if (size > k_) cut(row);
    sort_nearest(distances(row), indices(row), size, some());
    return size;
  }
  double* distances(Place row) { return distance_.data() + row.value * room_; }
  std::int32_t* indices(Place row) { return index_.data() + row.value * room_; }

 private:
  /// The state of one row, kept together for the cache.
  struct State {
    std::atomic<double> limit{std::numeric_limits<double>::infinity()};
    std::int32_t size = 0;
    std::atomic<bool> lock{false};
  };
  State& state(Place row) const {
    return state_[static_cast<std::size_t>(row.value)];
  }
  bool is_long() const { return k_ > kLongestInOrder; }

  /// Both functions return the limit, lowered where possible.
  double put_in_order(Place row, const Offered& offered, double limit) {
    double* const distance = distances(row);
    std::int32_t* const index = indices(row);
    std::int32_t& size = state(row).size;
    const bool is_full = size == k_;
    std::int64_t at = is_full ? k_ - 1 : size;
    if (is_full &&
        !nearer(offered.distance, offered.index, distance[at], index[at]))
      return limit;
    for (; at > 0 && nearer(offered.distance, offered.index, distance[at - 1],
                            index[at - 1]);
         --at) {
      distance[at] = distance[at - 1];
      index[at] = index[at - 1];
    }
    distance[at] = offered.distance;
    index[at] = offered.index;
    if (!is_full) ++size;
    return size == k_ ? std::min(limit, distance[k_ - 1]) : limit;
  }
  /// Without a limit, the first k neighbours give one. Later neighbours lower
  /// it only when the list is full and cut.
  double append(Place row, const Offered& offered, double limit) {
    std::int32_t& size = state(row).size;
    distances(row)[size] = offered.distance;
    indices(row)[size] = offered.index;
    ++size;
    if (size != room_ &&
        (size != k_ || limit < std::numeric_limits<double>::infinity()))
      return limit;
    cut(row);
    return std::min(limit, distances(row)[k_ - 1]);
  }
  void cut(Place row) {
    std::int32_t& size = state(row).size;
    put_nearest_first(distances(row), indices(row), size, k_, some());
    size = static_cast<std::int32_t>(k_);
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
  std::unique_ptr<State[]> state_;
};

}  // namespace cpu
}  // namespace fsknn
