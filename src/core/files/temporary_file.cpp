#include "core/files/temporary_file.hpp"

#include <cerrno>
#include <cstring>

#include "core/base/errors.hpp"
#include "core/files/durable.hpp"
#include "core/files/system.hpp"

namespace fsknn {
namespace {

[[noreturn]] void fail_disk(const std::string& what, int error) {
  throw DiskFailure(what + ": " + std::strerror(error), 0.0, 0.0);
}

}  // namespace

double bytes_free_in(const std::string& folder) {
  struct statvfs room;
  if (statvfs(folder.c_str(), &room) != 0)
    fail_disk("the folder for temporary files can't be used", errno);
  return static_cast<double>(room.f_bavail) *
         static_cast<double>(room.f_frsize);
}

TemporaryFile::TemporaryFile(const std::string& folder, double bytes) {
  const double free = bytes_free_in(folder);
  if (bytes > free)
    throw DiskFailure("too little room for a temporary file", bytes, free);
  const std::string path = folder + "/fsknn-" + random_word();
  number_ = open(path.c_str(),
                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (number_ < 0) fail_disk("a temporary file could not be made", errno);
  unlink(path.c_str());
}

TemporaryFile::~TemporaryFile() { close(number_); }

bool TemporaryFile::again(std::int64_t moved, bool writes) {
  if (moved < 0 && errno == EINTR) return true;
  if (moved < 0)
    fail_disk(writes ? "a temporary file could not be written"
                     : "a temporary file could not be read",
              errno);
  if (moved == 0) fail_disk("a temporary file has become too short", EIO);
  return false;
}

}  // namespace fsknn
