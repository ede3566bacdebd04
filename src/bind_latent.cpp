#include "bind_common.hpp"

#include <algorithm>
#include <vector>

#include "core/base/poll.hpp"
#include "core/rows/latent.hpp"

using namespace fsknn;

namespace fsknn {
namespace bind {

std::unique_ptr<RowSource> latent_source(const Rcpp::List& x) {
  LatentRule rule;
  rule.num_features = Rcpp::as<int>(x["d"]);
  rule.num_factors = Rcpp::as<int>(x["factors"]);
  rule.noise = Rcpp::as<int>(x["noise"]);
  rule.seed = static_cast<std::uint64_t>(Rcpp::as<int>(x["seed"]));
  return std::unique_ptr<RowSource>(
      new LatentSource(rule, Rcpp::as<int>(x["n"])));
}

}  // namespace bind
}  // namespace fsknn

// Some rows (from 1) as a matrix.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix cpp_latent_rows(Rcpp::List x, Rcpp::IntegerVector rows) {
  const Listening nobody(nullptr);
  const std::unique_ptr<RowSource> source = bind::latent_source(x);
  const R_xlen_t n = rows.size(), d = source->num_features();
  Rcpp::NumericMatrix out(static_cast<int>(n), static_cast<int>(d));
  std::vector<double> row(static_cast<std::size_t>(d));
  for (R_xlen_t r = 0; r < n; ++r) {
    if (r % 1024 == 0) Rcpp::checkUserInterrupt();
    if (rows[r] < 1 || rows[r] > source->num_points())
      Rcpp::stop("There is no such row.");
    source->read(rows[r] - 1, 1, row.data(), d);
    for (R_xlen_t f = 0; f < d; ++f)
      out[f * n + r] = row[static_cast<std::size_t>(f)];
  }
  return out;
}
