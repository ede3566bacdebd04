// Files that users request, and the digest of gzip.

#include <doctest/doctest.h>
#ifndef _WIN32
#include <sys/resource.h>
#endif

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/crc32.hpp"
#include "core/files/output_file.hpp"
#include "core/files/system.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void put(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.finish();
}

}  // namespace

TEST_CASE("the digest of gzip is that of its definition") {
  const std::string text = "123456789";
  CHECK(crc32(text.data(), 9) == 0xcbf43926u);
  CHECK(crc32(text.data() + 4, 5, crc32(text.data(), 4)) == 0xcbf43926u);
  CHECK(crc32(nullptr, 0) == 0u);
}

TEST_CASE("an output file has its name when it is finished, and not before") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  put(path, "old");
  CHECK(chmod(path.c_str(), 0640) == 0);
  {
    OutputFile file(path);
    file.write("new one", 7);
    CHECK(text_of(path) == "old");
  }
  CHECK(text_of(path) == "old");
  put(path, "new one");
  CHECK(text_of(path) == "new one");
#ifndef _WIN32
  struct stat facts;
  CHECK(stat_path(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0640);
#endif
}

#ifndef _WIN32
TEST_CASE("an output file follows links, and devices stay what they are") {
  const Folder folder;
  const std::string path = folder.path + "/file", link = folder.path + "/link";
  CHECK(symlink("file", link.c_str()) == 0);
  put(link, "by the link");
  CHECK(text_of(path) == "by the link");
  struct stat facts;
  CHECK(lstat(link.c_str(), &facts) == 0);
  CHECK(S_ISLNK(facts.st_mode));
  const std::string loop = folder.path + "/loop";
  CHECK(symlink("loop", loop.c_str()) == 0);
  CHECK_THROWS_AS(OutputFile{loop}, FileFailure);
  OutputFile full("/dev/full");
  CHECK_THROWS_AS(full.write("a", 1), FileFailure);
  put("/dev/null", "a");
  CHECK(stat("/dev/null", &facts) == 0);
  CHECK(S_ISCHR(facts.st_mode));
}

TEST_CASE("a limit on the size of files is an error, and ends no process") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  put(path, "old");
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit little = before;
  little.rlim_cur = 4096;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  const std::vector<char> much(10000, 'x');
  {
    OutputFile file(path);
    CHECK_THROWS_AS(file.write(much.data(), 10000), FileFailure);
  }
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(text_of(path) == "old");
  const bool as_it_was = std::signal(SIGXFSZ, SIG_DFL) == SIG_DFL;
  CHECK(as_it_was);
}
#endif
