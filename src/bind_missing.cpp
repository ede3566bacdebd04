#include <algorithm>
#include <vector>

#include "bind_common.hpp"
#include "core/base/pieces.hpp"
#include "core/rows/filled.hpp"

using namespace fsknn;

namespace {

/// Converts matrices of neighbours with missing entries to edges.
class EdgesOfMatrices {
 public:
  EdgesOfMatrices(Rcpp::IntegerMatrix index, int num_threads)
      : index_(index),
        rows_(index.nrow()),
        k_(index.ncol()),
        first_(static_cast<std::size_t>((rows_ + kRows - 1) / kRows + 1)),
        threads_(useful_threads(
            num_threads,
            static_cast<double>(rows_) * static_cast<double>(k_) * 4.0)) {
    pieces([&](std::int64_t piece) {
      std::int64_t count = 0;
      each(piece, [&](std::int64_t, std::int64_t) { ++count; });
      first_[static_cast<std::size_t>(piece) + 1] = count;
    });
    for (std::size_t p = 1; p < first_.size(); ++p) first_[p] += first_[p - 1];
  }

  std::int64_t size() const { return first_.back(); }

  /// Sets to[edge] = value(row, rank), by rows, then by ranks.
  template <class T, class Value>
  void fill(T* to, Value value) const {
    pieces([&](std::int64_t piece) {
      T* next = to + first_[static_cast<std::size_t>(piece)];
      each(piece, [&](std::int64_t row, std::int64_t rank) {
        *next++ = value(row, rank);
      });
    });
  }

  /// The edges' values in another matrix of the same shape.
  template <class T>
  void column(SEXPTYPE kind, SEXP from, T* (*data)(SEXP),
              Rcpp::RObject& out) const {
    out = bind::new_vector(kind, size());
    const T* values = data(from);
    fill(data(out), [&](std::int64_t row, std::int64_t rank) {
      return values[rank * rows_ + row];
    });
  }

 private:
  static constexpr std::int64_t kRows = 1024;

  template <class Work>
  void pieces(Work work) const {
    run_pieces(static_cast<std::int64_t>(first_.size()) - 1, threads_, {},
               [&] { return work; });
  }
  template <class Take>
  void each(std::int64_t piece, Take take) const {
    const int* index = index_.begin();
    const std::int64_t end = std::min(rows_, (piece + 1) * kRows);
    for (std::int64_t row = piece * kRows; row < end; ++row)
      for (std::int64_t rank = 0; rank < k_; ++rank)
        if (index[rank * rows_ + row] != NA_INTEGER) take(row, rank);
  }

  const Rcpp::IntegerMatrix index_;
  const std::int64_t rows_, k_;
  std::vector<std::int64_t> first_;  ///< start of each piece, and the end
  const int threads_;
};

}  // namespace

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

// The facts of cpp_scan() for a matrix whose missing values are filled with the
// row's mean. Also the number of missing values, and the rows that have no
// others. request, levels: as for cpp_scan(). quick: skips the counts of
// negative values.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_scan_missing(SEXP x, int num_threads, SEXP request = R_NilValue,
                            bool quick = false, int levels = 0) {
  return bind::guarded([&] {
    const std::unique_ptr<Progress> progress = bind::r_progress(false);
    const bind::RowTest test(request);
    return bind::list_of(
        scan_missing(*bind::row_source(x, test.features(), false), num_threads,
                     progress.get(), test.preparing(),
                     levels > 0 ? FilledBy::zero
                     : quick    ? FilledBy::first
                                : FilledBy::mean,
                     {true, levels}));
  });
}

// Converts matrices of neighbours, NA if there is none, to columns of an edge
// data frame, by rows, then by ranks. correlation: a matrix, or NULL. from: the
// point of each row; NULL: all points, in order. list_size: the length of the
// lists in a row, each with ranks from 1.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_edges_of_matrices(Rcpp::IntegerMatrix index,
                                 Rcpp::NumericMatrix distance, SEXP correlation,
                                 SEXP from, int list_size, int num_threads) {
  return bind::guarded([&] {
    const EdgesOfMatrices edges(index, num_threads);
    Rcpp::RObject from_of, to_of, rank_of, distance_of, correlation_of;
    Rcpp::IntegerVector numbers;
    if (!Rf_isNull(from)) numbers = Rcpp::IntegerVector(from);
    const int* own = Rf_isNull(from) ? nullptr : numbers.begin();
    from_of = bind::new_vector(INTSXP, edges.size());
    edges.fill(INTEGER(from_of), [&](std::int64_t row, std::int64_t) {
      return own != nullptr ? own[row] : static_cast<int>(row + 1);
    });
    rank_of = bind::new_vector(INTSXP, edges.size());
    edges.fill(INTEGER(rank_of), [&](std::int64_t, std::int64_t rank) {
      return static_cast<int>(rank % list_size + 1);
    });
    edges.column(INTSXP, index, INTEGER, to_of);
    edges.column(REALSXP, distance, REAL, distance_of);
    if (!Rf_isNull(correlation))
      edges.column(REALSXP, Rcpp::NumericMatrix(correlation), REAL,
                   correlation_of);
    return Rcpp::List::create(Rcpp::_["from"] = from_of, Rcpp::_["to"] = to_of,
                              Rcpp::_["rank"] = rank_of,
                              Rcpp::_["distance"] = distance_of,
                              Rcpp::_["correlation"] = correlation_of);
  });
}

// For tests: rows after their missing values were filled, [features x points].
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
