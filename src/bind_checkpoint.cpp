// Checkpoints: digests of data, files that are whole or not there, locks. And
// what puts an answer together of its splits.

#include <cstring>

#include "bind_common.hpp"
#include "core/digest.hpp"
#include "core/durable.hpp"

using namespace fsknn;

namespace {

/// guarded() for work on files: their failures as facts too.
Rcpp::List with_files(const std::function<Rcpp::List()>& work) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    try {
      return work();
    } catch (const FileFailure& e) {
      return Rcpp::List::create(Rcpp::_["failure"] = "file",
                                Rcpp::_["path"] = e.path,
                                Rcpp::_["message"] = e.words);
    }
  });
}

}  // namespace

// Of what bring_points() gives as values: the same for a matrix in memory and
// for one that went to a file.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_digest(SEXP x, int num_threads) {
  return with_files([&] {
    return Rcpp::List::create(
        Rcpp::_["digest"] =
            Rf_inherits(x, "row_file")
                ? bind::row_file_digest(x)
                : digest_source(*bind::row_source(x), num_threads));
  });
}

// [[Rcpp::export(rng = false)]]
std::string cpp_digest_raw(Rcpp::RawVector bytes) {
  const Listening nobody(nullptr);
  return hexadecimal(digest_bytes(bytes.begin(), bytes.size()));
}

// sealed: with a head that tells whether it is whole.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_write_durably(std::string path, Rcpp::RawVector bytes,
                             bool sealed) {
  return with_files([&] {
    (sealed ? write_sealed : write_durably)(path, bytes.begin(), bytes.size());
    return Rcpp::List();
  });
}

// bytes: NULL where the file is not there, or not as it was written.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_read_sealed(std::string path) {
  return with_files([&] {
    std::vector<char> bytes;
    Rcpp::RObject out;
    if (read_sealed(path, bytes))
      out = Rcpp::RawVector(bytes.begin(), bytes.end());
    return Rcpp::List::create(Rcpp::_["bytes"] = out);
  });
}

// A double, integer or logical matrix by way of a file, for another process of
// this machine; no attributes but its dimension.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_lend_matrix(SEXP x, std::string path) {
  return with_files([&] {
    const bool is_double = TYPEOF(x) == REALSXP;
    write_bytes(path,
                is_double ? static_cast<const void*>(REAL(x))
                          : static_cast<const void*>(INTEGER(x)),
                Rf_xlength(x) * (is_double ? 8 : 4));
    return Rcpp::List::create(
        Rcpp::_["path"] = path, Rcpp::_["is_double"] = is_double,
        Rcpp::_["rows"] = Rf_nrows(x), Rcpp::_["columns"] = Rf_ncols(x));
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_borrow_matrix(Rcpp::List lent) {
  const int rows = Rcpp::as<int>(lent["rows"]);
  const int columns = Rcpp::as<int>(lent["columns"]);
  const bool is_double = Rcpp::as<bool>(lent["is_double"]);
  Rcpp::RObject x = Rf_allocMatrix(is_double ? REALSXP : INTSXP, rows, columns);
  return with_files([&] {
    read_bytes(Rcpp::as<std::string>(lent["path"]),
               is_double ? static_cast<void*>(REAL(x))
                         : static_cast<void*>(INTEGER(x)),
               Rf_xlength(x) * (is_double ? 8 : 4));
    return Rcpp::List::create(Rcpp::_["values"] = x);
  });
}

// lock: NULL where another process has it (owner: its number, or 0).
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_lock_file(std::string path) {
  return with_files([&] {
    std::unique_ptr<FileLock> lock(new FileLock(path));
    const double owner = static_cast<double>(lock->owner());
    Rcpp::RObject out;
    if (lock->held()) out = Rcpp::XPtr<FileLock>(lock.release(), true);
    return Rcpp::List::create(Rcpp::_["lock"] = out, Rcpp::_["owner"] = owner);
  });
}

// [[Rcpp::export(rng = false)]]
void cpp_unlock_file(SEXP lock) { Rcpp::XPtr<FileLock>(lock).release(); }

// Puts a part of an answer into the whole, in place: `whole` must be nobody
// else's. Matrices: rows from `first` (from 0) on; else: entries.
// [[Rcpp::export(rng = false)]]
void cpp_put_part(SEXP whole, SEXP part, double first) {
  const auto put = [&](auto* to, const auto* from) {
    const R_xlen_t at = static_cast<R_xlen_t>(first);
    if (!Rf_isMatrix(whole)) {
      std::copy_n(from, Rf_xlength(part), to + at);
      return;
    }
    const R_xlen_t rows = Rf_nrows(whole), count = Rf_nrows(part);
    for (R_xlen_t rank = 0; rank < Rf_ncols(whole); ++rank)
      std::copy_n(from + rank * count, count, to + rank * rows + at);
  };
  if (TYPEOF(whole) == INTSXP)
    put(INTEGER(whole), INTEGER(part));
  else
    put(REAL(whole), REAL(part));
}

// A progress bar that several calls share (request: bar, share).
// [[Rcpp::export(rng = false)]]
SEXP cpp_new_bar(std::string what) { return bind::new_bar(what); }

// [[Rcpp::export(rng = false)]]
void cpp_set_bar(SEXP bar, double done) { bind::set_bar(bar, done); }

// [[Rcpp::export(rng = false)]]
void cpp_end_bar(SEXP bar) { bind::end_bar(bar); }
