// Files of big-ann-benchmarks and of PLINK, and shards of long answers.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind_common.hpp"
#include "core/base/pieces.hpp"
#include "core/files/bed_file.hpp"
#include "core/files/bin_file.hpp"
#include "core/files/shards.hpp"

using namespace fsknn;

namespace {

/// Reads contiguous rows of the file together.
template <class Read>
void read_runs(const Rcpp::NumericVector& rows, Read read) {
  R_xlen_t at = 0;
  while (at < rows.size()) {
    R_xlen_t end = at + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    read(static_cast<std::int64_t>(rows[at]) - 1, end - at, at);
    at = end;
  }
}

Rcpp::RObject new_matrix(SEXPTYPE type, std::int64_t rows,
                         std::int64_t columns) {
  Rcpp::RObject x = bind::new_vector(type, rows * columns);
  x.attr("dim") = Rcpp::IntegerVector::create(static_cast<int>(rows),
                                              static_cast<int>(columns));
  return x;
}

std::int64_t rows_of(SEXP x) { return Rf_nrows(x); }

}  // namespace

// The size of the file in bytes; rows and columns from its header, NA if the
// file is shorter than a header.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_bin_head(std::string path) {
  return bind::with_files([&] {
    const BinHead head = BinReader(path).head();
    const auto number = [](std::int64_t n) {
      return n < 0 ? NA_REAL : static_cast<double>(n);
    };
    return Rcpp::List::create(Rcpp::_["bytes"] = number(head.bytes),
                              Rcpp::_["rows"] = number(head.rows),
                              Rcpp::_["columns"] = number(head.columns));
  });
}

// Rows (from 1) of a block of values that begins at byte `start`, as a matrix.
// Files of integers give integers, others doubles. shifted: numbers from 0
// become numbers from 1, and negative ones NA.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_read_bin(std::string path, std::string ending, double start,
                        Rcpp::NumericVector rows, bool shifted) {
  return bind::with_files([&] {
    BinReader reader(path);
    const BinType type = bin_type(ending);
    const BinHead& head = reader.head();
    for (const double row : rows)
      if (!(row >= 1 && row <= static_cast<double>(head.rows)))
        throw FileFailure{path, "it has fewer rows than it had", 0};
    const std::int64_t begin = static_cast<std::int64_t>(start);
    const std::int64_t count = rows.size();
    const bool whole = type != BinType::float32 && type != BinType::float64;
    const Rcpp::RObject out =
        new_matrix(whole ? INTSXP : REALSXP, count, head.columns);
    read_runs(rows, [&](std::int64_t first, std::int64_t run, R_xlen_t at) {
      if (shifted)
        reader.read_index(begin, first, run, NA_INTEGER, INTEGER(out) + at,
                          count);
      else if (whole)
        reader.read(type, begin, first, run, INTEGER(out) + at, count);
      else
        reader.read(type, begin, first, run, REAL(out) + at, count);
    });
    return Rcpp::List::create(Rcpp::_["values"] = out);
  });
}

// The size of a file in bytes, and its first bytes, as many as a .bed file has
// before its genotypes.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_bed_head(std::string path) {
  return bind::with_files([&] {
    InputFile file(path);
    Rcpp::RawVector head(
        std::min(file.size(), static_cast<std::int64_t>(kBedHead)));
    file.read_at(0, head.begin(), head.size());
    return Rcpp::List::create(
        Rcpp::_["bytes"] = static_cast<double>(file.size()),
        Rcpp::_["head"] = head);
  });
}

// Rows and columns (from 1) of a .bed file of `size` SNPs and samples, as an
// integer matrix.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_read_bed(std::string path, Rcpp::NumericVector size,
                        std::string allele, Rcpp::NumericVector rows,
                        Rcpp::IntegerVector columns) {
  return bind::with_files([&] {
    const std::int64_t d = static_cast<std::int64_t>(size[1]);
    const BedRows source(path, static_cast<std::int64_t>(size[0]), d,
                         counted_allele(allele));
    const std::int64_t count = rows.size(), at_once = rows_per_block(d);
    const Rcpp::RObject out = new_matrix(INTSXP, count, columns.size());
    std::vector<double> block(
        static_cast<std::size_t>(std::min(count, at_once) * d));
    read_runs(rows, [&](std::int64_t first, std::int64_t run, R_xlen_t at) {
      for (std::int64_t r0 = 0; r0 < run; r0 += at_once) {
        const std::int64_t some = std::min(at_once, run - r0);
        source.read(first + r0, some, block.data(), d);
        for (R_xlen_t c = 0; c < columns.size(); ++c)
          for (std::int64_t r = 0; r < some; ++r) {
            const double x =
                block[static_cast<std::size_t>(r * d + columns[c] - 1)];
            INTEGER(out)
            [c * count + at + r0 + r] =
                std::isnan(x) ? NA_INTEGER : static_cast<int>(x);
          }
      }
    });
    return Rcpp::List::create(Rcpp::_["values"] = out);
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_new_bin(std::string path, double rows, double columns) {
  return bind::with_files([&] {
    return Rcpp::List::create(
        Rcpp::_["file"] = Rcpp::XPtr<BinWriter>(
            new BinWriter(path, static_cast<std::int64_t>(rows),
                          static_cast<std::int64_t>(columns)),
            true));
  });
}

// Writes rows `first` to `last` (from 1) of a double matrix, or of an integer
// matrix of indices from 1.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_put_bin(SEXP file, std::string ending, SEXP values, double first,
                       double last, bool shifted, int num_threads) {
  return bind::with_files([&] {
    BinWriter& writer = *Rcpp::XPtr<BinWriter>(file);
    const std::int64_t from = static_cast<std::int64_t>(first) - 1;
    const std::int64_t count = static_cast<std::int64_t>(last) - from;
    const std::int64_t stride = rows_of(values);
    if (from < 0 || count < 0 || from + count > stride)
      throw std::invalid_argument("the matrix has no such rows");
    if (shifted)
      writer.put_index(INTEGER(values) + from, count, stride, NA_INTEGER,
                       num_threads);
    else
      writer.put(bin_type(ending), REAL(values) + from, count, stride,
                 num_threads);
    return Rcpp::List();
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_finish_bin(SEXP file) {
  return bind::with_files([&] {
    Rcpp::XPtr<BinWriter>(file)->finish();
    return Rcpp::List();
  });
}

// An unfinished file does not get its name.
// [[Rcpp::export(rng = false)]]
void cpp_drop_bin(SEXP file) { Rcpp::XPtr<BinWriter>(file).release(); }

// [[Rcpp::export(rng = false)]]
std::string cpp_random_word() { return random_word(); }

// Flushes a file that another library wrote under a temporary name to the disk,
// and renames it.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_name_whole(std::string part, std::string path) {
  return bind::with_files([&] {
    name_whole(part, path);
    return Rcpp::List();
  });
}

// For each file its size and its digests.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_file_facts(std::vector<std::string> paths, bool whole,
                          int num_threads) {
  return bind::with_files([&] {
    const std::int64_t count = static_cast<std::int64_t>(paths.size());
    std::vector<FileFacts> facts(paths.size());
    run_pieces(count, num_threads, {}, [&] {
      return [&](std::int64_t file) {
        const std::size_t at = static_cast<std::size_t>(file);
        facts[at] = facts_of_file(paths[at], whole);
      };
    });
    std::vector<double> bytes;
    std::vector<std::string> ends, digests;
    for (const FileFacts& of : facts) {
      bytes.push_back(static_cast<double>(of.bytes));
      ends.push_back(of.ends);
      digests.push_back(of.whole);
    }
    return Rcpp::List::create(Rcpp::_["bytes"] = bytes, Rcpp::_["ends"] = ends,
                              Rcpp::_["whole"] = digests);
  });
}

// Counts the entries of each column in `places_at`, in place, so no other
// object may share it; see put_in_columns().
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_count_in_columns(Rcpp::NumericVector places_at,
                                Rcpp::IntegerMatrix index) {
  return bind::guarded([&] {
    SparsePlaces places;
    places.num_columns = places_at.size();
    places.next = places_at.begin();
    put_in_columns(places, index.begin(), nullptr, index.nrow(), index.ncol(),
                   0, NA_INTEGER);
    return Rcpp::List();
  });
}

// Adds rows from `first` (from 0) on to columns, in place. distance: NULL: no
// values.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_put_in_columns(Rcpp::NumericVector places_at,
                              Rcpp::IntegerVector row_of, SEXP values,
                              Rcpp::IntegerMatrix index, SEXP distance,
                              double first) {
  return bind::guarded([&] {
    SparsePlaces places;
    places.num_columns = places_at.size();
    places.next = places_at.begin();
    places.row_of = row_of.begin();
    if (!Rf_isNull(distance)) {
      if (Rf_xlength(distance) != index.size() ||
          Rf_xlength(values) != row_of.size())
        throw std::invalid_argument("each index has a distance");
      places.values = REAL(values);
    }
    put_in_columns(places, index.begin(),
                   Rf_isNull(distance) ? nullptr : REAL(distance), index.nrow(),
                   index.ncol(), static_cast<std::int64_t>(first), NA_INTEGER);
    return Rcpp::List();
  });
}

// Copies `part` to rows from `first` (from 0) on of a matrix, in place.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_put_rows(SEXP all, SEXP part, double first) {
  return bind::guarded([&] {
    const std::int64_t at = static_cast<std::int64_t>(first);
    const std::int64_t rows = rows_of(all), size = rows_of(part);
    if (TYPEOF(all) != TYPEOF(part) || Rf_ncols(all) != Rf_ncols(part) ||
        at < 0 || at + size > rows)
      throw std::invalid_argument("rows of another matrix");
    const auto put = [&](const auto* from, auto* to) {
      for (std::int64_t c = 0; c < Rf_ncols(all); ++c)
        std::copy(from + c * size, from + (c + 1) * size, to + c * rows + at);
    };
    if (TYPEOF(all) == INTSXP)
      put(INTEGER(part), INTEGER(all));
    else
      put(REAL(part), REAL(all));
    return Rcpp::List();
  });
}
