#include "core/temporary_file.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/errors.hpp"

namespace fsknn {
namespace {

// What one call moves: some systems refuse 2^31 bytes.
constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 30;

[[noreturn]] void fail(const std::string& what, int error) {
  throw DiskFailure(what + ": " + std::strerror(error), 0.0, 0.0);
}

}  // namespace

double bytes_free_in(const std::string& folder) {
  struct statvfs room;
  if (statvfs(folder.c_str(), &room) != 0)
    fail("the folder for temporary files can't be used", errno);
  return static_cast<double>(room.f_bavail) *
         static_cast<double>(room.f_frsize);
}

TemporaryFile::TemporaryFile(const std::string& folder, double bytes) {
  const double free = bytes_free_in(folder);
  if (bytes > free)
    throw DiskFailure("too little room for a temporary file", bytes, free);
  std::string path = folder + "/fsknn-XXXXXX";
  number_ = mkstemp(path.data());
  if (number_ < 0) fail("a temporary file could not be made", errno);
  fcntl(number_, F_SETFD, FD_CLOEXEC);
  unlink(path.c_str());
}

TemporaryFile::~TemporaryFile() { close(number_); }

bool TemporaryFile::again(std::int64_t moved, bool writes) {
  if (moved < 0 && errno == EINTR) return true;
  if (moved < 0)
    fail(writes ? "a temporary file could not be written"
                : "a temporary file could not be read",
         errno);
  if (moved == 0) fail("a temporary file has become too short", EIO);
  return false;
}

void TemporaryFile::write(std::int64_t at, const void* bytes,
                          std::int64_t size) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t moved =
        pwrite(number_, from,
               static_cast<std::size_t>(std::min(size, kMostAtOnce)), at);
    if (again(moved, true)) continue;
    from += moved;
    at += moved;
    size -= moved;
  }
}

void TemporaryFile::read(std::int64_t at, void* bytes,
                         std::int64_t size) const {
  char* to = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t moved = pread(
        number_, to, static_cast<std::size_t>(std::min(size, kMostAtOnce)), at);
    if (again(moved, false)) continue;
    to += moved;
    at += moved;
    size -= moved;
  }
}

}  // namespace fsknn
