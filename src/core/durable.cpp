#include "core/durable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/digest.hpp"
#include "core/poll.hpp"

namespace fsknn {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw FileFailure{path, std::strerror(errno)};
}

class File {
 public:
  File(const std::string& path, int flags)
      : path_(path), number_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) fail(path);
  }
  ~File() { close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* bytes, std::int64_t size) {
    const char* at = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t done =
          ::write(number_, at, static_cast<std::size_t>(std::min(size, kPart)));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail(path_);
      at += done;
      size -= done;
      poll();
    }
  }
  /// Returns the number of bytes there were.
  std::int64_t read(void* bytes, std::int64_t size) {
    char* at = static_cast<char*>(bytes);
    const char* const first = at;
    while (size > 0) {
      const ssize_t done =
          ::read(number_, at, static_cast<std::size_t>(std::min(size, kPart)));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail(path_);
      if (done == 0) break;
      at += done;
      size -= done;
      poll();
    }
    return at - first;
  }
  void to_disk() {
    // Some file systems have no way to do so: EINVAL.
    while (fsync(number_) != 0) {
      if (errno == EINTR) continue;
      if (errno == EINVAL || errno == ENOTSUP) return;
      fail(path_);
    }
  }

 private:
  static constexpr std::int64_t kPart = std::int64_t{1} << 24;
  const std::string path_;
  const int number_;
};

/// Takes the file away again unless it got its name.
struct Unfinished {
  ~Unfinished() {
    if (!named) unlink(path.c_str());
  }
  std::string path;
  bool named = false;
};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct Head {
  char word[8];
  std::int64_t size;
  std::uint64_t digest;
};
constexpr char kWord[9] = "fsknn\r\n1";

Head head_of(const void* bytes, std::int64_t size) {
  Head head;
  std::memcpy(head.word, kWord, sizeof head.word);
  head.size = size;
  head.digest = digest_bytes(bytes, size);
  return head;
}

template <class Write>
void write_then_name(const std::string& path, Write write) {
  Unfinished part{path + ".part-" + std::to_string(getpid())};
  {
    File file(part.path, O_WRONLY | O_CREAT | O_TRUNC);
    write(file);
    file.to_disk();
  }
  if (rename(part.path.c_str(), path.c_str()) != 0) fail(path);
  part.named = true;
  // The name, too, has to reach the disk.
  File(folder_of(path), O_RDONLY).to_disk();
}

}  // namespace

void write_bytes(const std::string& path, const void* bytes,
                 std::int64_t size) {
  File(path, O_WRONLY | O_CREAT | O_TRUNC).write(bytes, size);
}

void read_bytes(const std::string& path, void* bytes, std::int64_t size) {
  if (File(path, O_RDONLY).read(bytes, size) != size)
    throw FileFailure{path, "it is shorter than it should be"};
}

void write_durably(const std::string& path, const void* bytes,
                   std::int64_t size) {
  write_then_name(path, [&](File& file) { file.write(bytes, size); });
}

void write_sealed(const std::string& path, const void* bytes,
                  std::int64_t size) {
  const Head head = head_of(bytes, size);
  write_then_name(path, [&](File& file) {
    file.write(&head, sizeof head);
    file.write(bytes, size);
  });
}

bool read_sealed(const std::string& path, std::vector<char>& bytes) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return false;
    fail(path);
  }
  File file(path, O_RDONLY);
  Head head;
  if (file.read(&head, sizeof head) != sizeof head ||
      std::memcmp(head.word, kWord, sizeof head.word) != 0 ||
      head.size != static_cast<std::int64_t>(facts.st_size) -
                       static_cast<std::int64_t>(sizeof head))
    return false;
  bytes.resize(static_cast<std::size_t>(head.size));
  return file.read(bytes.data(), head.size) == head.size &&
         digest_bytes(bytes.data(), head.size) == head.digest;
}

FileLock::FileLock(const std::string& path)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail(path);
  struct flock whole;
  std::memset(&whole, 0, sizeof whole);
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_, F_SETLK, &whole) == 0) {
    held_ = true;
    return;
  }
  const int why = errno;
  if (why != EACCES && why != EAGAIN) {
    close(file_);
    errno = why;
    fail(path);
  }
  whole.l_type = F_WRLCK;
  if (fcntl(file_, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK)
    owner_ = static_cast<long>(whole.l_pid);
}

FileLock::~FileLock() { close(file_); }

}  // namespace fsknn
