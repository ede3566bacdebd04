#pragma once

// Host threads beside a device: each piece of a copy is many small parts, and a
// piece may be worked on once it is released. Plain C++.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fsknn {
namespace cuda {

/// The thread that owns it releases pieces, in order, and waits for them, in
/// order; meanwhile it works as the others do.
class PieceTeam {
 public:
  /// work(piece, part): called once for each, from any thread, of pieces in
  /// order, parts 0 .. num_parts - 1 of each.
  using Work = std::function<void(std::int64_t piece, std::int64_t part)>;

  PieceTeam(std::int64_t num_pieces, std::int64_t num_parts, int num_threads,
            Work work)
      : num_parts_(num_parts),
        end_(num_pieces * num_parts),
        done_(static_cast<std::size_t>(num_pieces)),
        work_(std::move(work)) {
    try {
      for (int t = 1; t < num_threads; ++t)
        threads_.emplace_back([this] {
          int idle = 0;
          while (!stop_ && next_.load(std::memory_order_relaxed) < end_)
            idle = one_part() ? 0 : rest(idle);
        });
    } catch (const std::system_error&) {
      // No more threads are to be had: those that are here do it.
    }
  }
  PieceTeam(const PieceTeam&) = delete;
  PieceTeam& operator=(const PieceTeam&) = delete;
  ~PieceTeam() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }

  /// Pieces 0 .. count - 1 may be worked on.
  void release(std::int64_t count) {
    released_.store(count * num_parts_, std::memory_order_release);
  }

  /// Returns when the piece, which is released, is done. Throws what a thread
  /// threw.
  void finish(std::int64_t piece) {
    int idle = 0;
    while (done_[static_cast<std::size_t>(piece)].load(
               std::memory_order_acquire) < num_parts_) {
      if (stop_) break;
      idle = one_part() ? 0 : rest(idle);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// Returns whether there was a part to do.
  bool one_part() {
    std::int64_t at = next_.load(std::memory_order_relaxed);
    do {
      if (at >= end_ || at >= released_.load(std::memory_order_acquire))
        return false;
    } while (!next_.compare_exchange_weak(at, at + 1,
                                          std::memory_order_relaxed));
    const std::int64_t piece = at / num_parts_;
    try {
      work_(piece, at % num_parts_);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
    done_[static_cast<std::size_t>(piece)].fetch_add(1,
                                                     std::memory_order_release);
    return true;
  }

  /// A piece takes a tenth of a millisecond or so: waiting for one is mostly
  /// too short to fall asleep over.
  static int rest(int idle) {
    if (idle < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    return idle + 1;
  }

  const std::int64_t num_parts_, end_;
  std::atomic<std::int64_t> next_{0}, released_{0};
  std::vector<std::atomic<std::int64_t>> done_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
  const Work work_;
  std::vector<std::thread> threads_;
};

}  // namespace cuda
}  // namespace fsknn
