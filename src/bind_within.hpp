#pragma once

// Storage for pairs within a distance in the bindings: lists, one entry per
// point, or edges.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "bind_answer.hpp"
#include "bind_common.hpp"
#include "core/search/within.hpp"

namespace fsknn {
namespace bind {

/// Catches R's out-of-memory error, and throws MemoryFailure instead.
inline SEXP without_errors(SEXP (*make)(void*), void* what, double bytes) {
  const SEXP made = R_tryCatchError(
      make, what, [](SEXP, void*) -> SEXP { return R_NilValue; }, nullptr);
  if (made == R_NilValue) throw MemoryFailure(bytes);
  return made;
}

inline double total_of(const WithinAnswer::Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0.0);
}

/// Two lists of vectors, one vector per point.
class ListAnswer final : public WithinRows {
 public:
  void allocate(const WithinAnswer::Counts& counts) override {
    const double bytes = 12 * total_of(counts);
    void* const what = const_cast<WithinAnswer::Counts*>(&counts);
    index_ = without_errors(&make<INTSXP>, what, bytes);
    distance_ = without_errors(&make<REALSXP>, what, bytes);
    indices_.reserve(counts.size());
    distances_.reserve(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const R_xlen_t at = static_cast<R_xlen_t>(i);
      indices_.push_back(INTEGER(VECTOR_ELT(index_, at)));
      distances_.push_back(REAL(VECTOR_ELT(distance_, at)));
    }
  }
  Row row(std::int64_t row) override {
    const std::size_t at = static_cast<std::size_t>(row);
    return {indices_[at], distances_[at], nullptr};
  }

  Rcpp::List list() const {
    return Rcpp::List::create(Rcpp::_["index"] = index_,
                              Rcpp::_["distance"] = distance_);
  }

 private:
  template <SEXPTYPE type>
  static SEXP make(void* what) {
    const WithinAnswer::Counts& counts = *static_cast<const Counts*>(what);
    const SEXP list =
        PROTECT(Rf_allocVector(VECSXP, static_cast<R_xlen_t>(counts.size())));
    for (std::size_t i = 0; i < counts.size(); ++i)
      SET_VECTOR_ELT(list, static_cast<R_xlen_t>(i),
                     Rf_allocVector(type, counts[i]));
    UNPROTECT(1);
    return list;
  }
  Rcpp::RObject index_, distance_;
  std::vector<std::int32_t*> indices_;
  std::vector<double*> distances_;
};

/// The columns of an edge data frame.
class EdgeAnswer final : public WithinRows {
 public:
  /// subset: the rows of these edges; null: all points.
  EdgeAnswer(bool with_correlation, const RowSubset* subset)
      : with_correlation_(with_correlation), subset_(subset) {}
  void allocate(const WithinAnswer::Counts& counts) override {
    const double total = total_of(counts);
    first_.assign(1, 0);
    for (const std::int32_t count : counts)
      first_.push_back(first_.back() + count);
    Room room = {static_cast<R_xlen_t>(total), with_correlation_};
    columns_ = without_errors(&make, &room, total * 24);
    to_ = INTEGER(VECTOR_ELT(columns_, 1));
    distance_ = REAL(VECTOR_ELT(columns_, 2));
    if (with_correlation_) correlation_ = REAL(VECTOR_ELT(columns_, 3));
    int* const from = INTEGER(VECTOR_ELT(columns_, 0));
    for (std::size_t i = 0; i < counts.size(); ++i)
      std::fill_n(from + first_[i], counts[i], number_of(i));
  }
  Row row(std::int64_t row) override {
    const std::int64_t at = first_[static_cast<std::size_t>(row)];
    return {to_ + at, distance_ + at,
            with_correlation_ ? correlation_ + at : nullptr};
  }

  /// Keeps edges whose similarity is at least `least`. 1 - r loses r's last
  /// bits, so the limit on the distance may include slightly lower
  /// similarities.
  void keep_similar(Sign sign, double least) {
    if (!with_correlation_) return;
    const double* const r = REAL(VECTOR_ELT(columns_, 3));
    const R_xlen_t size = Rf_xlength(VECTOR_ELT(columns_, 3));
    const auto similar = [&](double x) { return is_similar(sign, x, least); };
    const R_xlen_t left = std::count_if(r, r + size, similar);
    if (left == size) return;
    Room room = {left, true};
    const Rcpp::RObject kept =
        without_errors(&make, &room, static_cast<double>(left) * 24);
    R_xlen_t to = 0;
    for (R_xlen_t e = 0; e < size; ++e) {
      if (!similar(r[e])) continue;
      for (const int c : {0, 1})
        INTEGER(VECTOR_ELT(kept, c))[to] = INTEGER(VECTOR_ELT(columns_, c))[e];
      for (const int c : {2, 3})
        REAL(VECTOR_ELT(kept, c))[to] = REAL(VECTOR_ELT(columns_, c))[e];
      ++to;
    }
    columns_ = kept;
  }

  Rcpp::List list() const {
    const Rcpp::List columns(columns_);
    return Rcpp::List::create(
        Rcpp::_["from"] = columns[0], Rcpp::_["to"] = columns[1],
        Rcpp::_["distance"] = columns[2], Rcpp::_["correlation"] = columns[3]);
  }

 private:
  struct Room {
    R_xlen_t length;
    bool with_correlation;
  };
  static SEXP make(void* what) {
    const Room& room = *static_cast<const Room*>(what);
    const SEXP columns = PROTECT(Rf_allocVector(VECSXP, 4));
    SET_VECTOR_ELT(columns, 0, Rf_allocVector(INTSXP, room.length));
    SET_VECTOR_ELT(columns, 1, Rf_allocVector(INTSXP, room.length));
    SET_VECTOR_ELT(columns, 2, Rf_allocVector(REALSXP, room.length));
    if (room.with_correlation)
      SET_VECTOR_ELT(columns, 3, Rf_allocVector(REALSXP, room.length));
    UNPROTECT(1);
    return columns;
  }
  /// The point of a row, from 1.
  int number_of(std::size_t row) const {
    return subset_ != nullptr ? subset_->numbers()[row] + 1
                              : static_cast<int>(row + 1);
  }
  bool with_correlation_;
  const RowSubset* subset_;
  std::vector<std::int64_t> first_;
  Rcpp::RObject columns_;
  std::int32_t* to_ = nullptr;
  double* distance_ = nullptr;
  double* correlation_ = nullptr;
};

inline Within within_from(const Rcpp::List& request) {
  const Rcpp::List list = request["within"];
  Within within;
  within.limits = Rcpp::as<std::vector<double>>(list["limits"]);
  within.once = Rcpp::as<bool>(request["as_edges"]);
  within.most = Rcpp::as<double>(list["most"]);
  within.most_kept =
      static_cast<std::int64_t>(Rcpp::as<double>(list["most_kept"]));
  return within;
}

inline Rcpp::List failure_of(const TooManyPairs& e) {
  return Rcpp::List::create(
      Rcpp::_["failure"] = "too_many_pairs", Rcpp::_["message"] = e.what(),
      Rcpp::_["pairs"] = e.pairs, Rcpp::_["estimated"] = e.estimated,
      Rcpp::_["most"] = e.most, Rcpp::_["fits"] = e.fits);
}

}  // namespace bind
}  // namespace fsknn
