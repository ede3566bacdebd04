#pragma once

// Files for what does not fit in memory. POSIX.

#include <cstdint>
#include <string>

namespace fsknn {

/// Bytes free in a folder, for this user. Throws DiskFailure.
double bytes_free_in(const std::string& folder);

/// A file without a name: it is gone when it is closed, or when the process
/// ends in whatever way.
class TemporaryFile {
 public:
  /// Throws DiskFailure, also where the folder has too little room for `bytes`.
  TemporaryFile(const std::string& folder, double bytes);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// The system's number of it.
  int number() const { return number_; }
  /// Whether a call of the system is to be made again; else it moved that many
  /// bytes. Throws DiskFailure where it failed.
  static bool again(std::int64_t moved, bool writes);

 private:
  int number_ = -1;
};

}  // namespace fsknn
