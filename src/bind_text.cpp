// Numbers as text, and lines of a CSV file.
#include <R_ext/Utils.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bind_common.hpp"

namespace {

// Significant digits that survive conversion from text to double and back.
constexpr int kSafeDigits = 15;
// A double represents every whole number up to this one.
constexpr double kLargestWhole = 9007199254740992;

// Digits beyond kSafeDigits are written only if the C library or R reads fewer
// digits as another double. R's conversion is sometimes off by one bit.
void append_number(double x, int digits, std::string& text) {
  if (!std::isfinite(x)) {
    text += R_IsNA(x) ? "NA" : std::isnan(x) ? "NaN" : x > 0 ? "Inf" : "-Inf";
    return;
  }
  char buffer[40];
  // Rounding an id or a count would change its meaning.
  if (x == std::trunc(x) && std::fabs(x) <= kLargestWhole) {
    std::snprintf(buffer, sizeof buffer, "%.0f", x);
    text += buffer;
    return;
  }
  std::snprintf(buffer, sizeof buffer, "%.*g", std::min(digits, kSafeDigits),
                x);
  if (digits > kSafeDigits &&
      (std::strtod(buffer, nullptr) != x || R_strtod(buffer, nullptr) != x))
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, x);
  text += buffer;
}

// A column whose values can be appended row by row.
class Cells {
 public:
  explicit Cells(SEXP values) : values_(values) {}

  void append(R_xlen_t row, int digits, std::string& text) const {
    switch (TYPEOF(values_)) {
      case REALSXP: {
        const double x = REAL(values_)[row];
        if (std::isnan(x))
          text += "NA";
        else
          append_number(x, digits, text);
        break;
      }
      case INTSXP: {
        const int x = INTEGER(values_)[row];
        text += x == NA_INTEGER ? "NA" : std::to_string(x);
        break;
      }
      case STRSXP: {
        const SEXP x = STRING_ELT(values_, row);
        text += x == NA_STRING ? "NA" : Rf_translateCharUTF8(x);
        break;
      }
      default: Rcpp::stop("a column is of no type that has cells");
    }
  }

 private:
  SEXP values_;
};

}  // namespace

// digits: significant digits, 1 to 17.
// [[Rcpp::export(rng = false)]]
Rcpp::CharacterVector cpp_number_text(Rcpp::NumericVector x, int digits) {
  Rcpp::CharacterVector text(x.size());
  std::string number;
  for (R_xlen_t i = 0; i < x.size(); ++i) {
    number.clear();
    append_number(x[i], digits, number);
    text[i] = number;
  }
  return text;
}

// Rows as one text without a final line break. columns: of equal length,
// double, integer or character (written unchanged).
// [[Rcpp::export(rng = false)]]
Rcpp::String cpp_csv_lines(Rcpp::List columns, int digits) {
  const std::vector<Cells> cells(columns.begin(), columns.end());
  const R_xlen_t num_rows = cells.empty() ? 0 : Rf_xlength(columns[0]);
  std::string text;
  for (R_xlen_t row = 0; row < num_rows; ++row) {
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) text += ',';
      cells[column].append(row, digits, text);
    }
    if (row + 1 < num_rows) text += '\n';
  }
  return Rcpp::String(text, CE_UTF8);
}
