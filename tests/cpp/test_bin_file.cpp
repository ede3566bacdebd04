// Files of big-ann-benchmarks, and the stored facts of a file.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/files/bin_file.hpp"
#include "core/files/durable.hpp"
#include "core/files/shards.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

constexpr std::int32_t kMissing = std::numeric_limits<std::int32_t>::min();

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("values go to a file row by row, and come back column by column") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};  // [3 x 2]
  for (const BinType type : {BinType::float32, BinType::float64, BinType::uint8,
                             BinType::int8, BinType::int32}) {
    {
      BinWriter writer(path, 3, 2);
      writer.put(type, values.data(), 2, 3);
      writer.put(type, values.data() + 2, 1, 3);
      writer.finish();
    }
    CHECK(bytes_of(path).size() ==
          static_cast<std::size_t>(8 + 6 * size_of(type)));
    BinReader reader(path);
    CHECK(reader.head().rows == 3);
    CHECK(reader.head().columns == 2);
    std::vector<double> back(6);
    reader.read(type, kBinHead, 0, 3, back.data(), 3);
    CHECK(back == values);
    std::vector<double> last(2);
    reader.read(type, kBinHead, 2, 1, last.data(), 1);
    CHECK(last == std::vector<double>{3, 6});
    CHECK_THROWS_AS(reader.read(type, kBinHead, 2, 2, back.data(), 2),
                    FileFailure);
  }
}

TEST_CASE("points are read where they are, and written by any threads") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  // More rows than are converted at a time, with four threads.
  constexpr std::int64_t n = 700000, d = 3;
  std::vector<double> values;  // column-major
  for (std::int64_t i = 0; i < n * d; ++i)
    values.push_back(static_cast<double>(i % 251 % 128));
  for (const BinType type : {BinType::float32, BinType::float64, BinType::uint8,
                             BinType::int8, BinType::int32}) {
    BinWriter writer(path, n, d);
    writer.put(type, values.data(), n, n, 4);
    writer.finish();
    const BinRows rows(path, type);
    REQUIRE(rows.num_points() == n);
    REQUIRE(rows.num_features() == d);
    CHECK(rows.on_disk());
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{5}}) {
      const std::int64_t count = n - 2 * first, stride = d + 1;
      std::vector<double> read(static_cast<std::size_t>(count * stride), -1.0);
      rows.read(first, count, read.data(), stride);
      std::int64_t wrong = 0;
      for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t f = 0; f < stride; ++f)
          wrong += read[static_cast<std::size_t>(r * stride + f)] !=
                   (f < d ? values[static_cast<std::size_t>(f * n + first + r)]
                          : -1.0);
      CHECK(wrong == 0);
    }
    std::vector<double> beyond(2 * d);
    CHECK_THROWS_AS(rows.read(n - 1, 2, beyond.data(), d), FileFailure);
  }
  CHECK_THROWS_AS(BinRows(path, BinType::uint8), FileFailure);
}

TEST_CASE("points are those of the file that was opened, as long as it lasts") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  const auto head = [](std::uint32_t rows, std::uint32_t columns) {
    std::string bytes(8, ' ');
    std::memcpy(&bytes[0], &rows, 4);
    std::memcpy(&bytes[4], &columns, 4);
    return bytes;
  };
  put(path, head(2, 2) + "abcd");
  const BinRows rows(path, BinType::uint8);
  std::vector<double> read(4);
  // Another file takes the name.
  put(path + "-other", head(1, 4) + "efgh");
  name_whole(path + "-other", path);
  rows.read(0, 2, read.data(), 2);
  CHECK(read == std::vector<double>{'a', 'b', 'c', 'd'});
  // An open file becomes shorter.
  const BinRows others(path, BinType::uint8);
  put(path, head(1, 4) + "e");
  CHECK_THROWS_AS(others.read(0, 1, read.data(), 4), FileFailure);
  // The bytes of so many values, 2^64, are 0 in 64 bits.
  const std::uint32_t half = std::uint32_t{1} << 31;
  for (const std::string& bytes :
       {head(half, half), head(half, half) + "a", head(0, 3) + "a",
        head(3, 0) + "a", std::string("1234567"), std::string()}) {
    put(path, bytes);
    CHECK_THROWS_AS(BinRows(path, BinType::float32), FileFailure);
  }
  for (const std::string& bytes : {head(0, 3), head(3, 0), head(0, 0)}) {
    put(path, bytes);
    const BinRows none(path, BinType::float32);
    none.read(0, none.num_points(), read.data(), 0);
  }
  CHECK_THROWS_AS(BinRows(folder.path, BinType::uint8), FileFailure);
  CHECK_THROWS_AS(BinRows(path + "-none", BinType::uint8), FileFailure);
}

TEST_CASE("numbers of neighbours count from 0 in a file") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  const std::vector<std::int32_t> index = {1, 7, kMissing, 2147483647};
  {
    BinWriter writer(path, 2, 2);
    writer.put_index(index.data(), 2, 2, kMissing);
    writer.finish();
  }
  CHECK(bytes_of(path) ==
        std::string("\2\0\0\0\2\0\0\0\0\0\0\0\xff\xff\xff\xff\6\0\0\0"
                    "\xfe\xff\xff\x7f",
                    24));
  std::vector<std::int32_t> back(4);
  BinReader(path).read_index(kBinHead, 0, 2, kMissing, back.data(), 2);
  CHECK(back == index);
}

TEST_CASE("a number below -1 is no neighbour") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  put(path, std::string("\1\0\0\0\1\0\0\0\xfe\xff\xff\xff", 12));
  std::int32_t back = 0;
  CHECK_THROWS_AS(
      BinReader(path).read_index(kBinHead, 0, 1, kMissing, &back, 1),
      FileFailure);
}

TEST_CASE("what has no place in a file is refused, and no file is there") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  const double bad[] = {256, 0.5, 1e39};
  const BinType types[] = {BinType::uint8, BinType::int8, BinType::float32};
  for (int i = 0; i < 3; ++i) {
    BinWriter writer(path, 1, 1);
    CHECK_THROWS_AS(writer.put(types[i], &bad[i], 1, 1), FileFailure);
  }
  CHECK(bytes_of(path).empty());
  CHECK_THROWS_AS(BinWriter(path, std::int64_t{1} << 32, 1), FileFailure);
}

TEST_CASE("threads write the bytes that one writes, or no file") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  // Rows 1 to n of more, in several pieces for each of three threads.
  constexpr std::int64_t n = 700000, d = 3, stride = n + 7;
  std::vector<std::int32_t> index;
  std::vector<double> distance;
  for (std::int64_t i = 0; i < stride * d; ++i) {
    index.push_back(i % 5 == 0 ? kMissing : static_cast<std::int32_t>(i + 1));
    distance.push_back(static_cast<double>(i) / 7.0);
  }
  std::vector<std::string> written;
  for (const int threads : {1, 3}) {
    BinWriter writer(path, n, d);
    writer.put_index(index.data() + 1, n, stride, kMissing, threads);
    writer.put(BinType::float32, distance.data() + 1, n, stride, threads);
    writer.finish();
    written.push_back(bytes_of(path));
  }
  CHECK(written[0].size() == static_cast<std::size_t>(8 + n * d * 8));
  CHECK((written[0] == written[1]));
  REQUIRE(std::remove(path.c_str()) == 0);
  // A value of the first piece, of a later one, and of the last.
  for (const std::int64_t bad : {n / 9, n / 2, n - 1}) {
    double& value = distance[static_cast<std::size_t>(1 + stride + bad)];
    const double good = value;
    value = 1e39;
    {
      BinWriter writer(path, n, d);
      CHECK_THROWS_AS(
          writer.put(BinType::float32, distance.data() + 1, n, stride, 3),
          FileFailure);
    }
    value = good;
    CHECK(bytes_of(path).empty());
  }
}

TEST_CASE("a file shorter than its head says nothing of rows") {
  const Folder folder;
  put(folder.path + "/file", "1234567");
  const BinHead head = BinReader(folder.path + "/file").head();
  CHECK(head.bytes == 7);
  CHECK(head.rows == -1);
}

TEST_CASE("a long file is told by its ends, or by all of it") {
  const Folder folder;
  const std::string path = folder.path + "/file";
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{9}, std::size_t{65536}, std::size_t{100000},
        std::size_t{200000}}) {
    std::string bytes(size, 'a');
    put(path, bytes);
    const FileFacts first = facts_of_file(path, true);
    CHECK(first.bytes == static_cast<std::int64_t>(size));
    CHECK(facts_of_file(path, false).ends == first.ends);
    CHECK(facts_of_file(path, false).whole.empty());
    if (size == 0) continue;
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::string other = bytes;
      other[at] = 'b';
      put(path, other);
      const FileFacts changed = facts_of_file(path, true);
      CHECK(changed.whole != first.whole);
      const bool seen = size <= 131072 || at != size / 2;
      CHECK((changed.ends != first.ends) == seen);
    }
  }
}

TEST_CASE("entries go to their columns, row by row") {
  // Rows 5 and 6 have the neighbours 1, 3 and 3, none.
  const std::vector<std::int32_t> index = {1, 3, 3, kMissing};
  const std::vector<double> distance = {0.25, 0.5, 0.75, 0};
  std::vector<double> next = {0, 0, 1};
  std::vector<std::int32_t> row_of(3);
  std::vector<double> values(3);
  SparsePlaces places;
  places.num_columns = 3;
  places.next = next.data();
  places.row_of = row_of.data();
  places.values = values.data();
  put_in_columns(places, index.data(), distance.data(), 2, 2, 5, kMissing);
  CHECK(row_of == std::vector<std::int32_t>{5, 5, 6});
  CHECK(values == std::vector<double>{0.25, 0.75, 0.5});
  CHECK(next == std::vector<double>{1, 0, 3});
  places.num_columns = 2;
  CHECK_THROWS_AS(
      put_in_columns(places, index.data(), distance.data(), 2, 2, 5, kMissing),
      std::out_of_range);
}
