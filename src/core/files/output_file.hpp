#pragma once

// Files that users request.

#include <cstdint>
#include <memory>
#include <string>

#include "core/files/durable.hpp"

namespace fsknn {

/// A file that is written completely or not at all: an existing file is
/// unchanged until finish(). Links are followed, and the target is replaced by
/// a file with its permissions. A device or a pipe is written directly, because
/// it has no content to keep.
class OutputFile {
 public:
  /// Throws FileFailure, also if an existing file is not writable.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Calls poll(). Throws FileFailure, also at a limit on file sizes.
  void write(const void* bytes, std::int64_t size);
  /// Flushes the file to the disk, then renames it. Throws FileFailure.
  void finish();

 private:
  const std::string path_;
  std::unique_ptr<NewFile> file_;  ///< null: a device or a pipe
  int number_ = -1;                ///< descriptor of a device or a pipe
};

}  // namespace fsknn
