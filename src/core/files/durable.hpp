#pragma once

// Files that are either complete or absent, even if the process or the machine
// stops. POSIX.

#include <cerrno>
#include <cstdint>
#include <string>

namespace fsknn {

/// An error of the system, and its file.
struct FileFailure {
  std::string path, words;
  int error;  ///< its errno; 0: an error of this package
};

/// Throws FileFailure with the system's message.
[[noreturn]] void fail_file(const std::string& path, int error = errno);

/// A file that is written under an unpredictable temporary name, which follows
/// no link, and renamed when it is complete. Readers of the name see either the
/// old file or all of the new one.
class NewFile {
 public:
  /// mode: permissions, as for open(). Throws FileFailure.
  explicit NewFile(const std::string& path, unsigned mode = 0600);
  /// Deletes the file unless it was renamed.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Calls poll(). Throws FileFailure.
  void write(const void* bytes, std::int64_t size);
  /// Flushes the file to the disk, then renames it. Throws FileFailure; the
  /// name then still has the old file.
  void finish();
  /// The same unless another file already has the name; returns whether this
  /// one has it now. Uses link(), so that exactly one of several processes, on
  /// several machines, is the first. Throws FileFailure.
  bool finish_first();

  /// The temporary path, for others that write to the file before it is
  /// finished.
  const std::string& part() const { return part_; }

 private:
  const std::string path_;
  std::string part_;
  int number_ = -1;
  bool named_ = false;
};

/// An existing regular file. Folders, pipes and devices are errors, because
/// reading them could block or never end. Throws FileFailure.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Its size in bytes when it was opened.
  std::int64_t size() const { return size_; }
  /// Reads the next bytes, and returns their number. Calls poll().
  std::int64_t read(void* bytes, std::int64_t size);
  /// Continues to read at this byte of the file.
  void go_to(std::int64_t byte);
  /// Reads exactly these bytes, from byte `start` on. Several threads may call
  /// it at once. Throws FileFailure, also if the file ends before.
  void read_at(std::int64_t start, void* bytes, std::int64_t size) const;

 private:
  const std::string path_;
  int number_ = -1;
  std::int64_t size_ = 0;
};

/// 16 hexadecimal digits that are unique in file names and unpredictable.
std::string random_word();

/// Completes a file that others wrote under a temporary name, as NewFile does:
/// flushes it to the disk, then renames it. Throws FileFailure; `path` is then
/// unchanged.
void name_whole(const std::string& part, const std::string& path);

/// Write and read the bytes of a file that does not outlive the process.
/// write_bytes() fails if the file exists; read_bytes() if it has fewer bytes.
/// Throw FileFailure.
void write_bytes(const std::string& path, const void* bytes, std::int64_t size);
void read_bytes(const std::string& path, void* bytes, std::int64_t size);

/// Links a file to a name unless another has it; returns whether it has the
/// name. The link count of the file decides, not the result of the call: over a
/// network a call may be repeated and fail after it succeeded. Throws
/// FileFailure if the file system has no links, or the folder is missing.
bool link_first(const std::string& from, const std::string& to);

}  // namespace fsknn
