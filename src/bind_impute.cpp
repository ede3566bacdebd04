#include "bind_common.hpp"
#include "core/search/impute.hpp"

using namespace fsknn;

// x: double, NA if missing. rows: from 1. index, distance: a search's answer
// for these rows. how: available, by_distance, rescaled.
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
    const MissingEntries entries = find_missing(task, progress.get());
    const R_xlen_t size = static_cast<R_xlen_t>(entries.size());
    Rcpp::IntegerVector row(Rcpp::no_init(size)), column(Rcpp::no_init(size));
    Rcpp::IntegerVector donors(Rcpp::no_init(size));
    Rcpp::NumericVector value(Rcpp::no_init(size)), sd(Rcpp::no_init(size));
    ImputedEntries out;
    out.row = row.begin();
    out.column = column.begin();
    out.value = value.begin();
    out.spread = sd.begin();
    out.no_spread = NA_REAL;
    out.donors = donors.begin();
    impute(task, entries, out, progress.get());
    return Rcpp::List::create(Rcpp::_["row"] = row, Rcpp::_["column"] = column,
                              Rcpp::_["value"] = value, Rcpp::_["sd"] = sd,
                              Rcpp::_["donors"] = donors);
  });
}

// Counts the missing values of each row and column. x: double.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_count_missing(Rcpp::NumericMatrix x, int num_threads) {
  return bind::guarded([&] {
    const MissingCounts counts =
        count_missing(x.begin(), x.nrow(), x.ncol(), num_threads);
    return Rcpp::List::create(Rcpp::_["rows"] = Rcpp::wrap(counts.rows),
                              Rcpp::_["columns"] = Rcpp::wrap(counts.columns));
  });
}

// x with other values at some positions, which are ordered by columns, from 1.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_put_entries(Rcpp::NumericMatrix x, Rcpp::IntegerVector row,
                           Rcpp::IntegerVector column,
                           Rcpp::NumericVector value, int num_threads) {
  return bind::guarded([&] {
    Rcpp::NumericMatrix out(Rcpp::no_init(x.nrow(), x.ncol()));
    PutEntries entries;
    entries.row = row.begin();
    entries.column = column.begin();
    entries.value = value.begin();
    entries.count = row.size();
    copy_with(x.begin(), x.nrow(), x.ncol(), entries, out.begin(), num_threads);
    return Rcpp::List::create(out);
  });
}
