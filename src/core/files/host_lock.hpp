#pragma once

// Locks between the processes of one machine. POSIX.

#include <string>

namespace fsknn {

/// A lock on a file of this machine (not of a network), which is created if
/// missing. The system releases it when the process ends, in any way.
class HostLock {
 public:
  /// Does not wait: see held(). Throws FileFailure.
  explicit HostLock(const std::string& path);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  /// False if another holder has it, in this process or another.
  bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

}  // namespace fsknn
