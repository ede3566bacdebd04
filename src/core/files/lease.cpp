#include "core/files/lease.hpp"

#include <signal.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/files/durable.hpp"
#include "core/files/system.hpp"

namespace fsknn {
namespace {

constexpr int kCountDigits = 20;

/// During its lifetime, new threads block all signals, so that the main thread
/// receives them.
class SignalsBlocked {
 public:
#ifdef _WIN32
  SignalsBlocked() {}
#else
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
#endif
};

bool write_all(int file, const std::string& bytes, off_t at) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t now = pwrite(file, bytes.data() + done, bytes.size() - done,
                               at + static_cast<off_t>(done));
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return false;
    done += static_cast<std::size_t>(now);
  }
  return true;
}

}  // namespace

/// The counting thread, and the request to stop it.
struct Lease::Beat {
  bool over = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
};

Lease::Lease(const std::string& own, const std::string& claim,
             const std::string& words, double seconds)
    : own_(own), claim_(claim), process_(static_cast<long>(getpid())) {
  file_ = open(own.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
               0600);
  if (file_ < 0) fail_file(own, errno);
  try {
    if (!write_count() || !write_all(file_, words, kCountDigits + 1))
      fail_file(own, errno);
    held_ = link_first(own, claim);
  } catch (const FileFailure& failure) {
    // Another process cleaned up the folder and deleted our file as that of a
    // dead worker. The claim is not held; this is not an error.
    const bool swept =
        failure.error == ENOENT && access(own.c_str(), F_OK) != 0;
    drop();
    if (!swept) throw;
  } catch (...) {
    drop();
    throw;
  }
  if (!held_) {
    drop();
    return;
  }
  const SignalsBlocked blocked;
  const std::chrono::duration<double> interval(seconds);
  try {
    beat_ = std::make_unique<Beat>();
    beat_->thread = std::thread([this, interval] {
      Beat& beat = *beat_;
      std::unique_lock<std::mutex> lock(beat.mutex);
      while (
          !beat.changed.wait_for(lock, interval, [&beat] { return beat.over; }))
        write_count();
    });
  } catch (...) {
    drop();
    throw;
  }
}

Lease::~Lease() {
  if (static_cast<long>(getpid()) != process_) {
    // This is a fork. The beat must not be destroyed: destroying a condition
    // variable waits for the threads that wait on it, and a fork does not have
    // that thread.
    static_cast<void>(beat_.release());
    if (file_ >= 0) close(file_);
    return;
  }
  if (beat_ != nullptr) {
    {
      const std::lock_guard<std::mutex> lock(beat_->mutex);
      beat_->over = true;
    }
    beat_->changed.notify_all();
    beat_->thread.join();
  }
  drop();
}

void Lease::drop() {
  if (file_ < 0) return;
  close(file_);
  file_ = -1;
  if (held_) unlink(claim_.c_str());
  unlink(own_.c_str());
}

bool Lease::write_count() {
  char digits[kCountDigits + 2];
  std::snprintf(digits, sizeof digits, "%0*llu\n", kCountDigits, ++count_);
  return write_all(file_, digits, 0) && fsync(file_) == 0;
}

}  // namespace fsknn
