#include <Rcpp.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace {

// Draws between two checks for an interrupt: some hundredths of a second.
constexpr std::int64_t kDrawsAtOnce = 1 << 20;

// Permutes the values of every row separately: x[i, sample.int(ncol(x))] row
// after row, from R's own random stream.
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
    // As in sample.int(), the last value replaces the drawn one.
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
