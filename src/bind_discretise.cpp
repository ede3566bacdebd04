#include "bind_common.hpp"
#include "core/cover/discretise.hpp"

using namespace fsknn;

// x: points in rows, finite; classes: from 1, one per column.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_mdl_cuts(SEXP x, Rcpp::IntegerVector classes, int num_classes,
                        int num_threads, bool progress) {
  return bind::guarded([&] {
    std::vector<int> of_column(classes.begin(), classes.end());
    for (int& c : of_column) --c;
    const std::unique_ptr<Progress> told = bind::r_progress(progress, "Cuts");
    const std::vector<RowCuts> found =
        discretise(*bind::matrix_source(x), of_column, num_classes, num_threads,
                   told.get());
    Rcpp::List cuts(found.size());
    Rcpp::NumericVector gain(found.size());
    const Rcpp::NumericVector none(0);
    for (std::size_t i = 0; i < found.size(); ++i) {
      cuts[i] = none;
      if (!found[i].cuts.empty()) cuts[i] = Rcpp::wrap(found[i].cuts);
      gain[i] = found[i].gain;
    }
    return Rcpp::List::create(Rcpp::_["cuts"] = cuts, Rcpp::_["gain"] = gain);
  });
}

// rows: from 1; cuts: a list of increasing vectors, one per row.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_levels(SEXP x, Rcpp::IntegerVector rows, Rcpp::List cuts,
                      int num_threads) {
  return bind::guarded([&] {
    std::vector<std::int64_t> of_row(rows.begin(), rows.end());
    for (std::int64_t& i : of_row) --i;
    std::vector<std::vector<double>> cuts_of(of_row.size());
    for (std::size_t i = 0; i < of_row.size(); ++i)
      cuts_of[i] = Rcpp::as<std::vector<double>>(cuts[i]);
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const std::unique_ptr<RowSource> points = bind::matrix_source(x);
    Rcpp::IntegerMatrix levels(
        Rcpp::no_init(rows.size(), static_cast<int>(points->num_features())));
    assign_levels(*points, of_row, cuts_of, num_threads, NA_INTEGER,
                  levels.begin(), progress.get());
    return Rcpp::List::create(Rcpp::_["levels"] = levels);
  });
}
