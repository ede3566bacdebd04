// Files of checkpoints, and digests.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/digest.hpp"
#include "core/durable.hpp"

using namespace fsknn;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/fsknn-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { (void)!std::system(("rm -rf " + path).c_str()); }
  std::string path;
};

}  // namespace

TEST_CASE("a sealed file is read as it was written, or not at all") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  std::vector<char> bytes(100003), back;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 7 + i / 256);
  CHECK_FALSE(read_sealed(path, back));
  write_sealed(path, bytes.data(), static_cast<std::int64_t>(bytes.size()));
  CHECK(read_sealed(path, back));
  CHECK(back == bytes);
  for (const long at : {0L, 9L, 20L, 50000L, 100025L}) {
    std::FILE* file = std::fopen(path.c_str(), "r+b");
    std::fseek(file, at, SEEK_SET);
    const int old = std::fgetc(file);
    std::fseek(file, at, SEEK_SET);
    std::fputc(old ^ 1, file);
    std::fclose(file);
    CHECK_FALSE(read_sealed(path, back));
    write_sealed(path, bytes.data(), static_cast<std::int64_t>(bytes.size()));
  }
  CHECK(truncate(path.c_str(), 100000) == 0);
  CHECK_FALSE(read_sealed(path, back));
}

TEST_CASE("a file that can't be written leaves nothing behind") {
  const Folder folder;
  CHECK_THROWS_AS(write_durably(folder.path + "/none/file", "a", 1),
                  FileFailure);
  // The name is taken by a folder.
  CHECK_THROWS_AS(write_durably(folder.path, "a", 1), FileFailure);
  CHECK(std::system(("test -z \"$(ls " + folder.path + ")\"").c_str()) == 0);
  CHECK(
      std::system(("test -z \"$(ls -d " + folder.path + ".part* 2>/dev/null)\"")
                      .c_str()) == 0);
}

TEST_CASE("a lock is one process's, and ends with it") {
  const Folder folder;
  const std::string path = folder.path + "/lock";
  int said[2], wait_for[2];
  REQUIRE(pipe(said) == 0);
  REQUIRE(pipe(wait_for) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const FileLock lock(path);
    (void)!write(said[1], lock.held() ? "y" : "n", 1);
    char byte;
    (void)!read(wait_for[0], &byte, 1);
    _exit(0);
  }
  char answer = '?';
  REQUIRE(read(said[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  {
    const FileLock lock(path);
    CHECK_FALSE(lock.held());
    CHECK(lock.owner() == child);
  }
  kill(child, 9);
  waitpid(child, nullptr, 0);
  const FileLock lock(path);
  CHECK(lock.held());
}

TEST_CASE("a digest tells every bit and the length") {
  std::vector<char> bytes(40000, 0);
  const std::uint64_t zeros = digest_bytes(bytes.data(), 40000);
  CHECK(zeros != digest_bytes(bytes.data(), 39999));
  CHECK(zeros != digest_bytes(bytes.data(), 0));
  for (const std::size_t at : {std::size_t{0}, std::size_t{31},
                               std::size_t{32768}, std::size_t{39999}}) {
    bytes[at] = 1;
    CHECK(zeros != digest_bytes(bytes.data(), 40000));
    bytes[at] = 0;
  }
  CHECK(hexadecimal(0xfedcba9876543210u) == "fedcba9876543210");
}
