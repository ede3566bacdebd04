#pragma once

// The files that users ask for.

#include <cstdint>
#include <memory>
#include <string>

#include "core/files/durable.hpp"

namespace fsknn {

/// A file written all or nothing: what is under its name stays there, as it is,
/// until finish(). A link is followed, and the file that it leads to replaced,
/// with the permissions that this one had. A device or a pipe has nothing that
/// could be kept, and is written to.
class OutputFile {
 public:
  /// Throws FileFailure, also where the file that is there may not be written.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Hears poll(). Throws FileFailure, at a limit on the size of files too.
  void write(const void* bytes, std::int64_t size);
  /// To the disk, then under its name. Throws FileFailure.
  void finish();

 private:
  const std::string path_;
  std::unique_ptr<NewFile> file_;  ///< null: a device or a pipe
  int number_ = -1;                ///< of that
};

}  // namespace fsknn
