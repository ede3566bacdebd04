#pragma once

// Files that are whole or not there, whatever ends the process or the machine.
// POSIX.

#include <cerrno>
#include <cstdint>
#include <string>

namespace fsknn {

/// What the system said, and of which file.
struct FileFailure {
  std::string path, words;
  int error;  ///< its errno; 0: it is ours
};

/// Throws FileFailure with the system's words.
[[noreturn]] void fail_file(const std::string& path, int error = errno);

/// A file that is written beside its name, under one that nobody can foretell
/// and that follows no link, and gets its name when it is whole. Whoever reads
/// that name finds what was there before, or all of the new one.
class NewFile {
 public:
  /// mode: who may read and write it, as open() takes it. Throws FileFailure.
  explicit NewFile(const std::string& path, unsigned mode = 0600);
  /// Takes the file away unless it got its name.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Hears poll(). Throws FileFailure.
  void write(const void* bytes, std::int64_t size);
  /// To the disk, then under its name. Throws FileFailure; the name is as it
  /// was then.
  void finish();
  /// The same where no other file has the name yet: gives whether it is this
  /// one's now. By link(), so that of several processes, on several machines,
  /// exactly one is the first. Throws FileFailure.
  bool finish_first();

  /// Where it is written, for others that write to it before it is finished.
  const std::string& part() const { return part_; }

 private:
  const std::string path_;
  std::string part_;
  int number_ = -1;
  bool named_ = false;
};

/// A file that is there: no folder, pipe or device, which could be waited for
/// and have no end. Throws FileFailure.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Bytes, when it was opened.
  std::int64_t size() const { return size_; }
  /// The next bytes; returns how many there were. Hears poll().
  std::int64_t read(void* bytes, std::int64_t size);
  /// What is read next: bytes from the file's beginning.
  void go_to(std::int64_t byte);

 private:
  const std::string path_;
  int number_ = -1;
  std::int64_t size_ = 0;
};

/// 16 hexadecimal digits that no other file has in its name, and nobody can
/// guess.
std::string random_word();

/// A file that others wrote beside its name, as a NewFile is: to the disk, then
/// under its name. Throws FileFailure; it is as it was then.
void name_whole(const std::string& part, const std::string& path);

/// The bytes of a file that is not meant to outlive the process, which must not
/// be there yet, and back into memory: so many as it holds. Throw FileFailure.
void write_bytes(const std::string& path, const void* bytes, std::int64_t size);
void read_bytes(const std::string& path, void* bytes, std::int64_t size);

/// Links a file to a name, where no other has it: gives whether it has. What
/// the call says is not believed where the file itself says otherwise: over a
/// network it may be tried twice, and fail after it succeeded. Throws
/// FileFailure where there are no links, or no folder.
bool link_first(const std::string& from, const std::string& to);

}  // namespace fsknn
