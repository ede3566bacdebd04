#include "bind_common.hpp"
#include "core/impute.hpp"
#include "core/poll.hpp"

using namespace fsknn;

// x: double, NA where missing. rows: from 1. index, distance: of a search's
// answer for these rows. how: available, by_distance, rescaled.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_impute(Rcpp::NumericMatrix x, Rcpp::IntegerVector rows,
                      Rcpp::IntegerMatrix index, Rcpp::NumericMatrix distance,
                      int k, Rcpp::List how, int num_threads) {
  return bind::guarded([&] {
    std::vector<std::int32_t> numbers(rows.begin(), rows.end());
    for (std::int32_t& number : numbers) --number;
    ImputeTask task;
    task.x = x.begin();
    task.num_points = x.nrow();
    task.num_features = x.ncol();
    task.rows = numbers.data();
    task.num_rows = static_cast<std::int64_t>(numbers.size());
    task.index = index.begin();
    task.distance = distance.begin();
    task.most = index.ncol();
    task.k = k;
    task.available = Rcpp::as<bool>(how["available"]);
    task.by_distance = Rcpp::as<bool>(how["by_distance"]);
    task.rescaled = Rcpp::as<bool>(how["rescaled"]);
    task.num_threads = num_threads;
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const ImputedEntries found = impute(task, progress.get());
    return Rcpp::List::create(Rcpp::_["row"] = Rcpp::wrap(found.row),
                              Rcpp::_["column"] = Rcpp::wrap(found.column),
                              Rcpp::_["value"] = Rcpp::wrap(found.value),
                              Rcpp::_["sd"] = Rcpp::wrap(found.spread),
                              Rcpp::_["donors"] = Rcpp::wrap(found.donors));
  });
}

// How many values of each row and column are missing. x: double.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_count_missing(Rcpp::NumericMatrix x) {
  return bind::guarded([&] {
    const R_xlen_t n = x.nrow(), d = x.ncol();
    Rcpp::IntegerVector rows(n), columns(d);
    const double* values = x.begin();
    int* of_rows = rows.begin();
    for (R_xlen_t f = 0; f < d; ++f) {
      int missing = 0;
      for (R_xlen_t i = 0; i < n; ++i) {
        const int is_missing = !(values[f * n + i] == values[f * n + i]);
        of_rows[i] += is_missing;
        missing += is_missing;
      }
      columns[f] = missing;
      poll_after(static_cast<double>(n));
    }
    return Rcpp::List::create(Rcpp::_["rows"] = rows,
                              Rcpp::_["columns"] = columns);
  });
}
