#pragma once

// Files that are whole or not there, whatever ends the process or the machine,
// and locks that end with their process. POSIX.

#include <cstdint>
#include <string>
#include <vector>

namespace fsknn {

/// What the system said, and of which file.
struct FileFailure {
  std::string path, words;
};

/// Writes bytes to a file beside `path`, to the disk, and gives it the name
/// `path` then. Throws FileFailure.
void write_durably(const std::string& path, const void* bytes,
                   std::int64_t size);

/// The bytes of a file that is not meant to outlive the process, and back into
/// memory: so many as it holds. Throw FileFailure.
void write_bytes(const std::string& path, const void* bytes, std::int64_t size);
void read_bytes(const std::string& path, void* bytes, std::int64_t size);

/// write_durably() with a head that says what they are: how many, and their
/// digest.
void write_sealed(const std::string& path, const void* bytes,
                  std::int64_t size);

/// What write_sealed() wrote. Returns whether the file is as it was written;
/// false too where there is none. Throws FileFailure where it can't be read.
bool read_sealed(const std::string& path, std::vector<char>& bytes);

/// A lock on a file (which is made where it is missing) that no other process
/// can have at the same time; gone with the process. Not inherited by a fork.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return held_; }
  /// Who has it, where it is not ours: a process's number; 0 where not known.
  long owner() const { return owner_; }

 private:
  int file_ = -1;
  bool held_ = false;
  long owner_ = 0;
};

}  // namespace fsknn
