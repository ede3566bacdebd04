#include <Rcpp.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace {

// Between two looks whether to stop: some hundredths of a second.
constexpr std::int64_t kDrawsAtOnce = 1 << 20;

// Every row's values in an order of its own: x[i, sample.int(ncol(x))] of one
// row after another, from R's own stream.
template <int Type>
SEXP permute_rows(const Rcpp::Matrix<Type>& x) {
  const int n = x.nrow(), d = x.ncol();
  Rcpp::Matrix<Type> out(n, d);
  std::vector<int> left(static_cast<std::size_t>(d));
  for (std::int64_t i = 0, drawn = 0; i < n; ++i, drawn += d) {
    if (drawn > kDrawsAtOnce) {
      drawn = 0;
      Rcpp::checkUserInterrupt();
    }
    const int row = static_cast<int>(i);
    std::iota(left.begin(), left.end(), 0);
    // As sample.int() does: what was taken gives its place to the last.
    for (int f = 0, last = d; f < d; ++f) {
      int& at = left[static_cast<std::size_t>(
          R_unif_index(static_cast<double>(last)))];
      out(row, f) = x(row, at);
      at = left[static_cast<std::size_t>(--last)];
    }
  }
  return out;
}

}  // namespace

// [[Rcpp::export]]
SEXP cpp_permute_rows(SEXP x) {
  switch (TYPEOF(x)) {
    case REALSXP: return permute_rows<REALSXP>(x);
    case INTSXP: return permute_rows<INTSXP>(x);
    case LGLSXP: return permute_rows<LGLSXP>(x);
    default: Rcpp::stop("not a numeric matrix");
  }
}
