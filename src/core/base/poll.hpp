#pragma once

// How work deep down hears that it is to stop, without being handed a way to
// ask: whoever starts threads (run_pieces(), cuda::Workers) makes each of them
// listen, and long loops call poll().

#include <chrono>

namespace fsknn {

/// One thread's ear. listen() throws to leave the work.
class Listener {
 public:
  virtual void listen() = 0;

 protected:
  ~Listener() = default;
};

/// Thrown on threads that stop since another one failed, or heard the user.
struct StoppedElsewhere {};

inline Listener*& listener_of_thread() {
  static thread_local Listener* listener = nullptr;
  return listener;
}

/// While it lives, poll() on this thread asks `listener` (null: nobody).
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

/// To be called often enough: three times a second or more.
inline void poll() {
  if (Listener* const listener = listener_of_thread()) listener->listen();
}

/// Adds up what loops cost, in about nanoseconds, and polls where it is time
/// to: for loops whose steps are too short for poll() itself.
inline void poll_after(double nanoseconds) {
  static thread_local double since = 0.0;
  since += nanoseconds;
  if (since < 2e7) return;
  since = 0.0;
  poll();
}

/// Whether a tenth of a second is over since it last was.
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
