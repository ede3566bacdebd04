#include "core/files/durable.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

#include "core/base/poll.hpp"
#include "core/files/digest.hpp"
#include "core/files/system.hpp"

namespace fsknn {
namespace {

// The bytes of one system call; poll() is called after each.
constexpr std::int64_t kPart = std::int64_t{1} << 24;

// Opens no existing file, and follows no link.
constexpr int kNewOnly = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

/// During its lifetime, exceeding a limit on file sizes makes write() fail
/// instead of ending the process.
class SizeLimitHeard {
 public:
#ifndef SIGXFSZ
  SizeLimitHeard() {}
#else
  SizeLimitHeard() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  ~SizeLimitHeard() {
    if (before_ != SIG_ERR) std::signal(SIGXFSZ, before_);
  }
#endif
  SizeLimitHeard(const SizeLimitHeard&) = delete;
  SizeLimitHeard& operator=(const SizeLimitHeard&) = delete;

 private:
  void (*before_)(int) = nullptr;
};

void write_to(int number, const std::string& path, const void* bytes,
              std::int64_t size) {
  const SizeLimitHeard heard;
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t done =
        ::write(number, at, static_cast<std::size_t>(std::min(size, kPart)));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_file(path);
    at += done;
    size -= done;
    poll();
  }
}

void to_disk(int number, const std::string& path) {
  // Some file systems do not support this: EINVAL.
  while (fsync(number) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == ENOTSUP) return;
    fail_file(path);
  }
}

/// Some systems report a full disk only on closing.
void close_well(int& number, const std::string& path) {
  const int closing = number;
  number = -1;
  // After EINTR the descriptor may already belong to another file.
  if (close(closing) != 0 && errno != EINTR) fail_file(path);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Windows cannot open folders, and its file systems keep a journal of names.
void folder_to_disk(const std::string& folder) {
#ifdef _WIN32
  static_cast<void>(folder);
#else
  int number = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) fail_file(folder);
  struct Closed {
    ~Closed() { close(number); }
    int number;
  } closed{number};
  to_disk(number, folder);
#endif
}

}  // namespace

void fail_file(const std::string& path, int error) {
  throw FileFailure{path, std::strerror(error), error};
}

std::string random_word() {
  std::random_device random;
  const std::uint64_t high = random();
  return hexadecimal(high << 32 | random());
}

NewFile::NewFile(const std::string& path, unsigned mode) : path_(path) {
  for (int trial = 0; number_ < 0; ++trial) {
    part_ = path + ".part-" + random_word();
    number_ = open(part_.c_str(), kNewOnly, static_cast<mode_t>(mode));
    if (number_ < 0 && (errno != EEXIST || trial == 9)) fail_file(path_);
  }
}

NewFile::~NewFile() {
  if (number_ >= 0) close(number_);
  if (!named_) unlink(part_.c_str());
}

void NewFile::write(const void* bytes, std::int64_t size) {
  write_to(number_, path_, bytes, size);
}

void NewFile::finish() {
  to_disk(number_, path_);
  close_well(number_, path_);
  if (rename(part_.c_str(), path_.c_str()) != 0) fail_file(path_);
  named_ = true;
  // The new name must also reach the disk.
  folder_to_disk(folder_of(path_));
}

bool NewFile::finish_first() {
  to_disk(number_, path_);
  close_well(number_, path_);
  if (!link_first(part_, path_)) return false;
  folder_to_disk(folder_of(path_));
  return true;
}

// Without O_NONBLOCK, opening a pipe blocks before its type is known.
InputFile::InputFile(const std::string& path)
    : path_(path),
      number_(
          open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  if (number_ < 0) fail_file(path);
  struct stat facts;
  const int error = fstat(number_, &facts) != 0 ? errno : 0;
  if (error == 0 && S_ISREG(facts.st_mode)) {
    size_ = static_cast<std::int64_t>(facts.st_size);
    return;
  }
  close(number_);
  if (error != 0) fail_file(path, error);
  throw FileFailure{path, "it is not a file", 0};
}

InputFile::~InputFile() { close(number_); }

std::int64_t InputFile::read(void* bytes, std::int64_t size) {
  char* at = static_cast<char*>(bytes);
  const char* const first = at;
  while (size > 0) {
    const ssize_t done =
        ::read(number_, at, static_cast<std::size_t>(std::min(size, kPart)));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_file(path_);
    if (done == 0) break;
    at += done;
    size -= done;
    poll();
  }
  return at - first;
}

void InputFile::go_to(std::int64_t byte) {
  if (lseek(number_, static_cast<off_t>(byte), SEEK_SET) < 0) fail_file(path_);
}

void InputFile::read_at(std::int64_t start, void* bytes,
                        std::int64_t size) const {
  for (std::int64_t got = 0; got < size;) {
    const ssize_t some =
        pread(number_, static_cast<char*>(bytes) + got,
              static_cast<std::size_t>(std::min(size - got, kPart)),
              static_cast<off_t>(start + got));
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) fail_file(path_);
    if (some == 0)
      throw FileFailure{path_, "it is shorter than it should be", 0};
    got += some;
  }
}

void name_whole(const std::string& part, const std::string& path) {
  int number = open(part.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (number < 0) fail_file(path);
  struct Closed {
    ~Closed() {
      if (number >= 0) close(number);
    }
    int& number;
  } closed{number};
  to_disk(number, path);
  close_well(number, path);
  if (rename(part.c_str(), path.c_str()) != 0) fail_file(path);
  folder_to_disk(folder_of(path));
}

void write_bytes(const std::string& path, const void* bytes,
                 std::int64_t size) {
  struct Open {
    ~Open() {
      if (number >= 0) close(number);
    }
    int number;
  } file{open(path.c_str(), kNewOnly, 0600)};
  if (file.number < 0) fail_file(path);
  write_to(file.number, path, bytes, size);
  close_well(file.number, path);
}

void read_bytes(const std::string& path, void* bytes, std::int64_t size) {
  if (InputFile(path).read(bytes, size) != size)
    throw FileFailure{path, "it is shorter than it should be", 0};
}

bool link_first(const std::string& from, const std::string& to) {
  const int error = link(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  struct stat facts;
  if (stat_path(from.c_str(), &facts) == 0 && facts.st_nlink > 1) return true;
  if (error == EEXIST || access(to.c_str(), F_OK) == 0) return false;
  fail_file(to, error == 0 ? EIO : error);
}

}  // namespace fsknn
