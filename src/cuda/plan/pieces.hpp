#pragma once

// Host threads that serve a device. Each piece of a copy has many small parts,
// and threads process a piece once it is released. Plain C++.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fsknn {
namespace cuda {

/// The owning thread begins a job of several pieces, releases them in order,
/// and waits for them in order. While it waits it works like the others, which
/// stay for the next job.
class PieceTeam {
 public:
  /// work(piece, part) is called once for each part, 0 .. num_parts - 1, of
  /// each piece, from any thread; pieces come in order.
  using Work = std::function<void(std::int64_t piece, std::int64_t part)>;

  PieceTeam(std::int64_t num_parts, int num_threads, Work work)
      : num_parts_(num_parts), work_(std::move(work)) {
    try {
      for (int t = 1; t < num_threads; ++t)
        threads_.emplace_back([this] {
          int idle = 0;
          while (!stop_) idle = one_part() ? 0 : rest(idle);
        });
    } catch (const std::system_error&) {
      // If no more threads can be started, the existing ones do the work.
    }
  }
  PieceTeam(const PieceTeam&) = delete;
  PieceTeam& operator=(const PieceTeam&) = delete;
  ~PieceTeam() {
    stop_all();
    for (std::thread& t : threads_) t.join();
  }

  /// Call it after the last job has finished.
  void begin(std::int64_t num_pieces) {
    num_pieces_ = num_pieces;
    base_ = next_;
    done_ = std::vector<std::atomic<std::int64_t>>(
        static_cast<std::size_t>(num_pieces));
  }

  /// Lets threads process pieces 0 .. count - 1.
  void release(std::int64_t count) {
    if (count > num_pieces_) count = num_pieces_;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      released_ = base_ + count * num_parts_;
    }
    more_.notify_all();
  }

  /// Returns when the piece, which must be released, is done. Rethrows what a
  /// thread threw.
  void finish(std::int64_t piece) {
    const std::atomic<std::int64_t>& done =
        done_[static_cast<std::size_t>(piece)];
    while (done < num_parts_ && !stop_)
      if (!one_part()) std::this_thread::yield();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// Returns whether there was a part to process.
  bool one_part() {
    std::int64_t at = next_;
    do {
      if (at >= released_) return false;
    } while (!next_.compare_exchange_weak(at, at + 1));
    at -= base_;
    const std::int64_t piece = at / num_parts_;
    try {
      work_(piece, at % num_parts_);
    } catch (...) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      stop_all();
    }
    ++done_[static_cast<std::size_t>(piece)];
    return true;
  }

  void stop_all() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    more_.notify_all();
  }

  /// A piece takes about a tenth of a millisecond: the wait for the next one is
  /// mostly too short for a thread to sleep.
  int rest(int idle) {
    if (idle < 500) {
      std::this_thread::yield();
      return idle + 1;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    more_.wait(lock, [this] { return stop_ || next_ < released_; });
    return 0;
  }

  const std::int64_t num_parts_;
  const Work work_;
  // Parts are numbered across jobs; those of this job start at base_.
  std::int64_t base_ = 0, num_pieces_ = 0;
  std::atomic<std::int64_t> next_{0}, released_{0};
  std::vector<std::atomic<std::int64_t>> done_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable more_;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace cuda
}  // namespace fsknn
