#include "bind_common.hpp"
#include "core/rows/prepared.hpp"
#include "core/rows/scan.hpp"
#include "cpu/kernels/kernels.hpp"

using namespace fsknn;

namespace {

Rcpp::IntegerMatrix positions(const std::vector<Position>& at) {
  Rcpp::IntegerMatrix out(static_cast<int>(at.size()), 2);
  for (int i = 0; i < out.nrow(); ++i) {
    const Position& position = at[static_cast<std::size_t>(i)];
    out(i, 0) = static_cast<int>(position.point + 1);
    out(i, 1) = static_cast<int>(position.feature + 1);
  }
  return out;
}

}  // namespace

namespace fsknn {
namespace bind {

Rcpp::List list_of(const MatrixFacts& facts) {
  return Rcpp::List::create(
      Rcpp::_["non_finite"] = static_cast<double>(facts.non_finite),
      Rcpp::_["non_finite_at"] = positions(facts.non_finite_at),
      Rcpp::_["non_finite_rows"] = one_based(facts.non_finite_rows),
      Rcpp::_["negative"] = static_cast<double>(facts.negative),
      Rcpp::_["negative_at"] = positions(facts.negative_at),
      Rcpp::_["off_levels"] = static_cast<double>(facts.off_levels),
      Rcpp::_["off_levels_at"] = positions(facts.off_levels_at),
      Rcpp::_["constant"] = one_based(facts.constant),
      Rcpp::_["zero"] = one_based(facts.zero),
      Rcpp::_["explained"] = one_based(facts.explained),
      Rcpp::_["largest"] = facts.largest,
      Rcpp::_["largest_row"] = facts.largest_row < 0
                                   ? NA_INTEGER
                                   : static_cast<int>(facts.largest_row + 1));
}

RowTest::RowTest(SEXP request) {
  if (Rf_isNull(request)) return;
  const Rcpp::List list(request);
  request_ = request_from(list);
  features_ = features_of(list);
  preparing_.recipe = recipe_of(request_, 0);
  preparing_.kernel = cpu::choose_kernels(request_.instruction_set).prepare_row;
}

}  // namespace bind
}  // namespace fsknn

// request: NULL; or, with covariates, the later request: `explained` has the
// rows that the covariates explain completely. Respects its `feature_subset`.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_scan(SEXP x, int num_threads, int levels = 0,
                    SEXP request = R_NilValue) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const bind::RowTest test(request);
    return bind::list_of(scan(*bind::row_source(x, test.features(), false),
                              num_threads, progress.get(), {true, levels},
                              test.preparing()));
  });
}

// The largest magnitude in `x`, a matrix; NA if a check of R's would report or
// leave out something. metric: its facts in R.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_scan_plain(SEXP x, int num_threads, Rcpp::List metric) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    EntriesCounted counted;
    counted.negative = Rcpp::as<bool>(metric["non_negative"]);
    counted.levels = Rcpp::as<int>(metric["levels"]);
    const std::string undefined =
        Rcpp::as<std::string>(metric["undefined_rows"]);
    const MatrixFacts facts =
        scan(*bind::matrix_source(x), num_threads, progress.get(), counted);
    const bool plain =
        facts.non_finite == 0 && facts.negative == 0 && facts.off_levels == 0 &&
        (undefined == "none" ||
         (undefined == "zero" ? facts.zero : facts.constant).empty());
    return Rcpp::List::create(Rcpp::_["largest"] =
                                  plain ? facts.largest : NA_REAL);
  });
}

// The columns of `values`, covariates with a row for each feature, that are not
// explained by the constant and earlier columns. weights: of the features, or
// NULL.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_covariates(Rcpp::NumericMatrix values, SEXP weights) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    std::unique_ptr<SampleWeights> given;
    if (!Rf_isNull(weights))
      given.reset(new SampleWeights(Rcpp::as<std::vector<double>>(weights)));
    const SampleCovariates covariates(values.begin(), values.nrow(),
                                      values.ncol(), given.get());
    return Rcpp::List::create(Rcpp::_["kept"] =
                                  bind::one_based(covariates.kept()));
  });
}
