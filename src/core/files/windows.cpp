#include "core/files/system.hpp"

#ifdef _WIN32

#include <io.h>
#include <windows.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

// The last file of its unit, because <windows.h> defines common words.

namespace fsknn {
namespace {

/// Sets errno; returns -1, the result of a failed call.
int fail() {
  switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME: errno = ENOENT; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_DELETE_PENDING:
    case ERROR_WRITE_PROTECT: errno = EACCES; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: errno = ENOSPC; break;
    case ERROR_LOCK_VIOLATION: errno = EWOULDBLOCK; break;
    case ERROR_INVALID_FUNCTION:
    case ERROR_NOT_SUPPORTED: errno = ENOTSUP; break;
    case ERROR_INVALID_HANDLE: errno = EBADF; break;
    default: errno = EIO;
  }
  return -1;
}

int fail_unless(BOOL worked) { return worked ? 0 : fail(); }

/// The complete path, with the prefix by which it may have more than 260
/// characters. Devices such as NUL have another prefix.
std::wstring wide(const std::string& path) {
  const int size =
      MultiByteToWideChar(CP_UTF8, 0, path.c_str(), -1, nullptr, 0);
  std::wstring words(static_cast<std::size_t>(std::max(size, 1)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, path.c_str(), -1, words.data(), size);
  std::wstring full(GetFullPathNameW(words.c_str(), 0, nullptr, nullptr),
                    L'\0');
  full.resize(GetFullPathNameW(words.c_str(), static_cast<DWORD>(full.size()),
                               full.data(), nullptr));
  if (full.compare(0, 4, L"\\\\?\\") == 0 ||
      full.compare(0, 4, L"\\\\.\\") == 0)
    return full;
  if (full.compare(0, 2, L"\\\\") == 0) return L"\\\\?\\UNC" + full.substr(1);
  return L"\\\\?\\" + full;
}

HANDLE handle_of(int file) {
  return reinterpret_cast<HANDLE>(_get_osfhandle(file));
}

HANDLE open_handle(const char* path, DWORD access, DWORD creation) {
  return CreateFileW(wide(path).c_str(), access,
                     FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                     nullptr, creation, FILE_ATTRIBUTE_NORMAL, nullptr);
}

OVERLAPPED place_of(off_t at) {
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(at);
  place.OffsetHigh = static_cast<DWORD>(at >> 32);
  return place;
}

DWORD part_of(std::size_t size) {
  return static_cast<DWORD>(std::min(size, std::size_t{1} << 30));
}

}  // namespace

int open(const char* path, int flags, int) {
  DWORD access = GENERIC_READ;
  if (flags & O_WRONLY) access = GENERIC_WRITE;
  if (flags & O_RDWR) access = GENERIC_READ | GENERIC_WRITE;
  DWORD creation = OPEN_EXISTING;
  if (flags & O_CREAT) creation = flags & O_EXCL ? CREATE_NEW : OPEN_ALWAYS;
  const HANDLE handle = open_handle(path, access, creation);
  if (handle == INVALID_HANDLE_VALUE) return fail();
  const int file = _open_osfhandle(reinterpret_cast<intptr_t>(handle), 0);
  if (file < 0) CloseHandle(handle);
  return file;
}

int stat_path(const char* path, struct stat* facts) {
  const int file = open(path, O_RDONLY);
  if (file < 0) return -1;
  BY_HANDLE_FILE_INFORMATION known;
  int status = ::fstat(file, facts);
  if (status == 0) {
    status = fail_unless(GetFileInformationByHandle(handle_of(file), &known));
    if (status == 0)
      facts->st_nlink = static_cast<decltype(facts->st_nlink)>(
          std::min<DWORD>(known.nNumberOfLinks, 1000));
  }
  ::close(file);
  return status;
}

int access(const char* path, int mode) {
  const DWORD facts = GetFileAttributesW(wide(path).c_str());
  if (facts == INVALID_FILE_ATTRIBUTES) return fail();
  if ((mode & W_OK) == 0 || (facts & FILE_ATTRIBUTE_READONLY) == 0) return 0;
  errno = EACCES;
  return -1;
}

int link(const char* from, const char* to) {
  if (CreateHardLinkW(wide(to).c_str(), wide(from).c_str(), nullptr)) return 0;
  const int status = fail();
  // A file that was deleted while it is open is not missing yet.
  if (errno == EACCES && access(from, F_OK) != 0) errno = ENOENT;
  return status;
}

// Windows 10 replaces a file that others have open as POSIX does. Wine 8 does
// not know this call, and replaces such a file by the last one.
int rename(const char* from, const char* to) {
  const std::wstring old_name = wide(from), name = wide(to);
  const HANDLE file = open_handle(from, DELETE, OPEN_EXISTING);
  if (file == INVALID_HANDLE_VALUE) return fail();
  const DWORD bytes = static_cast<DWORD>(name.size() * sizeof(wchar_t));
  std::vector<char> room(sizeof(FILE_RENAME_INFO) + bytes);
  const auto wanted = reinterpret_cast<FILE_RENAME_INFO*>(room.data());
  wanted->Flags = 1 | 2;  // to replace, as POSIX does
  wanted->FileNameLength = bytes;
  std::memcpy(wanted->FileName, name.data(), bytes);
  const BOOL worked = SetFileInformationByHandle(
      file, static_cast<FILE_INFO_BY_HANDLE_CLASS>(22), wanted,
      static_cast<DWORD>(room.size()));
  CloseHandle(file);
  if (worked ||
      MoveFileExW(old_name.c_str(), name.c_str(), MOVEFILE_REPLACE_EXISTING))
    return 0;
  const int status = fail();
  const int error = errno;
  const DWORD facts = GetFileAttributesW(name.c_str());
  if (facts != INVALID_FILE_ATTRIBUTES &&
      (facts & FILE_ATTRIBUTE_DIRECTORY) == 0 &&
      ReplaceFileW(name.c_str(), old_name.c_str(), nullptr, 0, nullptr,
                   nullptr))
    return 0;
  errno = error;
  return status;
}

int unlink(const char* path) {
  return fail_unless(DeleteFileW(wide(path).c_str()));
}

int statvfs(const char* path, struct statvfs* room) {
  ULARGE_INTEGER available;
  room->f_frsize = 1;
  if (!GetDiskFreeSpaceExW(wide(path).c_str(), &available, nullptr, nullptr))
    return fail();
  room->f_bavail = available.QuadPart;
  return 0;
}

// The locked byte is far beyond the end, so that it is never read.
int flock(int file, int how) {
  OVERLAPPED place = place_of(std::numeric_limits<off_t>::max() - 1);
  DWORD flags = 0;
  if (how & LOCK_EX) flags |= LOCKFILE_EXCLUSIVE_LOCK;
  if (how & LOCK_NB) flags |= LOCKFILE_FAIL_IMMEDIATELY;
  return fail_unless(LockFileEx(handle_of(file), flags, 0, 1, 0, &place));
}

int fsync(int file) { return fail_unless(FlushFileBuffers(handle_of(file))); }

ssize_t pread(int file, void* bytes, std::size_t size, off_t at) {
  OVERLAPPED place = place_of(at);
  DWORD done = 0;
  if (ReadFile(handle_of(file), bytes, part_of(size), &done, &place) ||
      GetLastError() == ERROR_HANDLE_EOF)
    return done;
  return fail();
}

ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t at) {
  OVERLAPPED place = place_of(at);
  DWORD done = 0;
  if (WriteFile(handle_of(file), bytes, part_of(size), &done, &place))
    return done;
  return fail();
}

}  // namespace fsknn

#endif
