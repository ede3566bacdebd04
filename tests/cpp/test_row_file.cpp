// Rows in a temporary file.

#include <doctest/doctest.h>
#ifndef _WIN32
#include <sys/resource.h>
#endif

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cases.hpp"
#include "core/contract/metrics.hpp"
#include "core/files/digest.hpp"
#include "core/files/row_file.hpp"
#include "core/rows/filled.hpp"
#include "core/rows/prepared.hpp"
#include "cpu/kernels/kernels.hpp"

using namespace fsknn;

namespace {

std::string temporary_folder() {
  return std::filesystem::temp_directory_path().string();
}

/// 70 x 19, with missing values, a row without a value, and one of zeros.
Matrix with_holes() {
  Matrix m = normal("holes", 70, 19, 5);
  for (std::int64_t i = 0; i < m.n; i += 3)
    m.at(i, i % m.d) = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t f = 0; f < m.d; ++f) {
    m.at(7, f) = std::numeric_limits<double>::quiet_NaN();
    m.at(8, f) = 0.0;
  }
  return m;
}

/// Rows first .. first + count - 1, and `width` columns from f0 on, as a tile.
Matrix tile_of(Matrix m, std::int64_t first, std::int64_t count,
               std::int64_t f0, std::int64_t width) {
  Matrix tile = make("tile", count, width);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t f = 0; f < width; ++f)
      tile.at(i, f) = m.at(first + i, f0 + f);
  return tile;
}

Request request_of(const char* metric) {
  Request request;
  request.k = 1;
  request.metric = &find_metric(metric, "signed");
  request.num_threads = 2;
  return request;
}

std::unique_ptr<RowFile> file_of(const Matrix& m, const Request& request,
                                 std::int64_t strip, bool fill,
                                 MissingFacts& facts) {
  RowFileForm form;
  form.folder = temporary_folder();
  form.num_points = m.n;
  form.num_features = m.d;
  form.strip_features = strip;
  form.fill_missing = fill;
  std::unique_ptr<RowFile> file(
      new RowFile(form, request, cpu::choose_kernels("auto").prepare_row));
  for (std::int64_t f0 = 0; f0 < m.d; f0 += strip)
    for (std::int64_t first = 0; first < m.n; first += 30) {
      const Matrix tile =
          tile_of(m, first, std::min<std::int64_t>(30, m.n - first), f0,
                  std::min(strip, m.d - f0));
      file->add(f0 / strip, first, tile.source());
    }
  facts = file->finish(nullptr);
  return file;
}

}  // namespace

TEST_CASE("a file's digest is that of the rows as they came") {
  Matrix m = with_holes();
  MissingFacts facts;
  const std::string expected = digest_source(m.source(), 1);
  for (const char* metric : {"spearman", "euclidean"})
    for (const std::int64_t strip : {19, 5})
      for (const bool fill : {false, true})
        CHECK(file_of(m, request_of(metric), strip, fill, facts)->digest() ==
              expected);
  m.at(69, 18) += 1.0;
  CHECK(file_of(m, request_of("spearman"), 5, true, facts)->digest() !=
        expected);
}

TEST_CASE("rows in a file are those in memory, filled and prepared") {
  const Matrix m = with_holes();
  const MeanFilled filled(
      std::unique_ptr<RowSource>(new MatrixSource<double>(m.source())));
  const MissingFacts facts = scan_missing(m.source(), 1);
  MissingFacts found;
  const RowKernel kernel = cpu::choose_kernels("auto").prepare_row;
  for (const char* metric : {"pearson", "spearman", "bicor", "cosine"})
    for (const std::int64_t strip : {19, 5}) {
      const Request request = request_of(metric);
      const std::vector<std::int64_t> skip = {7, 8};
      const PreparedPoints expected =
          prepare_points(filled, recipe_of(request, 0), skip, false, kernel, 1);
      const std::unique_ptr<RowFile> file =
          file_of(m, request, strip, true, found);
      CHECK(found.missing == facts.missing);
      CHECK(found.empty == facts.empty);
      CHECK(found.known.zero == facts.known.zero);
      CHECK(found.known.largest == facts.known.largest);
      const PreparedPoints stored =
          prepare_points(*file, recipe_of(request, 0), skip, false, kernel, 1);
      REQUIRE(stored.size() == expected.size());
      for (std::int64_t at = 0; at < stored.size(); ++at)
        for (std::int64_t f = 0; f < m.d; ++f)
          CHECK(stored.row(Place{at})[f] == expected.row(Place{at})[f]);
    }
}

TEST_CASE("a file that can't be made, written or read is a failure of ours") {
  const auto words_of = [](const std::function<void()>& work) {
    try {
      work();
    } catch (const DiskFailure& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  CHECK(words_of([] {
          DiskMatrix("/no/such/folder", 1, 1, 1);
        }).find("the folder for temporary files") == 0);
  const std::int64_t many = std::int64_t{1} << 28;
  CHECK(words_of([&] {
          DiskMatrix(temporary_folder(), many, many, many);
        }).find("too little room") == 0);

  // Rows that are not adjacent in memory, so that a call moves many pieces.
  const std::int64_t n = 1000, d = 200, stride = 201;
  std::vector<double> rows(static_cast<std::size_t>(n * stride));
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<double>(i);
  DiskMatrix file(temporary_folder(), n, d, d);
  std::vector<double> back(rows.size(), -1.0);
  CHECK(words_of([&] {
          file.read(0, n, back.data(), stride);
        }).find("a temporary file has become too short") == 0);
#ifndef _WIN32
  // A disk becomes full in the middle of a piece; a file size limit simulates
  // it.
  struct rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const struct rlimit small = {(1 << 20) + 100, before.rlim_max};
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string words =
      words_of([&] { file.write(0, n, rows.data(), stride); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, signal_before);
  CHECK(words.find("a temporary file could not be written") == 0);
#endif
  file.write(0, n, rows.data(), stride);
  file.read(0, n, back.data(), stride);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i % 201 == 200) back[i] = rows[i];  // the gaps between rows
  CHECK(back == rows);
}
