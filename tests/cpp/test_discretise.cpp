// Discretisation of rows with obvious cuts. test-study-mdl_filter.R compares
// the whole with a naive reference.

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>
#include "core/cover/discretise.hpp"

using namespace fsknn;

namespace {

std::vector<RowCuts> cut_rows(const std::vector<double>& values,
                              std::int64_t num_rows,
                              const std::vector<int>& classes, int num_classes,
                              int num_threads = 1) {
  const MatrixSource<double> source(values.data(), num_rows,
                                    static_cast<std::int64_t>(classes.size()));
  return discretise(source, classes, num_classes, num_threads);
}

/// Cuts one row.
RowCuts cut_row(const std::vector<double>& values,
                const std::vector<int>& classes, int num_classes = 2) {
  return cut_rows(values, 1, classes, num_classes)[0];
}

const std::vector<int> kHalves{0, 0, 0, 0, 0, 1, 1, 1, 1, 1};

}  // namespace

TEST_CASE("a row that tells the class exactly has one cut, of one bit") {
  const RowCuts found = cut_row({1, 2, 3, 4, 5, 8, 9, 10, 11, 12}, kHalves);
  CHECK(found.cuts == std::vector<double>{6.5});
  CHECK(found.gain == doctest::Approx(1.0));
}

TEST_CASE("three classes in three intervals have two cuts") {
  std::vector<double> values;
  std::vector<int> classes;
  for (int s = 0; s < 30; ++s) {
    values.push_back(s / 10 * 100 + s);
    classes.push_back(s / 10);
  }
  const RowCuts found = cut_row(values, classes, 3);
  CHECK(found.cuts == std::vector<double>{59.5, 169.5});
  CHECK(found.gain == doctest::Approx(std::log2(3.0)));
}

TEST_CASE("the criterion refuses what does not pay") {
  // For two samples of each class log2(N - 1) / N + Delta / N is 0.79 + 0.20.
  const RowCuts two = cut_row({1, 2, 3, 4}, {0, 0, 1, 1});
  const double least = (std::log2(3.0) + std::log2(7.0) - 2.0) / 4.0;
  CHECK(two.cuts.size() == (1.0 > least ? 1u : 0u));
  // For one sample of each class the gain is 1 bit; log2(1) + log2(7) - 2 =
  // 0.81, divided by 2.
  CHECK(cut_row({1, 2}, {0, 1}).cuts == std::vector<double>{1.5});
  // The classes alternate, so that there is no cut.
  const RowCuts mixed =
      cut_row({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(mixed.cuts.empty());
  CHECK(mixed.gain == 0.0);
}

TEST_CASE("equal values are never parted, and a constant row has no cut") {
  CHECK(cut_row(std::vector<double>(10, 3.0), kHalves).cuts.empty());
  // 5 has both classes: cuts can only lie beside it.
  const RowCuts tied = cut_row({1, 2, 3, 4, 5, 5, 9, 10, 11, 12}, kHalves);
  for (const double cut : tied.cuts) CHECK((cut == 4.5 || cut == 7.0));
}

TEST_CASE("a cut between neighbours in double, or of huge values, is finite") {
  const double next = std::nextafter(1.0, 2.0);
  std::vector<double> values(10, 1.0);
  for (std::size_t s = 5; s < 10; ++s) values[s] = next;
  CHECK(cut_row(values, kHalves).cuts == std::vector<double>{1.0});
  const double huge = std::numeric_limits<double>::max();
  for (std::size_t s = 0; s < 10; ++s) values[s] = s < 5 ? huge / 2 : huge;
  const RowCuts found = cut_row(values, kHalves);
  REQUIRE(found.cuts.size() == 1);
  CHECK(found.cuts[0] == 0.75 * huge);
}

TEST_CASE("levels count the cuts below a value, and leave missing ones") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // Rows 0 and 1 of 4 samples, column-major; row 1 is requested.
  const std::vector<double> values{0, 1, 0, 2, 0, 2.5, 0, nan};
  const MatrixSource<double> source(values.data(), 2, 4);
  std::vector<int> levels(4, 0);
  assign_levels(source, {1}, {{1.0, 2.0}}, 1, -9, levels.data());
  CHECK(levels == std::vector<int>{1, 2, 3, -9});
}

TEST_CASE("many rows are cut alike by any number of threads") {
  const std::int64_t rows = 1000, samples = 40;
  std::vector<double> values;
  std::vector<int> classes;
  unsigned state = 1;
  for (std::int64_t s = 0; s < samples; ++s) {
    classes.push_back(static_cast<int>(s % 2));
    for (std::int64_t r = 0; r < rows; ++r) {
      state = state * 1664525u + 1013904223u;
      values.push_back((state >> 24) + (s % 2) * (r % 256));
    }
  }
  const auto one = cut_rows(values, rows, classes, 2);
  const auto three = cut_rows(values, rows, classes, 2, 3);
  std::size_t with_cuts = 0;
  for (std::size_t r = 0; r < one.size(); ++r) {
    CHECK(one[r].cuts == three[r].cuts);
    CHECK(one[r].gain == three[r].gain);
    with_cuts += !one[r].cuts.empty();
  }
  CHECK(with_cuts > 0);
  CHECK(with_cuts < one.size());
}
