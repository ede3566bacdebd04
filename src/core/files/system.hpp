#pragma once

// The calls of POSIX for files. Windows has functions of the same names here,
// which accept long paths in UTF-8 and let others rename and delete open files.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef _WIN32

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace fsknn {

static_assert(sizeof(off_t) == 8, "compile with -D_FILE_OFFSET_BITS=64");

// Windows has neither links that open() follows nor terminals or pipes that it
// waits for.
inline constexpr int O_CLOEXEC = _O_NOINHERIT;
inline constexpr int O_NOFOLLOW = 0;
inline constexpr int O_NONBLOCK = 0;
inline constexpr int O_NOCTTY = 0;
inline constexpr int LOCK_EX = 1;
inline constexpr int LOCK_NB = 2;

// No file system of Windows has it.
inline constexpr int ESTALE = -1;

struct iovec {
  void* iov_base;
  std::size_t iov_len;
};

struct statvfs {
  std::uint64_t f_bavail, f_frsize;
};

int open(const char* path, int flags, int mode = 0);
/// As stat(), whose name is a macro.
int stat_path(const char* path, struct stat* facts);
int access(const char* path, int mode);
int link(const char* from, const char* to);
int rename(const char* from, const char* to);
int unlink(const char* path);
int statvfs(const char* path, struct statvfs* room);
int flock(int file, int how);
int fsync(int file);
ssize_t pread(int file, void* bytes, std::size_t size, off_t at);
ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t at);

inline int chown(const char*, int, int) { return 0; }
inline ssize_t readlink(const char*, char*, std::size_t) { return -1; }

// Both may move less than all.
inline ssize_t preadv(int file, const iovec* parts, int, off_t at) {
  return pread(file, parts->iov_base, parts->iov_len, at);
}
inline ssize_t pwritev(int file, const iovec* parts, int, off_t at) {
  return pwrite(file, parts->iov_base, parts->iov_len, at);
}

}  // namespace fsknn

#else

#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

namespace fsknn {

inline int stat_path(const char* path, struct stat* facts) {
  return ::stat(path, facts);
}

}  // namespace fsknn

#endif
