#pragma once

// Files for data that do not fit in memory. POSIX.

#include <cstdint>
#include <string>

namespace fsknn {

/// Free bytes in a folder, for this user. Throws DiskFailure.
double bytes_free_in(const std::string& folder);

/// A file without a name: the system deletes it when it is closed, or when the
/// process ends in any way.
class TemporaryFile {
 public:
  /// Throws DiskFailure, also if the folder has fewer than `bytes` free.
  TemporaryFile(const std::string& folder, double bytes);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// Its file descriptor.
  int number() const { return number_; }
  /// Whether a system call must be repeated; if not, it moved that many bytes.
  /// Throws DiskFailure if it failed.
  static bool again(std::int64_t moved, bool writes);

 private:
  int number_ = -1;
};

}  // namespace fsknn
