#pragma once

// Work in pieces, for all threads of a process.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base/errors.hpp"
#include "core/base/poll.hpp"
#include "core/base/progress.hpp"
#include "core/base/team.hpp"

namespace fsknn {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The number of threads worth starting for that many operations. Waking and
/// joining a thread costs more than a few hundred microseconds of work on a
/// busy machine.
inline int useful_threads(int asked, double operations) {
  constexpr double operations_per_thread = 1e6;
  const double most = 1.0 + operations / operations_per_thread;
  return asked < most ? asked : static_cast<int>(most);
}

/// The range of the whole work, as shares of 1, that some pieces report.
struct ProgressRange {
  Progress* progress = nullptr;  ///< may be null
  double from = 0.0, to = 0.0;
};

/// How each thread of run_pieces() notices a request to stop.
class PiecesListener final : public Listener {
 public:
  /// The first thread reports its share to the progress, which may stop the
  /// work. Without a progress it asks its previous listener (may be null). The
  /// others check `stop`.
  PiecesListener(ProgressRange progress_range, bool first, Listener* before,
                 const std::atomic<bool>& stop)
      : progress_range_(progress_range),
        first_(first),
        before_(before),
        stop_(stop) {}
  bool asks() const {
    return first_ &&
           (progress_range_.progress != nullptr || before_ != nullptr);
  }
  void set_share(double share) {
    at_ = progress_range_.from +
          (progress_range_.to - progress_range_.from) * share;
  }
  void listen() override {
    if (stop_.load(std::memory_order_relaxed)) throw StoppedElsewhere();
    if (!first_) return;
    if (progress_range_.progress == nullptr) {
      if (before_ != nullptr) before_->listen();
    } else if (tenths_.over() && !progress_range_.progress->report(at_)) {
      throw Interrupted();
    }
  }

 private:
  const ProgressRange progress_range_;
  const bool first_;
  Listener* const before_;
  const std::atomic<bool>& stop_;
  double at_ = progress_range_.from;
  Tenths tenths_;
};

/// Each thread makes a worker and calls work(worker, piece) for the numbers of
/// pieces, in order, until none remains. Between pieces, and when a piece calls
/// poll(), the first thread reports progress and asks whether to go on. At its
/// end a thread calls merge(worker), one thread at a time, unless a thread
/// failed, because the results are then discarded. Joins all threads, then
/// rethrows one of their exceptions. Workers are never moved.
template <class MakeWorker, class Work, class Merge>
void run_pieces(std::int64_t num_pieces, int num_threads,
                ProgressRange progress_range, MakeWorker make_worker, Work work,
                Merge merge) {
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> stop{false};
  std::atomic<int> others_at_work{0};
  std::exception_ptr failure;
  std::mutex merging, failing;
  num_threads =
      static_cast<int>(std::min<std::int64_t>(num_threads, num_pieces));
  run_team(num_threads, [&](Seat seat) {
    const bool first = seat.number == 0;
    // Each other thread subtracts 1, before or after the first one adds.
    if (first) others_at_work += seat.size - 1;
    PiecesListener listener(progress_range, first, listener_of_thread(), stop);
    const Listening listening(&listener);
    const auto guarded = [&](auto step) {
      try {
        step();
      } catch (const StoppedElsewhere&) {
      } catch (...) {
        const std::lock_guard<std::mutex> held(failing);
        if (!failure) failure = std::current_exception();
        stop = true;
      }
    };
    guarded([&] {
      auto worker = make_worker();
      while (!stop.load(std::memory_order_relaxed)) {
        const std::int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= num_pieces) break;
        work(worker, piece);
        listener.set_share(static_cast<double>(piece + 1) /
                           static_cast<double>(num_pieces));
        if (listener.asks()) listener.listen();
      }
      if (stop.load(std::memory_order_relaxed)) return;
      const std::lock_guard<std::mutex> held(merging);
      merge(worker);
    });
    if (!first) --others_at_work;
    // The last pieces of the other threads may take long.
    if (listener.asks())
      guarded([&] {
        for (int idle = 0; others_at_work > 0; ++idle) {
          if (idle < 1000)
            std::this_thread::yield();
          else
            std::this_thread::sleep_for(std::chrono::microseconds(100));
          listener.listen();
        }
      });
  });
  if (failure) std::rethrow_exception(failure);
}

/// The same for workers that are called with the number of a piece, and have
/// nothing to merge.
template <class MakeWorker>
void run_pieces(std::int64_t num_pieces, int num_threads,
                ProgressRange progress_range, MakeWorker make_worker) {
  run_pieces(
      num_pieces, num_threads, progress_range, make_worker,
      [](auto& worker, std::int64_t piece) { worker(piece); }, [](auto&) {});
}

}  // namespace fsknn
