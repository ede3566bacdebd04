// Covariates: their basis, the residuals of rows, and the engine against the
// definition.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "answers.hpp"
#include "cases.hpp"
#include "core/contract/covariates.hpp"
#include "core/contract/prepare.hpp"
#include "core/files/row_file.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "core/search/brute.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/search/engine.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

using Column = std::vector<double>;

Column column_of(const Matrix& m, std::int64_t i) {
  Column c;
  for (std::int64_t f = 0; f < m.d; ++f)
    c.push_back(m.values[static_cast<std::size_t>(f * m.n + i)]);
  return c;
}

SampleCovariates covariates_of(const std::vector<Column>& columns,
                               const SampleWeights* weights = nullptr) {
  Column values;
  for (const Column& c : columns)
    values.insert(values.end(), c.begin(), c.end());
  return SampleCovariates(values.data(),
                          static_cast<std::int64_t>(columns[0].size()),
                          static_cast<std::int64_t>(columns.size()), weights);
}

double product(const double* a, const double* b, std::int64_t size) {
  long double s = 0.0;
  for (std::int64_t f = 0; f < size; ++f)
    s += static_cast<long double>(a[f]) * static_cast<long double>(b[f]);
  return static_cast<double>(s);
}

/// The largest deviation of the vectors from orthonormality.
double worst_angle(const SampleCovariates& covariates) {
  const FeatureCovariates view = covariates.view();
  const std::int64_t padded = padded_features(covariates.num_features());
  double worst = 0.0;
  for (std::int64_t i = 0; i <= covariates.rank(); ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      worst =
          std::max(worst, std::fabs(product(view.basis + i * padded,
                                            view.basis + j * padded, padded) -
                                    (i == j ? 1.0 : 0.0)));
  return worst;
}

/// The prepared row; empty if the covariates explain all of it.
Buffer<double> prepared(const Column& row, const SampleCovariates& covariates,
                        const SampleWeights* weights = nullptr) {
  const std::int64_t d = covariates.num_features();
  Buffer<double> x(padded_features(d));
  std::copy(row.begin(), row.end(), x.data());
  clear_padding(x.data(), d, x.size());
  RowRecipe recipe;
  recipe.form = RowForm::centred_unit;
  recipe.covariates = covariates.view();
  if (weights != nullptr) recipe.weights = weights->view();
  RowScratch scratch;
  prepare_row<ScalarLanes>(recipe, scratch, x.data(), d, x.size());
  return scratch.varies ? std::move(x) : Buffer<double>();
}

/// The row's largest product with a vector of the basis.
double along_basis(const Buffer<double>& z,
                   const SampleCovariates& covariates) {
  double most = 0.0;
  for (std::int64_t j = 0; j <= covariates.rank(); ++j)
    most =
        std::max(most, std::fabs(product(covariates.view().basis + j * z.size(),
                                         z.data(), z.size())));
  return most;
}

Column sum_of(const Column& a, double times, const Column& b) {
  Column c = a;
  for (std::size_t f = 0; f < c.size(); ++f) c[f] += times * b[f];
  return c;
}

std::vector<double> some_weights(std::int64_t d) {
  std::vector<double> weights;
  for (std::int64_t f = 0; f < d; ++f)
    weights.push_back(std::ldexp(1.0 + static_cast<double>(f % 7),
                                 static_cast<int>(f % 40) - 20));
  return weights;
}

}  // namespace

TEST_CASE("covariates become an orthonormal basis, whatever they are like") {
  const Matrix m = normal("covariates", 12, 37, 91);
  std::vector<Column> columns;
  for (std::int64_t i = 0; i < m.n; ++i) columns.push_back(column_of(m, i));
  // Columns far from 0, of any magnitude, and nearly equal to an earlier one.
  for (double& c : columns[1]) c = 1e9 + c;
  for (double& c : columns[2]) c *= 1e300;
  for (double& c : columns[3]) c *= 1e-310;
  columns[4] = sum_of(columns[5], 1e-6, columns[4]);
  const SampleWeights weights(some_weights(37));
  for (const SampleWeights* const given :
       std::vector<const SampleWeights*>{nullptr, &weights}) {
    const SampleCovariates covariates = covariates_of(columns, given);
    CHECK(covariates.rank() == 12);
    CHECK(covariates.view().vectors == 16);
    CHECK(worst_angle(covariates) < 2e-15);
  }
}

TEST_CASE("covariates that say nothing new are dropped") {
  const Matrix m = normal("covariates", 4, 23, 92);
  const Column a = column_of(m, 0), b = column_of(m, 1), c = column_of(m, 2);
  const Column zero(23, 0.0), seven(23, 7.0);
  Column hardly = seven;
  hardly[3] = std::nextafter(7.0, 8.0);
  std::vector<Column> columns = {zero,
                                 a,
                                 seven,
                                 sum_of(a, 2.0, a),
                                 hardly,
                                 b,
                                 sum_of(sum_of(b, 1e300, b), -3.0, a),
                                 sum_of(a, 1e-9, c),
                                 sum_of(a, 1e-6, c)};
  columns[6] = sum_of(sum_of(b, 5.0, a), 1.0, seven);
  const SampleCovariates covariates = covariates_of(columns);
  CHECK(covariates.kept() == std::vector<std::int64_t>{1, 5, 8});
  CHECK(covariates.leave_something());
  CHECK(worst_angle(covariates) < 2e-15);
  CHECK_FALSE(covariates_of({zero, seven}).view().given());
  // As many covariates as samples, and more.
  std::vector<Column> many;
  const Matrix wide = normal("many", 9, 6, 93);
  for (std::int64_t i = 0; i < 9; ++i) many.push_back(column_of(wide, i));
  CHECK(covariates_of(many).rank() == 5);
  CHECK_FALSE(covariates_of(many).leave_something());
  many.resize(4);
  CHECK(covariates_of(many).leave_something());
  many[1][2] = std::nan("");
  CHECK_THROWS_AS(covariates_of(many), std::invalid_argument);
  many[1][2] = HUGE_VAL;
  CHECK_THROWS_AS(covariates_of(many), std::invalid_argument);
}

TEST_CASE("what covariates leave is orthogonal to them, and has length 1") {
  const Matrix m = normal("rows", 30, 29, 94);
  std::vector<Column> columns;
  for (std::int64_t i = 0; i < 6; ++i) columns.push_back(column_of(m, i));
  const SampleWeights weights(some_weights(29));
  for (const SampleWeights* const given :
       std::vector<const SampleWeights*>{nullptr, &weights}) {
    const SampleCovariates covariates = covariates_of(columns, given);
    for (const double scale : {1.0, 1e300, 1e-300, 1e-315})
      for (const double left : {1.0, 1e-4, 1e-8})
        for (const double level : {0.0, 1e3}) {
          Column row = sum_of(columns[2], -2.0, columns[5]);
          row = sum_of(row, left, column_of(m, 20));
          for (double& x : row) x = (x + level) * scale;
          // Subnormal numbers have few digits, so that rounding is part of the
          // row itself.
          const Buffer<double> z = prepared(row, covariates, given);
          REQUIRE(z.size() == 32);
          CHECK(std::fabs(product(z.data(), z.data(), 32) - 1.0) < 1e-14);
          CHECK(along_basis(z, covariates) < 4e-15);
        }
  }
}

TEST_CASE("a row in the span of the covariates has nothing left") {
  const Matrix m = normal("rows", 9, 31, 95);
  const std::vector<Column> columns = {column_of(m, 0), column_of(m, 1),
                                       column_of(m, 2)};
  const SampleWeights weights(some_weights(31));
  for (const SampleWeights* const given :
       std::vector<const SampleWeights*>{nullptr, &weights}) {
    const SampleCovariates covariates = covariates_of(columns, given);
    for (const double scale : {1.0, 1e300, 1e-300})
      for (const double level : {0.0, 1.0, 1e6}) {
        Column row = sum_of(columns[0], 3.0, columns[1]);
        row = sum_of(row, -0.1, columns[2]);
        for (double& x : row) x = (x + level) * scale;
        CHECK(prepared(row, covariates, given).size() == 0);
        // A small part of another row remains as the residual.
        row =
            sum_of(row, 1e-9 * std::fmax(level, 1.0) * scale, column_of(m, 5));
        CHECK(prepared(row, covariates, given).size() == 32);
      }
  }
}

TEST_CASE("with one degree of freedom left rows are equal or opposite") {
  const Matrix m = normal("rows", 20, 7, 96);
  std::vector<Column> columns;
  for (std::int64_t i = 0; i < 5; ++i) columns.push_back(column_of(m, i));
  const SampleCovariates covariates = covariates_of(columns);
  CHECK(covariates.leave_something());
  const Buffer<double> first = prepared(column_of(m, 5), covariates);
  REQUIRE(first.size() == 8);
  for (std::int64_t i = 6; i < 20; ++i) {
    const Buffer<double> z = prepared(column_of(m, i), covariates);
    REQUIRE(z.size() == 8);
    CHECK(std::fabs(product(first.data(), z.data(), 8)) ==
          doctest::Approx(1.0).epsilon(1e-13));
  }
}

TEST_CASE("adjusted answers are exactly the brute-force ones") {
  const Matrix of_samples = normal("covariates", 5, 29, 97);
  std::vector<Column> columns;
  for (std::int64_t i = 0; i < 5; ++i)
    columns.push_back(column_of(of_samples, i));
  for (double& c : columns[4]) c = c > 0.0 ? 1.0 : 0.0;
  const auto weights = std::make_shared<SampleWeights>(some_weights(29));
  Folder folder;
  for (const Matrix& m : hard_cases(150, 29)) {
    const auto points = m.source();
    for (const char* const name : {"pearson", "spearman"})
      for (const char* const sign : {"signed", "absolute"})
        for (const bool weighted : {false, true}) {
          CAPTURE(m.name);
          CAPTURE(name);
          CAPTURE(weighted);
          Request r;
          r.k = 7;
          r.metric = &find_metric(name, sign);
          if (weighted) r.weights = weights;
          r.covariates = std::make_shared<SampleCovariates>(
              covariates_of(columns, r.weights.get()));
          Preparing preparing;
          preparing.recipe = recipe_of(r, 0);
          preparing.kernel = &prepare_row<ScalarLanes>;
          const MatrixFacts facts = scan(points, 2, nullptr, {}, preparing);
          std::set_union(facts.constant.begin(), facts.constant.end(),
                         facts.explained.begin(), facts.explained.end(),
                         std::back_inserter(r.skip));
          if (m.n - static_cast<std::int64_t>(r.skip.size()) <= r.k) continue;
          Answer expected(m.n, r.k);
          brute_force(r, points, nullptr, expected.view);
          for (const cpu::Kernels* kernels : cpu::available_kernels()) {
            r.instruction_set = kernels->name;
            r.num_threads = 2;
            r.chunk_size = 48;
            preparing.kernel = kernels->prepare_row;
            CHECK(scan(points, 1, nullptr, {}, preparing).explained ==
                  facts.explained);
            Answer found(m.n, r.k);
            cpu::find_neighbours(r, points, nullptr, found.view, nullptr,
                                 nullptr);
            CHECK(found == expected);
          }
          // Rows are adjusted as they are written to a file.
          RowFileForm form;
          form.folder = folder.path;
          form.num_points = m.n;
          form.num_features = form.strip_features = m.d;
          RowFile file(form, r, preparing.kernel);
          file.add(0, 0, points);
          CHECK(file.finish(nullptr).known.explained == facts.explained);
          r.max_memory = 1 << 15;
          Answer found(m.n, r.k);
          cpu::find_neighbours(r, file, nullptr, found.view, nullptr, nullptr);
          CHECK(found == expected);
        }
  }
}
