#include "core/files/host_lock.hpp"

#include <cerrno>
#include <cstring>

#include "core/files/durable.hpp"
#include "core/files/system.hpp"

namespace fsknn {

// Without O_NONBLOCK, opening a pipe blocks.
HostLock::HostLock(const std::string& path)
    : file_(open(path.c_str(),
                 O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                 0600)) {
  if (file_ < 0) fail_file(path);
  while (!held_) {
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) {
      held_ = true;
    } else if (errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      const int error = errno;
      close(file_);
      fail_file(path, error);
    }
  }
}

HostLock::~HostLock() { close(file_); }

}  // namespace fsknn
