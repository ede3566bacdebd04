// Points in a file that several processes read: core/files/point_file.hpp.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/files/durable.hpp"
#include "core/files/point_file.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

constexpr std::int64_t kPoints = 150, kFeatures = 7;

std::vector<double> some_values() {
  std::mt19937 random(4);
  std::vector<double> values(kPoints * kFeatures);
  for (double& x : values) x = static_cast<double>(random()) / 3.0;
  return values;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("points come back from a file as they were, in any part") {
  const Folder folder;
  const std::string path = folder.path + "/points";
  const std::vector<double> values = some_values();
  const MatrixSource<double> source(values.data(), kPoints, kFeatures);
  CHECK(PointFile(path, 5).state() == PointFile::State::missing);
  CHECK(write_point_file(path, source, 5));
  CHECK_FALSE(write_point_file(path, source, 5));
  const PointFile file(path, 5);
  REQUIRE(file.state() == PointFile::State::whole);
  CHECK(file.num_points() == kPoints);
  CHECK(file.num_features() == kFeatures);
  CHECK_FALSE(file.prepared());
  for (const std::int64_t stride : {kFeatures, kFeatures + 9})
    for (const std::int64_t first : {0, 1, 77, 149}) {
      const std::int64_t count = std::min<std::int64_t>(60, kPoints - first);
      std::vector<double> rows(static_cast<std::size_t>(count * stride), -1);
      std::vector<double> expected = rows;
      file.read(first, count, rows.data(), stride);
      source.read(first, count, expected.data(), stride);
      CHECK(rows == expected);
    }
  CHECK(PointFile(path, 6).state() == PointFile::State::other);
}

TEST_CASE("no byte of points is taken that is another") {
  const Folder folder;
  const std::string path = folder.path + "/points";
  const std::vector<double> values = some_values();
  const MatrixSource<double> source(values.data(), kPoints, kFeatures);
  write_point_file(path, source, 5);
  const std::string good = bytes_of(path);
  for (std::size_t at = 0; at < good.size(); at += 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    put(path, bad);
    bool seen = false;
    try {
      const PointFile file(path, 5);
      std::vector<double> rows(values.size());
      if (file.state() == PointFile::State::whole)
        file.read(0, kPoints, rows.data(), kFeatures);
      else
        seen = true;
    } catch (const FileFailure&) {
      seen = true;
    }
    CHECK(seen);
  }
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{39}, good.size() / 2, good.size() - 1}) {
    put(path, good.substr(0, size));
    CHECK(PointFile(path, 5).state() == PointFile::State::damaged);
  }
  put(path, good + "a");
  CHECK(PointFile(path, 5).state() == PointFile::State::damaged);
}

TEST_CASE("what is no file of points is told, and not waited for") {
  const Folder folder;
  CHECK_THROWS_AS(PointFile(folder.path, 5), FileFailure);
  const std::vector<double> values = some_values();
  const MatrixSource<double> source(values.data(), kPoints, kFeatures);
  CHECK_THROWS_AS(write_point_file(folder.path + "/none/points", source, 5),
                  FileFailure);
}
