// Genotypes of PLINK files.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/files/bed_file.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

void put_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// NaN as 9, so that values can be compared.
std::vector<double> rows_read(const BedRows& rows, std::int64_t first,
                              std::int64_t count, std::int64_t stride) {
  std::vector<double> read(static_cast<std::size_t>(count * stride), -1.0);
  rows.read(first, count, read.data(), stride);
  for (double& value : read)
    if (std::isnan(value)) value = 9;
  return read;
}

}  // namespace

TEST_CASE("genotypes are copies of an allele, a byte for four samples") {
  const Folder folder;
  const std::string path = folder.path + "/file.bed";
  // Codes 0 1 2 3 0, and 3 3 2 0 1 with bits behind them that say nothing.
  put_file(path, std::string("\x6c\x1b\x01\xe4\x00\x2f\xfd", 7));
  const BedRows first(path, 2, 5, Allele::first);
  CHECK(first.num_points() == 2);
  CHECK(first.num_features() == 5);
  CHECK(first.on_disk());
  CHECK(rows_read(first, 0, 2, 6) ==
        std::vector<double>{2, 9, 1, 0, 2, -1, 0, 0, 1, 2, 9, -1});
  const BedRows second(path, 2, 5, Allele::second);
  CHECK(rows_read(second, 1, 1, 5) == std::vector<double>{2, 2, 1, 0, 9});
  CHECK(rows_read(second, 1, 0, 5).empty());
  CHECK(counted_allele("A1") == Allele::first);
  CHECK(counted_allele("A2") == Allele::second);
  CHECK_THROWS_AS(counted_allele("a1"), std::invalid_argument);
}

TEST_CASE("more genotypes are read than are decoded at a time") {
  const Folder folder;
  const std::string path = folder.path + "/file.bed";
  constexpr std::int64_t n = 70001, d = 5;
  std::string bytes("\x6c\x1b\x01", 3);
  std::vector<double> values;
  const char code_of[] = {3, 2, 0};
  for (std::int64_t i = 0; i < n; ++i) {
    unsigned char pair[2] = {0, 0};
    for (std::int64_t f = 0; f < d; ++f) {
      const std::int64_t copies = (i * i + f) % 3;
      values.push_back(static_cast<double>(copies));
      pair[f / 4] = static_cast<unsigned char>(pair[f / 4] | code_of[copies]
                                                                 << f % 4 * 2);
    }
    bytes.append(reinterpret_cast<const char*>(pair), 2);
  }
  put_file(path, bytes);
  const BedRows rows(path, n, d, Allele::first);
  CHECK((rows_read(rows, 0, n, d) == values));
  CHECK((rows_read(rows, n - 1, 1, d) ==
         std::vector<double>(values.end() - d, values.end())));
  CHECK_THROWS_AS(rows_read(rows, n - 1, 2, d), FileFailure);
}

TEST_CASE("a file of genotypes has the head and length that it must have") {
  const Folder folder;
  const std::string path = folder.path + "/file.bed";
  const std::string right("\x6c\x1b\x01\xe4\x00\x2f\xfd", 7);
  for (std::size_t size = 0; size < right.size(); ++size) {
    put_file(path, right.substr(0, size));
    CHECK_THROWS_AS(BedRows(path, 2, 5, Allele::first), FileFailure);
  }
  put_file(path, right + "a");
  CHECK_THROWS_AS(BedRows(path, 2, 5, Allele::first), FileFailure);
  for (std::size_t bit = 0; bit < 24; ++bit) {
    std::string other = right;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
    put_file(path, other);
    CHECK_THROWS_AS(BedRows(path, 2, 5, Allele::first), FileFailure);
  }
  put_file(path, right);
  CHECK_THROWS_AS(BedRows(path, 2, 9, Allele::first), FileFailure);
  CHECK_THROWS_AS(BedRows(path, 3, 5, Allele::first), FileFailure);
  CHECK_THROWS_AS(BedRows(folder.path, 2, 5, Allele::first), FileFailure);
  CHECK_THROWS_AS(BedRows(path + "-none", 2, 5, Allele::first), FileFailure);
  // An open file becomes shorter.
  const BedRows rows(path, 2, 5, Allele::first);
  put_file(path, right.substr(0, 5));
  CHECK(rows_read(rows, 0, 1, 5) == std::vector<double>{2, 9, 1, 0, 2});
  CHECK_THROWS_AS(rows_read(rows, 1, 1, 5), FileFailure);
}
