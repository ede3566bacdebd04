#pragma once

// Host threads beside a device: each piece of a copy is many small parts, and a
// piece may be worked on once it is released. Plain C++.

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

/// The thread that owns it begins a job of some pieces, releases them in order,
/// and waits for them in order; meanwhile it works as the others do. The others
/// stay for the next job.
class PieceTeam {
 public:
  /// work(piece, part): called once for each, from any thread, of pieces in
  /// order, parts 0 .. num_parts - 1 of each.
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
      // No more threads are to be had: those that are here do it.
    }
  }
  PieceTeam(const PieceTeam&) = delete;
  PieceTeam& operator=(const PieceTeam&) = delete;
  ~PieceTeam() {
    stop_all();
    for (std::thread& t : threads_) t.join();
  }

  /// Once all of the job before is finished.
  void begin(std::int64_t num_pieces) {
    num_pieces_ = num_pieces;
    base_ = next_;
    done_ = std::vector<std::atomic<std::int64_t>>(
        static_cast<std::size_t>(num_pieces));
  }

  /// Pieces 0 .. count - 1 may be worked on.
  void release(std::int64_t count) {
    if (count > num_pieces_) count = num_pieces_;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      released_ = base_ + count * num_parts_;
    }
    more_.notify_all();
  }

  /// Returns when the piece, which is released, is done. Throws what a thread
  /// threw.
  void finish(std::int64_t piece) {
    const std::atomic<std::int64_t>& done =
        done_[static_cast<std::size_t>(piece)];
    while (done < num_parts_ && !stop_)
      if (!one_part()) std::this_thread::yield();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// Returns whether there was a part to do.
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

  /// A piece takes a tenth of a millisecond or so: waiting for the next one is
  /// mostly too short to fall asleep over.
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
  // Parts are numbered on from job to job; those of this one from base_ on.
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
