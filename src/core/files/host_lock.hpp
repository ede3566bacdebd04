#pragma once

// Locks among the processes of one machine. POSIX.

#include <string>

namespace fsknn {

/// A lock on a file of this machine (no network's), which is made where it is
/// missing. The system gives it back when the process ends, in whatever way.
class HostLock {
 public:
  /// Does not wait: see held(). Throws FileFailure.
  explicit HostLock(const std::string& path);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  /// False where another one has it, of this process or another.
  bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

}  // namespace fsknn
