#pragma once

// Storage for answers in the bindings, as R objects.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "bind_common.hpp"
#include "core/base/pieces.hpp"

namespace fsknn {
namespace bind {

/// The memory for the core's answer: matrices, or columns of an edge data
/// frame.
class Answer {
 public:
  /// subset: the rows of the answer; null: all points, or queries.
  Answer(const Request& request, std::int64_t rows, const RowSubset* subset,
         bool with_correlation, bool as_edges)
      : num_threads_(request.num_threads),
        list_(request.k),
        k_(request.k * lists_of(request)),
        subset_(subset) {
    if (k_ < 1) throw std::invalid_argument("neighbours are asked for by k");
    view.rows = rows;
    view.missing_index = NA_INTEGER;
    view.missing_value = NA_REAL;
    if (as_edges) {
      view.edges_a_row = k_;
      view.left_out = subset != nullptr ? &request.query_skip : &request.skip;
      rows -= static_cast<std::int64_t>(view.left_out->size());
    }
    length_ = rows * k_;
    index_ = column(INTSXP);
    distance_ = column(REALSXP);
    if (with_correlation) correlation_ = column(REALSXP);
    if (as_edges) {
      from_ = column(INTSXP);
      rank_ = column(INTSXP);
    }
    view.index = INTEGER(index_);
    view.distance = REAL(distance_);
    view.correlation = with_correlation ? REAL(correlation_) : nullptr;
  }

  Neighbours view;

  Rcpp::List list(const Rcpp::List& stats) const {
    if (!view.as_edges())
      return Rcpp::List::create(
          Rcpp::_["index"] = index_, Rcpp::_["distance"] = distance_,
          Rcpp::_["correlation"] = correlation_, Rcpp::_["stats"] = stats);
    fill_edges(INTEGER(from_), INTEGER(rank_));
    return Rcpp::List::create(
        Rcpp::_["from"] = from_, Rcpp::_["to"] = index_,
        Rcpp::_["rank"] = rank_, Rcpp::_["distance"] = distance_,
        Rcpp::_["correlation"] = correlation_, Rcpp::_["stats"] = stats);
  }

 private:
  /// A column of the edges, or a matrix.
  Rcpp::RObject column(SEXPTYPE type) const {
    const Rcpp::RObject v = new_vector(type, length_);
    if (!view.as_edges())
      Rf_setAttrib(v, R_DimSymbol,
                   Rcpp::IntegerVector::create(static_cast<int>(view.rows),
                                               static_cast<int>(k_)));
    return v;
  }

  /// Uses all threads, because the first access to memory takes most of the
  /// time.
  void fill_edges(int* from, int* rank) const {
    constexpr std::int64_t block = 4096;
    const int threads =
        useful_threads(num_threads_, static_cast<double>(length_) / 4);
    run_pieces((view.rows + block - 1) / block, threads, {}, [&] {
      return [&](std::int64_t piece) {
        const std::int64_t end = std::min(view.rows, (piece + 1) * block);
        auto left_out = std::lower_bound(view.left_out->begin(),
                                         view.left_out->end(), piece * block);
        for (std::int64_t i = piece * block; i < end; ++i) {
          if (left_out != view.left_out->end() && *left_out == i) {
            ++left_out;
            continue;
          }
          const std::int64_t at = view.at(AnswerRow::of(i), Rank{0});
          std::fill_n(from + at, k_, number_of(i));
          for (std::int64_t e = at; e < at + k_; e += list_)
            std::iota(rank + e, rank + e + list_, 1);
        }
      };
    });
  }

  /// The point of a row, from 1.
  int number_of(std::int64_t row) const {
    if (subset_ != nullptr)
      row = subset_->numbers()[static_cast<std::size_t>(row)];
    return static_cast<int>(row + 1);
  }

  static std::int64_t lists_of(const Request& request) {
    return request.groups == nullptr ? 1 : request.groups->num_lists();
  }

  int num_threads_;
  std::int64_t list_;            ///< neighbours in a list
  std::int64_t k_, length_ = 0;  ///< per row
  const RowSubset* subset_;
  Rcpp::RObject index_, distance_, correlation_, from_, rank_;
};

/// Whether a correlation is at least this similar, depending on the sign.
inline bool is_similar(Sign sign, double r, double least) {
  if (sign == Sign::absolute) r = std::fabs(r);
  if (sign == Sign::negative) r = -r;
  return r >= least;
}

}  // namespace bind
}  // namespace fsknn
