#include "core/files/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/poll.hpp"
#include "core/files/system.hpp"

namespace fsknn {
namespace {

/// The target of a path after following links; it may not exist.
std::string end_of_links(const std::string& path) {
  std::string at = path;
  std::vector<char> words(4096);
  for (int link = 0; link < 40; ++link) {
    const ssize_t size = readlink(at.c_str(), words.data(), words.size());
    if (size < 0) return at;
    const std::string next(words.data(), static_cast<std::size_t>(size));
    const std::size_t slash = at.rfind('/');
    const bool is_whole = next[0] == '/' || slash == std::string::npos;
    at.resize(is_whole ? 0 : slash + 1);
    at += next;
  }
  fail_file(path, ELOOP);
}

/// Whether the path is a name for an open file (as the target of /dev/stdout).
/// A new file under that name would not be the open one.
bool is_open_file(const std::string& path) {
  return path.compare(0, 6, "/proc/") == 0 ||
         path.compare(0, 8, "/dev/fd/") == 0;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  const std::string end = end_of_links(path);
  struct stat there;
  const bool is_there = stat_path(path.c_str(), &there) == 0;
  if (is_there &&
      (!S_ISREG(there.st_mode) || is_open_file(end) || is_open_file(path))) {
    number_ = open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (number_ < 0) fail_file(path);
    return;
  }
  if (is_there && access(path.c_str(), W_OK) != 0) fail_file(path);
  file_ = std::make_unique<NewFile>(end, 0666);
  if (!is_there) return;
  // Some file systems have no owners, and only root may change owners.
  (void)!chown(file_->part().c_str(), there.st_uid, there.st_gid);
  (void)!chmod(file_->part().c_str(), there.st_mode & 07777);
}

OutputFile::~OutputFile() {
  if (number_ >= 0) close(number_);
}

void OutputFile::write(const void* bytes, std::int64_t size) {
  if (file_) {
    file_->write(bytes, size);
    return;
  }
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const std::int64_t part = std::min(size, std::int64_t{1} << 16);
    const ssize_t done = ::write(number_, at, static_cast<std::size_t>(part));
    if (done < 0 && errno != EINTR) fail_file(path_);
    poll();
    if (done < 0) continue;
    at += done;
    size -= done;
  }
}

void OutputFile::finish() {
  if (file_) {
    file_->finish();
    return;
  }
  const int closing = number_;
  number_ = -1;
  if (close(closing) != 0 && errno != EINTR) fail_file(path_);
}

}  // namespace fsknn
