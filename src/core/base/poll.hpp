#pragma once

// How nested work notices a request to stop, without a parameter for it. The
// code that starts threads (run_pieces(), cuda::Workers) gives each of them a
// listener, and long loops call poll().

#include <chrono>

namespace fsknn {

/// Checks on one thread for a request to stop. listen() throws to stop the
/// work.
class Listener {
 public:
  virtual void listen() = 0;

 protected:
  ~Listener() = default;
};

/// Thrown on threads that stop because another one failed or was interrupted.
struct StoppedElsewhere {};

inline Listener*& listener_of_thread() {
  static thread_local Listener* listener = nullptr;
  return listener;
}

/// During its lifetime, poll() on this thread calls `listener` (null: none).
class Listening {
 public:
  explicit Listening(Listener* listener) : before_(listener_of_thread()) {
    listener_of_thread() = listener;
  }
  ~Listening() { listener_of_thread() = before_; }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  Listener* before_;
};

/// Must be called at least three times a second.
inline void poll() {
  if (Listener* const listener = listener_of_thread()) listener->listen();
}

/// Adds up the cost of loops, in approximate nanoseconds, and polls if it is
/// time to. For loops whose steps are too short for poll() itself.
inline void poll_after(double nanoseconds) {
  static thread_local double since = 0.0;
  since += nanoseconds;
  if (since < 2e7) return;
  since = 0.0;
  poll();
}

/// Whether a tenth of a second has passed since this was last true.
class Tenths {
 public:
  bool over() {
    const std::chrono::steady_clock::time_point now =
        std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return false;
    last_ = now;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point last_ =
      std::chrono::steady_clock::now();
};

}  // namespace fsknn
