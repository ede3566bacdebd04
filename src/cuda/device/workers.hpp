#pragma once

// One host thread for each device (Arefin 2012), with the state that the
// threads share: progress, and whether to stop.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "core/base/errors.hpp"
#include "core/base/poll.hpp"
#include "core/base/progress.hpp"
#include "core/base/team.hpp"

namespace fsknn {
namespace cuda {

class Workers {
 public:
  /// progress may be null. num_pieces: the number of pieces over all workers.
  Workers(Progress* progress, std::int64_t num_pieces)
      : progress_(progress), num_pieces_(num_pieces) {}

  /// Runs work(0) .. work(count - 1), each on its own host thread if there are
  /// enough; the calling thread is one of them. Waits for all, then throws the
  /// first exception. The loss of a device comes before all others, because it
  /// may have caused them.
  template <class Work>
  void run(int count, Work work) {
    std::atomic<int> unfinished{count};
    count_ = count;
    caller_ = std::this_thread::get_id();
    std::mutex failing;
    std::exception_ptr failure;
    bool is_loss = false;
    const auto keep = [&](bool loss) {
      const std::lock_guard<std::mutex> held(failing);
      if (!failure || (loss && !is_loss)) {
        failure = std::current_exception();
        is_loss = loss;
      }
      stop_ = true;
    };
    const auto guarded = [&](auto step) {
      try {
        Ear ear(*this);
        const Listening listening(&ear);
        step();
      } catch (const StoppedElsewhere&) {
      } catch (const CudaFailure& e) {
        keep(e.sticky);
      } catch (...) {
        keep(false);
      }
    };
    run_team(count, [&](Seat seat) {
      together_ = seat.size >= count;
      for (int w = seat.number; w < count; w += seat.size) {
        guarded([&] {
          if (!stop_) work(w);
        });
        --unfinished;
      }
      // The first thread polls for interrupts until all are done.
      if (seat.number == 0)
        guarded([&] {
          while (unfinished > 0) {
            listen();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          }
        });
    });
    if (failure) std::rethrow_exception(failure);
  }

  /// Each worker calls this after one or several pieces. Returns whether to go
  /// on; throws Interrupted on the thread that polls.
  bool go_on(std::int64_t pieces = 1) {
    pieces_done_ += pieces;
    if (hears_the_user()) listen();
    return !stop_;
  }

  /// Each worker calls this after it has chosen its filter, which is the same
  /// for all. Throws Interrupted if the caller wanted only the choice.
  void tell_chosen(FilterNumbers numbers, bool pruned = false) {
    if (hears_the_user()) fsknn::tell_chosen(progress_, {numbers, pruned});
  }

  /// The number of `count` workers that would run at the same time.
  static int at_once(int count) {
    int threads = 1;
    run_team(count, [&](Seat seat) {
      if (seat.number == 0) threads = seat.size;
    });
    return threads;
  }

  /// Waits until all workers arrive; each must call it equally often. Returns
  /// whether to go on. It returns false after a worker has failed or the user
  /// has interrupted, so that no worker waits for one that will not arrive. All
  /// workers must run at the same time.
  bool meet() {
    if (count_ > 1 && !together_)
      throw std::logic_error("workers that do not work at once cannot meet");
    const std::int64_t meeting = meetings_;
    if (++arrived_ == count_) {
      arrived_ = 0;
      ++meetings_;
    }
    while (meetings_ == meeting) {
      if (stop_) return false;
      if (hears_the_user()) listen();
      std::this_thread::yield();
    }
    return !stop_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// poll() on a worker's thread.
  class Ear final : public Listener {
   public:
    explicit Ear(Workers& workers) : workers_(workers) {}
    void listen() override {
      if (workers_.stop_) throw StoppedElsewhere();
      if (workers_.hears_the_user()) workers_.listen();
    }

   private:
    Workers& workers_;
  };

  /// Whether this is the thread that called run(): only it may call R.
  bool hears_the_user() const { return std::this_thread::get_id() == caller_; }

  /// Call it only on that thread.
  void listen() {
    if (progress_ == nullptr) return;
    const Clock::time_point now = Clock::now();
    if (now - given_ < std::chrono::milliseconds(100)) return;
    given_ = now;
    const double done =
        static_cast<double>(pieces_done_) / static_cast<double>(num_pieces_);
    if (!progress_->report(done < 1.0 ? done : 1.0)) throw Interrupted();
  }

  Progress* progress_;
  std::int64_t num_pieces_;
  std::atomic<std::int64_t> pieces_done_{0};
  std::atomic<bool> stop_{false};
  int count_ = 1;
  std::thread::id caller_;
  std::atomic<bool> together_{false};
  std::atomic<int> arrived_{0};
  std::atomic<std::int64_t> meetings_{0};
  Clock::time_point given_ = Clock::now();
};

}  // namespace cuda
}  // namespace fsknn
