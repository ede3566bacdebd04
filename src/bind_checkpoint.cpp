// Digests of data, sealed files, and merging an answer from its splits.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bind_common.hpp"
#include "core/files/digest.hpp"
#include "core/files/durable.hpp"
#include "core/files/sealed_file.hpp"

using namespace fsknn;

namespace {

/// The values of a vector of a type that sealed files support.
void* start_of(SEXP x) {
  switch (TYPEOF(x)) {
    case LGLSXP: return LOGICAL(x);
    case INTSXP: return INTEGER(x);
    case REALSXP: return REAL(x);
    case RAWSXP: return RAW(x);
    default: throw std::invalid_argument("no vector of plain values");
  }
}

SealedType sealed_type(SEXP x) {
  switch (TYPEOF(x)) {
    case INTSXP: return SealedType::int32;
    case REALSXP: return SealedType::float64;
    case RAWSXP: return SealedType::byte;
    default: throw std::invalid_argument("a column has no such type");
  }
}

std::vector<std::string> names_of(const Rcpp::List& columns) {
  if (Rf_isNull(columns.names()) && columns.size() > 0)
    throw std::invalid_argument("columns have names");
  return columns.size() > 0 ? Rcpp::as<std::vector<std::string>>(
                                  Rcpp::CharacterVector(columns.names()))
                            : std::vector<std::string>();
}

const char* state_name(SealedState state) {
  switch (state) {
    case SealedState::whole: return "whole";
    case SealedState::missing: return "missing";
    case SealedState::unknown: return "unknown";
    case SealedState::damaged: return "damaged";
  }
  throw std::invalid_argument("a sealed file has no such state");
}

/// Compares columns with the types and lengths of cpp_read_sealed().
bool are_as_asked(const std::vector<SealedColumn>& columns,
                  const Rcpp::List& types, const Rcpp::NumericVector& lengths) {
  const std::vector<std::string> names = names_of(types);
  if (columns.size() != names.size()) return false;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const R_xlen_t at = static_cast<R_xlen_t>(c);
    if (columns[c].name != names[c] ||
        columns[c].type != sealed_type(types[at]) ||
        (!Rcpp::NumericVector::is_na(lengths[at]) &&
         static_cast<double>(columns[c].length) != lengths[at]))
      return false;
  }
  return true;
}

}  // namespace

// The digest of values from bring_points(): the same for a matrix in memory and
// for one in a file.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_digest(SEXP x, int num_threads) {
  return bind::with_files([&] {
    return Rcpp::List::create(
        Rcpp::_["digest"] =
            Rf_inherits(x, "row_file") && !Rf_inherits(x, "bin_rows")
                ? bind::row_file_digest(x)
                : digest_source(*bind::row_source(x), num_threads));
  });
}

// [[Rcpp::export(rng = false)]]
std::string cpp_digest_raw(Rcpp::RawVector bytes) {
  const Listening nobody(nullptr);
  return hexadecimal(digest_bytes(bytes.begin(), bytes.size()));
}

// columns: a named list of integer, double and raw vectors. once: keeps an
// existing file; `first` says whether there was none.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_write_sealed(std::string path, std::string kind, double number,
                            std::string fingerprint, Rcpp::List columns,
                            bool once) {
  return bind::with_files([&] {
    SealedHead head;
    head.kind = kind;
    head.number = static_cast<std::int64_t>(number);
    head.fingerprint = from_hexadecimal(fingerprint);
    std::vector<const void*> values;
    const std::vector<std::string> names = names_of(columns);
    for (R_xlen_t c = 0; c < columns.size(); ++c) {
      const SEXP column = columns[c];
      head.columns.push_back({names[static_cast<std::size_t>(c)],
                              sealed_type(column), Rf_xlength(column)});
      values.push_back(start_of(column));
    }
    const SealedPlace place = once ? SealedPlace::first : SealedPlace::replace;
    return Rcpp::List::create(Rcpp::_["first"] =
                                  write_sealed(path, head, values, place));
  });
}

// types: a named list of vectors with the required column types; lengths: their
// required lengths, NA if unknown. state: "whole" (then with columns),
// "missing", "unknown", "damaged", or "other". "other" is a file with another
// fingerprint ("": any), kind, number or other columns.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_read_sealed(std::string path, std::string kind, double number,
                           std::string fingerprint, Rcpp::List types,
                           Rcpp::NumericVector lengths) {
  return bind::with_files([&] {
    if (lengths.size() != types.size())
      throw std::invalid_argument("each column has a length");
    SealedFile file(path);
    const SealedHead& head = file.head();
    Rcpp::List out = Rcpp::List::create(
        Rcpp::_["state"] = state_name(file.state()),
        Rcpp::_["fingerprint"] = hexadecimal(head.fingerprint));
    if (file.state() != SealedState::whole) return out;
    if (head.kind != kind || static_cast<double>(head.number) != number ||
        (!fingerprint.empty() &&
         head.fingerprint != from_hexadecimal(fingerprint)) ||
        !are_as_asked(head.columns, types, lengths)) {
      out["state"] = "other";
      return out;
    }
    Rcpp::List columns(types.size());
    columns.names() = types.names();
    std::vector<void*> places;
    for (R_xlen_t c = 0; c < types.size(); ++c) {
      const SEXP column = bind::new_vector(
          TYPEOF(types[c]), head.columns[static_cast<std::size_t>(c)].length);
      columns[c] = column;
      places.push_back(start_of(column));
    }
    if (file.read(places))
      out["columns"] = columns;
    else
      out["state"] = state_name(SealedState::damaged);
    return out;
  });
}

// Copies a part of an answer into the whole, in place, so no other object may
// share `whole`. A matrix: rows from `first` (from 0) on, column by column; a
// vector: entries.
// [[Rcpp::export(rng = false)]]
void cpp_put_part(SEXP whole, SEXP part, double first) {
  const bool is_matrix = Rf_isMatrix(whole);
  const R_xlen_t rows = is_matrix ? Rf_nrows(whole) : Rf_xlength(whole);
  const R_xlen_t columns = is_matrix ? Rf_ncols(whole) : 1;
  const R_xlen_t count = columns > 0 ? Rf_xlength(part) / columns : 0;
  if (TYPEOF(part) != TYPEOF(whole) || count * columns != Rf_xlength(part) ||
      !(first >= 0.0) || first > static_cast<double>(rows - count) ||
      first != std::floor(first))
    Rcpp::stop("This is no part of the answer.");
  const R_xlen_t at = static_cast<R_xlen_t>(first);
  const auto put = [&](auto* to, const auto* from) {
    for (R_xlen_t c = 0; c < columns; ++c)
      std::copy_n(from + c * count, count, to + c * rows + at);
  };
  if (TYPEOF(whole) == INTSXP)
    put(INTEGER(whole), INTEGER(part));
  else if (TYPEOF(whole) == REALSXP)
    put(REAL(whole), REAL(part));
  else
    Rcpp::stop("An answer has whole numbers and doubles.");
}

// Whether all numbers are from `low` to `high`, or NA if `or_missing`.
// [[Rcpp::export(rng = false)]]
bool cpp_all_between(Rcpp::IntegerVector numbers, int low, int high,
                     bool or_missing) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int number) {
    return number == NA_INTEGER ? or_missing : number >= low && number <= high;
  });
}

// Splits two vectors into lists of vectors, of length counts[i] for row i. NULL
// if the counts do not add up to their lengths.
// [[Rcpp::export(rng = false)]]
SEXP cpp_lists_of(Rcpp::IntegerVector index, Rcpp::NumericVector distance,
                  Rcpp::IntegerVector counts) {
  R_xlen_t left = index.size();
  for (const int count : counts) {
    if (count < 0 || count > left) return R_NilValue;
    left -= count;
  }
  if (left != 0 || distance.size() != index.size()) return R_NilValue;
  Rcpp::List indices(counts.size()), distances(counts.size());
  R_xlen_t at = 0;
  for (R_xlen_t i = 0; i < counts.size(); at += counts[i++]) {
    indices[i] =
        Rcpp::IntegerVector(index.begin() + at, index.begin() + at + counts[i]);
    distances[i] = Rcpp::NumericVector(distance.begin() + at,
                                       distance.begin() + at + counts[i]);
  }
  return Rcpp::List::create(Rcpp::_["index"] = indices,
                            Rcpp::_["distance"] = distances);
}

// A progress bar that several calls share (request: bar, share).
// [[Rcpp::export(rng = false)]]
SEXP cpp_new_bar(std::string what) { return bind::new_bar(what); }

// [[Rcpp::export(rng = false)]]
void cpp_set_bar(SEXP bar, double done) { bind::set_bar(bar, done); }

// [[Rcpp::export(rng = false)]]
void cpp_end_bar(SEXP bar) { bind::end_bar(bar); }
