// Checkpoint files and digests.

#include <doctest/doctest.h>
#ifndef _WIN32
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#endif

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/files/digest.hpp"
#include "core/files/durable.hpp"
#include "core/files/host_lock.hpp"
#include "core/files/system.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a file has its name when it is whole, and the old one till then") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  std::ofstream(path) << "old";
  {
    NewFile unfinished(path);
    unfinished.write("new", 3);
    CHECK(folder.names().size() == 2);
    CHECK(bytes_of(path) == "old");
  }
  CHECK(folder.names() == Names{"file"});
  CHECK(bytes_of(path) == "old");
  NewFile file(path, 0640);
  file.write("ne", 2);
  file.write("w", 1);
  file.finish();
  CHECK(folder.names() == Names{"file"});
  CHECK(bytes_of(path) == "new");
#ifndef _WIN32
  // The system returns the mask only when it is replaced.
  const mode_t mask = umask(077);
  umask(mask);
  struct stat facts;
  REQUIRE(stat_path(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == (0640 & ~mask));
#endif
}

TEST_CASE("the first of several files has the name, and keeps it") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  NewFile first(path), second(path);
  first.write("first", 5);
  second.write("second", 6);
  CHECK(first.finish_first());
  CHECK_FALSE(second.finish_first());
  CHECK(bytes_of(path) == "first");
  // A file whose own name was deleted meanwhile gets the same answer.
  NewFile third(path);
  third.write("third", 5);
  std::filesystem::remove(third.part());
  CHECK_FALSE(third.finish_first());
  CHECK(bytes_of(path) == "first");
}

TEST_CASE("nothing is left of files that were second") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  for (int i = 0; i < 3; ++i) CHECK(NewFile(path).finish_first() == (i == 0));
  CHECK(folder.names() == Names{"file"});
}

TEST_CASE("where a file is written can't be foretold") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  // Neither half of the word counts, or is the process's.
  std::set<std::string> heads, tails;
  for (int i = 0; i < 100; ++i) {
    const std::string part = NewFile(path).part();
    tails.insert(part.substr(part.size() - 8));
    heads.insert(part.substr(part.size() - 16, 8));
  }
  CHECK(heads.size() == 100);
  CHECK(tails.size() == 100);
}

TEST_CASE("a file that can't be written leaves nothing behind") {
  const Folder folder;
  CHECK_THROWS_AS(NewFile(folder.path + "/none/file"), FileFailure);
  // A folder has that name.
  const std::string taken = folder.path + "/taken";
  REQUIRE(std::filesystem::create_directory(taken));
  {
    NewFile file(taken);
    CHECK_THROWS_AS(file.finish(), FileFailure);
  }
  CHECK(folder.names() == Names{"taken"});
}

#ifndef _WIN32
TEST_CASE("a file that finds no room leaves nothing behind") {
  const Folder folder;
  struct rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  struct rlimit less = before;
  less.rlim_cur = 1000;
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &less) == 0);
  const std::string many(2000, 'a');
  {
    NewFile file(folder.path + "/file");
    CHECK_THROWS_AS(file.write(many.data(), 2000), FileFailure);
  }
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  signal(SIGXFSZ, ignored);
  CHECK(folder.names().empty());
}
#endif

TEST_CASE("bytes on their way follow no link and replace no file") {
  const Folder folder;
  const std::string path = folder.path + "/file";
#ifndef _WIN32
  const std::string link = folder.path + "/link";
  REQUIRE(symlink(path.c_str(), link.c_str()) == 0);
  CHECK_THROWS_AS(write_bytes(link, "a", 1), FileFailure);
  CHECK_THROWS_AS(HostLock{link}, FileFailure);
  CHECK(folder.names() == Names{"link"});
#endif
  write_bytes(path, "abc", 3);
  CHECK_THROWS_AS(write_bytes(path, "d", 1), FileFailure);
  char back[4];
  read_bytes(path, back, 3);
  CHECK(std::string(back, 3) == "abc");
  CHECK_THROWS_AS(read_bytes(path, back, 4), FileFailure);
}

TEST_CASE("a file that is open is replaced and deleted") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  std::ofstream(path) << "old";
  {
    InputFile open_file(path);
    NewFile file(path);
    file.write("new", 3);
    file.finish();
    CHECK(bytes_of(path) == "new");
    char byte;
    CHECK(open_file.read(&byte, 1) == 1);
    CHECK(byte == 'o');
  }
  {
    InputFile open_file(path);
    CHECK(std::filesystem::remove(path));
    char byte;
    CHECK(open_file.read(&byte, 1) == 1);
  }
  CHECK(folder.names().empty());
}

TEST_CASE("paths may be long and of any script") {
  const Folder folder;
  // Windows allows 260 characters without a prefix.
  const std::string path =
      folder.path + "/\xc3\xa4\xe4\xb8\xad" + std::string(225, 'a');
  for (const char* text : {"a", "b"}) {
    NewFile file(path);
    file.write(text, 1);
    file.finish();
  }
  char byte;
  read_bytes(path, &byte, 1);
  CHECK(byte == 'b');
  name_whole(path, folder.path + "/short");
  CHECK(folder.names() == Names{"short"});
}

TEST_CASE("a lock has one holder, and ends with it") {
  const Folder folder;
  const std::string path = folder.path + "/lock";
  {
    const HostLock lock(path);
    CHECK(lock.held());
    CHECK_FALSE(HostLock(path).held());
  }
  CHECK(HostLock(path).held());
}

#ifndef _WIN32
TEST_CASE("a lock is one process's, and ends with it") {
  const Folder folder;
  const std::string path = folder.path + "/lock";
  int said[2], wait_for[2];
  REQUIRE(pipe(said) == 0);
  REQUIRE(pipe(wait_for) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const HostLock lock(path);
    (void)!write(said[1], lock.held() ? "y" : "n", 1);
    char byte;
    (void)!read(wait_for[0], &byte, 1);
    _exit(0);
  }
  char answer = '?';
  REQUIRE(read(said[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  {
    const HostLock lock(path);
    CHECK_FALSE(lock.held());
  }
  kill(child, 9);
  waitpid(child, nullptr, 0);
  const HostLock lock(path);
  CHECK(lock.held());
  CHECK_FALSE(HostLock(path).held());
}
#endif

// The specification has no test values. These come from the self-test of xxHash
// (a generated buffer, seeds 0 and 2654435761), and from strings whose digests
// many implementations print.
TEST_CASE("a digest is XXH64") {
  std::vector<unsigned char> buffer;
  std::uint32_t state = 2654435761u;
  for (int i = 0; i < 101; ++i, state *= state)
    buffer.push_back(static_cast<unsigned char>(state >> 24));
  struct Vector {
    std::int64_t size;
    std::uint64_t seed, digest;
  };
  const Vector vectors[] = {
      {0, 0, 0xef46db3751d8e999u},   {0, 2654435761u, 0xac75fda2929b17efu},
      {1, 0, 0x4fce394cc88952d8u},   {1, 2654435761u, 0x739840cb819fa723u},
      {14, 0, 0xcffa8db881bc3a3du},  {14, 2654435761u, 0x5b9611585efcc9cbu},
      {101, 0, 0x0eab543384f878adu}, {101, 2654435761u, 0xcaa65939306f1e21u}};
  for (const Vector& v : vectors) {
    CAPTURE(v.size);
    // The digest does not depend on how the bytes are divided.
    for (std::int64_t part = 1; part <= v.size + 1; ++part) {
      Digest digest(v.seed);
      for (std::int64_t at = 0; at < v.size; at += part)
        digest.take(buffer.data() + at, std::min(part, v.size - at));
      CHECK(digest.value() == v.digest);
    }
  }
  const std::pair<const char*, std::uint64_t> words[] = {
      {"a", 0xd24ec4f1a98c6e5bu},
      {"abc", 0x44bc2cf5ad770999u},
      {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1u},
      {"Call me Ishmael. Some years ago--never mind how long precisely-",
       0x02a2e85470d6fd96u}};
  for (const auto& word : words)
    CHECK(digest_bytes(word.first, static_cast<std::int64_t>(std::strlen(
                                       word.first))) == word.second);
}

TEST_CASE("a digest's text is read back, and no other") {
  CHECK(hexadecimal(0xfedcba9876543210u) == "fedcba9876543210");
  CHECK(from_hexadecimal("0edcba987654321f") == 0x0edcba987654321fu);
  for (const char* text : {"", "fedcba987654321", "fedcba98765432100",
                           "fedcba987654321G", "FEDCBA9876543210"})
    CHECK_THROWS_AS(from_hexadecimal(text), std::invalid_argument);
}
