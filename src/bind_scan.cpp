#include "bind_common.hpp"
#include "core/scan.hpp"

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

Rcpp::IntegerVector one_based(const std::vector<std::int64_t>& rows) {
  Rcpp::IntegerVector out(rows.begin(), rows.end());
  return out + 1;
}

Rcpp::List list_of(const MatrixFacts& facts) {
  return Rcpp::List::create(
      Rcpp::_["non_finite"] = static_cast<double>(facts.non_finite),
      Rcpp::_["non_finite_at"] = positions(facts.non_finite_at),
      Rcpp::_["non_finite_rows"] = one_based(facts.non_finite_rows),
      Rcpp::_["negative"] = static_cast<double>(facts.negative),
      Rcpp::_["negative_at"] = positions(facts.negative_at),
      Rcpp::_["non_binary"] = static_cast<double>(facts.non_binary),
      Rcpp::_["non_binary_at"] = positions(facts.non_binary_at),
      Rcpp::_["constant"] = one_based(facts.constant),
      Rcpp::_["zero"] = one_based(facts.zero),
      Rcpp::_["largest"] = facts.largest);
}

}  // namespace bind
}  // namespace fsknn

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_scan(SEXP x, int num_threads, bool binary = false) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    return bind::list_of(
        scan(*bind::row_source(x), num_threads, progress.get(), binary));
  });
}
