#include "bind_common.hpp"
#include "core/filled.hpp"

using namespace fsknn;

namespace fsknn {
namespace bind {

Rcpp::List list_of(const MissingFacts& facts) {
  Rcpp::List out = list_of(facts.known);
  out["missing"] = static_cast<double>(facts.missing);
  out["empty"] = one_based(facts.empty);
  return out;
}

}  // namespace bind
}  // namespace fsknn

// What cpp_scan() tells of a matrix whose missing values are filled with their
// row's mean, and how many there are, and which rows hold nothing else.
// request: as of cpp_scan(). quick: counts of negative values are not wanted.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_scan_missing(SEXP x, int num_threads, SEXP request = R_NilValue,
                            bool quick = false) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const bind::RowTest test(request);
    return bind::list_of(
        scan_missing(*bind::row_source(x, test.features(), false), num_threads,
                     progress.get(), test.preparing(),
                     quick ? FilledBy::first : FilledBy::mean));
  });
}

// A testing aid: rows first .. as they are after their missing values are
// filled, [features x points].
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_filled(SEXP x) {
  return bind::guarded([&] {
    const MeanFilled source(bind::row_source(x));
    Rcpp::NumericMatrix rows(static_cast<int>(source.num_features()),
                             static_cast<int>(source.num_points()));
    source.read(0, source.num_points(), rows.begin(), source.num_features());
    return Rcpp::List::create(Rcpp::_["rows"] = rows);
  });
}
