// Sealed files reveal any change of their bytes.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/files/sealed_file.hpp"
#include "core/files/system.hpp"
#include "core/rows/split_mix.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

const std::vector<std::int32_t> kNumbers = {1, -7, 2147483647};
const std::vector<double> kValues = {0.1, -0.0,
                                     std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};
const std::string kText = "odd: 9 bytes";

SealedHead some_head() {
  SealedHead head;
  head.kind = "test";
  head.number = 3;
  head.fingerprint = 0xfedcba9876543210u;
  head.columns = {{"numbers", SealedType::int32, 3},
                  {"text", SealedType::byte, 12},
                  {"none", SealedType::float64, 0},
                  {"values", SealedType::float64, 4}};
  return head;
}

void write_some(const std::string& path) {
  write_sealed(path, some_head(),
               {kNumbers.data(), kText.data(), nullptr, kValues.data()});
}

/// Reads the columns if the file reports that it is intact.
bool reads_well(const std::string& path, bool& same) {
  SealedFile file(path);
  if (file.state() != SealedState::whole) return false;
  std::vector<std::vector<char>> bytes;
  std::vector<void*> places;
  for (const SealedColumn& column : file.head().columns)
    bytes.emplace_back(
        static_cast<std::size_t>(column.length * size_of(column.type)));
  for (std::vector<char>& column : bytes) places.push_back(column.data());
  if (!file.read(places)) return false;
  const SealedHead expected = some_head();
  same = file.head().kind == expected.kind &&
         file.head().number == expected.number &&
         file.head().fingerprint == expected.fingerprint && bytes.size() == 4 &&
         std::memcmp(bytes[0].data(), kNumbers.data(), 12) == 0 &&
         std::string(bytes[1].begin(), bytes[1].end()) == kText &&
         bytes[2].empty() &&
         std::memcmp(bytes[3].data(), kValues.data(), 32) == 0;
  for (std::size_t c = 0; same && c < bytes.size(); ++c)
    same = file.head().columns[c].name == expected.columns[c].name &&
           file.head().columns[c].type == expected.columns[c].type;
  return true;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_as_is(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Replaces the digests by valid ones.
std::string sealed_anew(std::string bytes, std::size_t num_columns) {
  const std::size_t head = 56 + 32 * num_columns, end = bytes.size() - 8;
  const auto seal = [&](std::size_t at) {
    const std::uint64_t digest =
        digest_bytes(bytes.data(), static_cast<std::int64_t>(at));
    std::memcpy(&bytes[at], &digest, 8);
  };
  seal(head);
  seal(end);
  return bytes;
}

}  // namespace

TEST_CASE("a sealed file is read as it was written") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  CHECK(SealedFile(path).state() == SealedState::missing);
  write_some(path);
  bool same = false;
  CHECK(reads_well(path, same));
  CHECK(same);
  // Replaces an existing file.
  write_some(path);
  CHECK(reads_well(path, same));
#ifndef _WIN32
  struct stat facts;
  REQUIRE(stat_path(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
#endif
  CHECK(folder.names() == std::vector<std::string>{"file"});
  // A file without columns is valid, too.
  SealedHead head = some_head();
  head.columns.clear();
  write_sealed(path, head, {});
  SealedFile empty(path);
  CHECK(empty.state() == SealedState::whole);
  CHECK(empty.read({}));
  CHECK_THROWS_AS(empty.read({}), std::invalid_argument);
}

TEST_CASE("a bit turned, a cut or an added byte anywhere is seen") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  write_some(path);
  const std::string whole = bytes_of(path);
  bool same;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      write_as_is(path, bytes);
      CHECK_FALSE(reads_well(path, same));
    }
    write_as_is(path, whole.substr(0, at));
    CHECK_FALSE(reads_well(path, same));
  }
  write_as_is(path, whole + '\0');
  CHECK_FALSE(reads_well(path, same));
  // A file changed by transfer as text, and files of other kinds.
  std::string text = whole;
  text.erase(5, 1);
  for (const std::string& bytes :
       {text, std::string("form: fsknn\n"), std::string()}) {
    write_as_is(path, bytes);
    CHECK(SealedFile(path).state() == SealedState::unknown);
  }
}

TEST_CASE("a head that does not add up is refused though it has its digest") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  write_some(path);
  const std::string whole = bytes_of(path);
  // Version, columns and size of the file; type and length of columns.
  const std::size_t fields[] = {8, 12, 16, 56 + 16, 56 + 24, 88 + 24, 152 + 24};
  SplitMix random(7);
  bool same;
  for (const std::size_t field : fields) {
    for (int trial = 0; trial < 400; ++trial) {
      std::string bytes = whole;
      // Small, negative and huge numbers.
      std::uint64_t number = random.next() >> (random.next() % 64);
      if (trial % 4 == 0) number = ~number;
      std::memcpy(&bytes[field], &number, field <= 12 || field == 72 ? 4 : 8);
      if (bytes == whole) continue;
      write_as_is(path, sealed_anew(bytes, 4));
      CHECK_FALSE(reads_well(path, same));
    }
  }
  // Sealed by the same function the original is valid, which shows that the
  // seals are right.
  write_as_is(path, sealed_anew(whole, 4));
  CHECK(reads_well(path, same));
}

TEST_CASE("what can't be told of in a head is not written") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  SealedHead head = some_head();
  head.kind = "sixteen letters!";
  const std::vector<const void*> values = {kNumbers.data(), kText.data(),
                                           nullptr, kValues.data()};
  CHECK_THROWS_AS(write_sealed(path, head, values), std::invalid_argument);
  head = some_head();
  head.columns[1].length = -1;
  CHECK_THROWS_AS(write_sealed(path, head, values), std::invalid_argument);
  head.columns.pop_back();
  CHECK_THROWS_AS(write_sealed(path, head, values), std::invalid_argument);
  CHECK(folder.names().empty());
}

TEST_CASE("what is no file is refused, and not waited for") {
  const Folder folder;
#ifndef _WIN32
  const std::string path = folder.path + "/pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_THROWS_AS(SealedFile{path}, FileFailure);
#endif
  CHECK_THROWS_AS(SealedFile{folder.path}, FileFailure);
}
